// When to reschedule: MigBSP's two adaptations (Righi et al. 2010), one superstep at a time.
//
//   balanced(t)   slowest < mean·(1 + D)  and  fastest > mean·(1 − D)
//   Adaptation 1  for each superstep t in [k, k+α−1]:  balanced → α' += 1,  else if α' > α₀ → α' −=
//   1
//                 the call follows superstep k+α−1; then α ← α'
//   Adaptation 2  at every call, γ = consecutive calls without a migration, this one included:
//                 γ ≥ ω:               D ← D + D/2   if that is below 1
//                 γ = 0 and D > D₀:    D ← D − D/2   but never below D₀
//
// A process's time is its own computation plus the communication phase and the barrier of the
// superstep; only processes that computed count, and where none did the superstep is not balanced.
// α has no upper bound in the source. With D₀ = 0.5, D is only ever 0.5 or 0.75, so that a slowest
// process at 1.75 times the mean or more is never balanced: the source's own limit, kept as it is.
#pragma once

#include <cstdint>
#include <span>

#include "operator/decide/model/model.h"

namespace bsp::decide {

// How far apart the processes of one superstep were. Seconds.
struct Balance {
  double slowest = 0;
  double fastest = 0;
  double mean = 0;
  std::size_t computed = 0;  // processes that did (I_t(i) > 0); 0: the rest says nothing

  // How much longer the slowest takes than the mean: 0 = perfectly even.
  [[nodiscard]] double imbalance() const { return mean > 0 ? slowest / mean - 1 : 0; }
};

Balance balance_of(const MeasuredSuperstep& t);
bool balanced(const Balance& balance, double d);

// The communication phase and barrier of a measured superstep: what each rank spent in
// communication and at the edge includes its wait for slower ranks, except for the one that came
// last. So: the least.
double shared_phase_seconds(std::span<const double> communication_and_edge_seconds);

// The shortest window of a job that is `age` supersteps old: α₀, or with first_alpha what doubles up to it. So a job that
// was placed badly doesn't wait for α₀ supersteps, and the number of calls grows by log α₀ only.
std::uint64_t least_alpha(const Params& params, std::uint64_t age);
// The longest one, with early_calls: an eighth of the job's age, but no less than α₀. A node may slow down by less than D lets
// the balance flip, and what a window has seen of it says nothing before its end.
std::uint64_t most_alpha(const Params& params, std::uint64_t age);
// The cadence of a window that is about to start: a new job's begins with the shortest window and D₀.
Cadence open_cadence(Cadence cadence, const Params& params);
// Adaptation 1, after a superstep of the window.
void adapt_alpha(Cadence& cadence, const Balance& balance, const Params& params);
// Auto compares windows before and after a wave, so each needs so many supersteps.
inline constexpr std::uint64_t kLeastMeasured = 4;
// Whether a rescheduling call follows this superstep. With early_calls it waits for kLeastMeasured that were measured, or all
// of the window's: of a job's supersteps only a part may be (observe/sampling.h).
bool call_due(const Cadence& cadence, Superstep completed, std::uint64_t measured, const Params& params);

// With early_calls: in a window that grew beyond α₀, as the job was balanced, a call comes early once the job has not
// been balanced for kFlipped supersteps in a row. The next window has α₀ again, so that there is at most one early call
// for each growth. In a window that follows a wave which was taken back (Cadence::cooling), only if the job was balanced in it: what
// made that wave is still there.
class EarlyCall {
 public:
  static constexpr std::uint32_t kFlipped = 5;  // supersteps: longer than noise

  // After each superstep of the window, in order.
  void add(const Cadence& cadence, const Balance& balance, const Params& params) {
    const bool even = balanced(balance, cadence.d);
    in_a_row_ = even ? 0 : in_a_row_ + 1;
    was_balanced_ |= even;
    const bool flipped = in_a_row_ >= kFlipped && (was_balanced_ || !cadence.cooling);
    due_ = params.early_calls && cadence.alpha > params.alpha0 && flipped;
  }
  [[nodiscard]] bool due() const { return due_; }

 private:
  std::uint32_t in_a_row_ = 0;  // supersteps that were not balanced
  bool was_balanced_ = false;
  bool due_ = false;
};
// Adaptation 2, and the window that starts after the call made at `completed`.
Cadence next_cadence(const Cadence& cadence, Superstep completed, bool migrated, const Params& params);

}  // namespace bsp::decide
