// What Naive and Increments have in common: a view that is kept up to date by broadcasts, so that a decision waits for
// nobody.
//
// Source: RR-5478, the part on maintaining a view. NoMoreMaster is its way to save messages: loads are only of use to
// those that will still decide.
#pragma once

#include "operator/exchange/protocol.h"

namespace bsp::exchange {

class Maintained : public Protocol {
 public:
  explicit Maintained(Config config);

  void start(std::span<const double> own, Output& out) override;
  void want_decision(Output& out) override;
  void no_more_decisions(Output& out) override;
  void lost(Member peer, Output& out) override;

 protected:
  // To all that will still decide.
  void broadcast(Message message, Output& out) const;
  void heard(Member from, Output& out);  // its Hello has come
  void no_more(Member peer);             // it decides no more
  [[nodiscard]] bool decides(Member m) const { return decides_[m]; }
  [[nodiscard]] static bool exceeds(std::span<const double> changes, double threshold);

 private:
  void ready_if_all_heard(Output& out);

  std::vector<bool> heard_;
  std::vector<bool> decides_;
  std::size_t silent_ = 0;  // members whose Hello is awaited
  bool wanting_ = false;
};

}  // namespace bsp::exchange
