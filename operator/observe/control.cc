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
  if (logs.empty()) return {.ratio = 1, .error = std::max(noise, Control::kAloneSpread), .ranks = 0};
  std::vector<double> values = logs;
  const double middle = median(values), ranks = static_cast<double>(logs.size());
  for (std::size_t i = 0; i < logs.size(); ++i) values[i] = std::abs(logs[i] - middle);
  const double spread = 1.4826 * (1 + 2 / ranks) * median(values);
  const bool few = logs.size() < Control::kFew;
  const double least = few ? std::max({noise, Control::kFewSpread, std::abs(middle) / 2}) : noise;
  return {.ratio = std::exp(middle), .error = std::max(spread, least), .ranks = logs.size()};
}

double Control::apart() const { return ranks == 0 ? error : error * std::sqrt(1 + 1 / static_cast<double>(ranks)); }

Gain gain_of(double before, double before_error, double after, double after_error, const Control& control) {
  const double expected = before * control.ratio;
  return {.seconds = expected - after,
          .error = 2 * std::hypot(before_error * control.ratio, after_error, expected * control.apart())};
}

Gain gain_of(const JobTimes& job, const Control& control) {
  const auto longest = [&](double errors) {
    return std::max(job.stayed, job.others * control.ratio * std::max(0.0, 1 + errors * control.apart()));
  };
  const double likely = longest(0), apart = std::max(longest(2) - likely, likely - longest(-2));
  const double messages = std::max(0.0, job.before - job.longest);
  const double expected = likely + messages * (1 + control.ratio) / 2;
  const double noise = std::hypot(2 * job.before_error * control.ratio, 2 * job.after_error, apart);
  return {.seconds = expected - job.after, .error = noise + messages * std::abs(control.ratio - 1) / 2};
}

}  // namespace bsp::observe
