// Ratios of two things measured in turn, on a machine whose speed changes from second to second.
//
// Each pair is measured within milliseconds, so that both halves see the same machine. Over all pairs, reports the
// median, its 95 % confidence interval (order statistics, no assumption about the noise), and the quartiles as the
// spread of the single pair.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <format>
#include <string>
#include <vector>

namespace bsp::bench {

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n % 2 != 0 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

struct Ratio {
  double median = 0;
  double low = 0, high = 0;  // 95 % interval of the median
  double quarter = 0, three_quarters = 0;
  std::size_t pairs = 0;
};

inline Ratio ratio_of(std::vector<double> ratios) {
  Ratio r{.pairs = ratios.size()};
  if (ratios.empty()) return r;
  std::ranges::sort(ratios);
  const auto n = static_cast<double>(ratios.size());
  const auto at = [&](double position) { return ratios[static_cast<std::size_t>(std::clamp(position, 0.0, n - 1))]; };
  r.median = bench::median(ratios);
  r.low = at(std::floor(n / 2 - 0.98 * std::sqrt(n)));
  r.high = at(std::ceil(n / 2 + 0.98 * std::sqrt(n)));
  r.quarter = at(n / 4);
  r.three_quarters = at(3 * n / 4);
  return r;
}

inline std::string text(const Ratio& r) {
  return std::format("{:.4f} [{:.4f} .. {:.4f}], quartiles {:.3f} {:.3f}, {} pairs", r.median, r.low, r.high, r.quarter,
                     r.three_quarters, r.pairs);
}

inline std::string json(const Ratio& r) {
  return std::format(
      R"({{"ratio": {:.5f}, "low95": {:.5f}, "high95": {:.5f}, "quartile1": {:.5f}, "quartile3": {:.5f}, "pairs": {}}})",
      r.median, r.low, r.high, r.quarter, r.three_quarters, r.pairs);
}

}  // namespace bsp::bench
