#pragma once

#include <span>

namespace bsp::observe {

// Which ranks compute too little in a superstep to say how fast their node is: less than kShare of the mean of all. Such work is a burst,
// which no CPU quota slows down, or a few reads of a cold cache.
class Negligible {
 public:
  static constexpr double kShare = 0.1;

  // By rank, s or any unit of work.
  explicit Negligible(std::span<const double> values) {
    double mean = 0;
    for (const double x : values) mean += x / static_cast<double>(values.size());
    least_ = kShare * mean;
  }
  [[nodiscard]] bool operator()(double x) const { return x < least_; }

 private:
  double least_ = 0;
};

}  // namespace bsp::observe
