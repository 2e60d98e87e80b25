// Naive: a member broadcasts what it holds when that differs from what it last said by more than a threshold.
//
// Source: RR-5478, the naive mechanism. A decision is told to nobody: until the work has arrived at its receiver, and
// the receiver's next broadcast has arrived here, every decision maker still sees the old load and may pick the same
// target. Absolute values carry a version, so that an older one that arrives later is dropped.
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
  void say_if_beyond(double threshold, Output& out);

  std::vector<double> said_;             // what the others know of this member
  std::uint64_t version_ = 1;            // of said_
  std::vector<std::uint64_t> versions_;  // of the others' rows
};

}  // namespace bsp::exchange
