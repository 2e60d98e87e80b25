#include "operator/observe/control.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "operator/observe/median.h"

namespace bsp::observe {

Control control_of(std::span<const std::pair<double, double>> stayed, double noise) {
  std::vector<double> logs;
  for (const auto& [before, after] : stayed)
    if (const double ratio = after / before; before > 0 && ratio > 0 && std::isfinite(ratio))
      logs.push_back(std::log(ratio));
  if (logs.empty()) return {};
  std::vector<double> values = logs;
  const double middle = median(values);
  for (std::size_t i = 0; i < logs.size(); ++i) values[i] = std::abs(logs[i] - middle);
  const double least = logs.size() < Control::kFew ? std::max(noise, Control::kFewSpread) : noise;
  return {.ratio = std::exp(middle), .error = std::max(1.4826 * median(values), least), .ranks = logs.size()};
}

Gain gain_of(double before, double before_error, double after, double after_error, const Control& control) {
  const double expected = before * control.ratio;
  const double apart =
      control.ranks == 0 ? 0 : expected * control.error * std::sqrt(1 + 1 / static_cast<double>(control.ranks));
  return {.seconds = expected - after, .error = 2 * std::hypot(before_error * control.ratio, after_error, apart)};
}

}  // namespace bsp::observe
