// Naive: a member broadcasts its load when that differs from its last broadcast by more than a threshold.
//
// Source: RR-5478, the naive mechanism. Decisions are not announced. Until the work has arrived at its receiver, and
// the receiver's next broadcast here, every decision maker sees the old load and may pick the same target. Absolute
// values carry a version, so that an older one that arrives late is dropped.
#pragma once

#include "operator/exchange/maintained.h"

namespace bsp::exchange {

class Naive final : public Maintained {
 public:
  explicit Naive(Config config);

  void start(std::span<const double> own, Output& out) override;
  void received(Member from, const Message& message, Output& out) override;
  void load_changed(std::uint32_t resource, double by, bool assigned, Output& out) override;
  void decided(std::span<const Assignment> assignments, Output& out) override;
  void timer(Output& out) override;
  void grow(std::uint32_t resources) override;

 private:
  void broadcast_beyond(double threshold, Output& out);

  std::vector<double> sent_;             // the load that the others know of
  std::uint64_t version_ = 1;            // of sent_
  std::vector<std::uint64_t> versions_;  // of the others' rows
};

}  // namespace bsp::exchange
