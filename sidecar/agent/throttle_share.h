// From the sums that bsp-init reports (`throttled`) to the share of the last seconds (wire::RankStatus).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>

#include "crds/wire.h"

namespace bsp::sidecar {

class ThrottleShare {
 public:
  // The sum so far, as heard at that time; ns of any one clock.
  void note(std::uint64_t throttled, std::uint64_t now) {
    // Another container's sum: what was heard before says nothing about it.
    if (!samples_.empty() && throttled < samples_.back().sum) samples_.clear();
    samples_.push_back({now, throttled});
    while (samples_.size() > 1 && samples_[1].at + kWindow <= now) samples_.pop_front();
  }

  // Of the window that ends now; 0 until a second has been seen. An unchanged sum need not be noted again.
  [[nodiscard]] double share(std::uint64_t now) const {
    if (samples_.empty()) return 0;
    // What the sum was when the window began, as far as it had been reported; else the first report.
    const std::uint64_t from = now > kWindow ? now - kWindow : 0;
    Sample first = samples_.front();
    for (const Sample& sample : samples_)
      if (sample.at <= from) first = {from, sample.sum};
    if (now < first.at + kLeastSeen) return 0;
    return std::min(1.0, static_cast<double>(samples_.back().sum - first.sum) / static_cast<double>(now - first.at));
  }

 private:
  struct Sample {
    std::uint64_t at, sum;
  };
  static constexpr std::uint64_t kWindow = std::chrono::nanoseconds(wire::kThrottleWindow).count();
  static constexpr std::uint64_t kLeastSeen = 1'000'000'000;
  std::deque<Sample> samples_;  // the first is the last one from before the window
};

}  // namespace bsp::sidecar
