#pragma once

#include <span>

namespace bsp::observe {

// What says next to nothing beside the others of a superstep: less than kLittle of their mean. Such work is a burst, which no CPU quota slows
// down, or a few reads of a cold cache.
class Little {
 public:
  static constexpr double kLittle = 0.1;

  // By rank, s or any unit of work.
  explicit Little(std::span<const double> values) {
    double mean = 0;
    for (const double x : values) mean += x / static_cast<double>(values.size());
    least_ = kLittle * mean;
  }
  [[nodiscard]] bool operator()(double x) const { return x < least_; }

 private:
  double least_ = 0;
};

}  // namespace bsp::observe
