// The common part of Naive and Increments.
// Broadcasts keep the view up to date, so a decision never waits.
//
// Source: RR-5478, the part on maintaining a view. NoMoreMaster is its way to save messages: only members that may
// still decide need the loads.
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
  // Sends to every member that may still decide.
  void broadcast(Message message, Output& out) const;
  void heard(Member from, Output& out);  // its Hello has arrived
  void no_more(Member peer);             // it won't decide again
  [[nodiscard]] bool decides(Member m) const { return decides_[m]; }
  [[nodiscard]] static bool exceeds(std::span<const double> changes, double threshold);

 private:
  void ready_if_all_heard(Output& out);

  std::vector<bool> heard_;
  std::vector<bool> decides_;
  std::size_t silent_ = 0;  // members whose Hello is missing
  bool wanting_ = false;
};

}  // namespace bsp::exchange
