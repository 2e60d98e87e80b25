// What a wave has changed, told apart from what changed anyway: the ranks that stayed saw the same machine.
//
//   c       median over the ranks that stayed of CT after ÷ CT before
//   spread  1.4826 · median |ln(ratio) − ln(c)|, at least the noise: standard error of one rank's ratio, relative
//   gain    before · c − after                                                                                       s
//   error   2 standard errors of that: noise of both means, and c · before · spread · √(1 + 1/ranks), as the machine may treat one
//           rank as unlike the others as it treats those among each other
//
// With fewer than kFew ranks their median says little: the spread counts as kFewSpread at least. With none, c is 1.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace bsp::observe {

struct Control {
  static constexpr std::size_t kFew = 3;
  static constexpr double kFewSpread = 0.02;
  double ratio = 1;  // c
  double error = 0;  // of a rank's ratio: standard, relative
  std::size_t ranks = 0;
};
// Seconds before and after; those that are not above 0 don't count. `noise`: relative standard error of a ratio, at least.
Control control_of(std::span<const std::pair<double, double>> stayed, double noise);

struct Gain {
  double seconds = 0, error = 0;
  [[nodiscard]] bool is_noise() const { return !(seconds > error || seconds < -error); }
};
// `before_error`, `after_error`: standard errors of the means, s.
Gain gain_of(double before, double before_error, double after, double after_error, const Control& control);

}  // namespace bsp::observe
