// What a wave has changed, told apart from what changed anyway: the ranks that stayed saw the same machine.
//
//   c       median over the ranks that stayed of CT after ÷ CT before; where instructions are counted, of the same number of them
//   spread  1.4826 · (1 + 2/ranks) · median |ln(ratio) − ln(c)|, at least the noise: standard error of one rank's ratio, relative
//   gain    before · c − after                                                                                       s
//   error   2 standard errors of that: noise of both means, and c · before · spread · √(1 + 1/ranks), as the machine may treat one
//           rank as unlike the others as it treats those among each other
//
// Of fewer than kFew ranks nobody knows whether they saw the machine or a trouble of their own: the spread counts as kFewSpread and as
// |ln(c)|/2 at least, so that the error covers a c of 1. With none, c is 1 and the spread kAloneSpread: a load by half would not be seen.
//
// A superstep waits for its longest rank, and its messages need not take longer where computing does. So what it would take now without
// the wave (`expected`) is put together:
//
//   longest   max(CT after of those that stayed, c · CT before of the others), s: those that stayed are as they are anyway
//   messages  what the superstep took before besides its longest rank, · (1 + c)/2, within |c − 1|/2
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace bsp::observe {

struct Control {
  static constexpr std::size_t kFew = 3;
  static constexpr double kFewSpread = 0.02;
  static constexpr double kAloneSpread = 0.34;
  double ratio = 1;  // c
  double error = 0;  // of a rank's ratio: standard, relative
  std::size_t ranks = 0;
  // Of how another rank's ratio may differ from c.
  [[nodiscard]] double apart() const;
};
// Seconds before and after; those that are not above 0 don't count. `noise`: relative standard error of a ratio, at least.
Control control_of(std::span<const std::pair<double, double>> stayed, double noise);

struct Gain {
  double seconds = 0, error = 0;
  [[nodiscard]] bool is_noise() const { return !(seconds > error || seconds < -error); }
};
// `before_error`, `after_error`: standard errors of the means, s.
Gain gain_of(double before, double before_error, double after, double after_error, const Control& control);

// Of a superstep, s.
struct JobTimes {
  double before = 0, before_error = 0;  // mean, and its standard error
  double longest = 0;                   // CT of its longest rank before the wave, at most `before`
  double others = 0;  // the most of those before the wave that move, or had or have a node in common with one that does
  double stayed = 0;  // the most of the others after it; 0: there are none
  double after = 0, after_error = 0;
};
Gain gain_of(const JobTimes& job, const Control& control);

}  // namespace bsp::observe
