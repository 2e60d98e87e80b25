// Random numbers from a seed. Our own distributions, because the standard's differ between libraries and a study must
// give the same results everywhere.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

namespace bsp::sim::exchange {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  double uniform() { return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53; }  // in (0, 1)
  double exponential(double mean) { return -mean * std::log(uniform()); }
  double log_normal(double median, double sigma) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return median * std::exp(sigma * radius * std::cos(2 * std::numbers::pi * uniform()));
  }
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(uniform() * limit); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace bsp::sim::exchange
