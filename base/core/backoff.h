// How long to wait before something is tried again: doubled with each failure in a row, between two bounds.
#pragma once

#include <algorithm>
#include <chrono>

namespace bsp {

class Backoff {
 public:
  using Duration = std::chrono::nanoseconds;
  constexpr Backoff(Duration first, Duration longest) : first_(first), longest_(longest) {}

  // For one more failure.
  constexpr Duration next() {
    const Duration pause = after(failures_);
    ++failures_;
    return pause;
  }
  // After so many failures before it.
  [[nodiscard]] constexpr Duration after(unsigned failures) const {
    Duration pause = first_;
    for (; failures > 0 && pause < longest_; --failures) pause *= 2;
    return std::min(pause, longest_);
  }
  constexpr void reset() { failures_ = 0; }
  [[nodiscard]] constexpr unsigned failures() const { return failures_; }

 private:
  Duration first_, longest_;
  unsigned failures_ = 0;
};

}  // namespace bsp
