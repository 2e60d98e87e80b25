// Turns the cumulative time that bsp-init reports (`throttled`) into the share of the last seconds
// (wire::RankStatus).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>

#include "crds/wire.h"

namespace bsp::sidecar {

class ThrottleShare {
 public:
  // The cumulative time as reported at `ns`, on any one clock.
  void note(std::uint64_t throttled, std::uint64_t now) {
    // The container is a new one: earlier samples don't apply to it.
    if (!samples_.empty() && throttled < samples_.back().sum) samples_.clear();
    samples_.push_back({now, throttled});
    while (samples_.size() > 1 && samples_[1].at + kWindow <= now) samples_.pop_front();
  }

  // Of the window that ends now; 0 until a second has been seen. Unchanged sums need not be added.
  [[nodiscard]] double share(std::uint64_t now) const {
    if (samples_.empty()) return 0;
    // The cumulative time when the window began, or else the first report.
    const std::uint64_t from = now > kWindow ? now - kWindow : 0;
    Sample first = samples_.front();
    for (const Sample& sample : samples_)
      if (sample.at <= from) first = {from, sample.sum};
    if (now < first.at + kMinObserved) return 0;
    return std::min(1.0, static_cast<double>(samples_.back().sum - first.sum) / static_cast<double>(now - first.at));
  }

 private:
  struct Sample {
    std::uint64_t at, sum;
  };
  static constexpr std::uint64_t kWindow = std::chrono::nanoseconds(wire::kThrottleWindow).count();
  static constexpr std::uint64_t kMinObserved = 1'000'000'000;
  std::deque<Sample> samples_;  // the first is the last one from before the window
};

}  // namespace bsp::sidecar
