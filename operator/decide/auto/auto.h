// Auto, ours: the moves that make the rest of the job short.
//
//   F = Σ over the waves (pause + kBetween · superstep before the next one) + H · superstep afterwards          s
//
// H, supersteps, is what is left of the job, as far as that is known (horizon Window):
//   expected_supersteps given    what is left of them
//   else                         h = kHope times as many as there have been since the last wave
// With horizon Superstep, H is 1.
//
// The second is the rule of ski rental: staying loses g a superstep, moving costs c, and is worth it after t = c/(h·g)
// supersteps, if as many follow. That is unknown. So a wave has to be affordable too, as long as H goes by the age:
//
//   owed + c ≤ max(kRisk · time so far,  kShare · what the supersteps so far took longer than the wave's would have)
//   owed = pauses so far − what the supersteps since then were shorter than with every rank where the job began
//
// So whenever the job ends, it has taken at most 1 % longer than without a move, or longer by half of what staying had
// cost it until the last wave. And it is behind one who knows its length by what it loses until c is affordable, c/kShare,
// and by c. A wave that leads by way of a longer superstep counts with that. Gains make the next wave affordable. A
// call comes when what was found starts to pay, but never less than α₀ after the last; what was not foreseen waits for
// the next call. A new job's first call comes after kFirst supersteps, and the windows double up to α₀: who was placed
// badly loses in each of them, and what is not sure yet after a few waits for the next call (noise, the budget).
//
// Noise: what is compared are the largest of many noisy values, and the smallest that a search finds among many
// mappings, so that some gain is always seen. A plan has to gain more than kSure standard errors of it, which the spread
// of the last superstep against the window's mean shows; and never less than kLeast of the superstep. That is why no
// rank is moved back and forth. And a rank that makes the superstep shorter by less than kSlack of that stays, although moving
// in the shadow of a longer move costs nothing: so one slow node costs one move. But who is so near the longest that noise
// hides who of them it will be goes along in that shadow, if a faster processor is idle: alone, it would cost a pause later.
//
// Speeds that change for a while (Processor::cpu_error) don't average out in a window. So a gain that compares two of them has to be more
// than kSure standard errors of their ratio, too.
//
// Structure: where work grows, alternates or wanders from rank to rank, that spread is large, and no noise. What all ranks
// have in common is taken out of it, and ranks count by their work. If it still hides what the best mapping gains, then the
// part of it counts that makes no superstep's computation longer, whatever the work (replay.h): its gain is the mean over the
// window's supersteps, each replayed under both mappings, and kLeast is enough.
#pragma once

#include <cstdint>

#include "operator/decide/model/strategy.h"

namespace bsp::decide {

// The heuristic, and the pace that belongs to it (early_calls, first_alpha).
void take_heuristic(Params& params, Heuristic heuristic);

// Whether H follows from the supersteps so far: expected_supersteps is not given.
bool goes_by_age(const Case& c);

// H, supersteps.
double horizon_of(const Case& c);

// What a wave may cost by kRisk, s, given what the job owes; infinite where H doesn't go by the age.
double budget_of(const Case& c, double owed);

// Relative standard error of the window's mean instructions of a rank, by the last superstep's distance from it, less the
// factor that all ranks have in common. Ranks count by the square of their work. With an allowance for few ranks; 0 with
// less than two supersteps.
double noise_of(const Metrics& metrics);

struct AutoRule {
  static constexpr std::uint64_t kFirst = 4;    // supersteps before a new job's first call
  static constexpr std::uint64_t kBetween = 2;  // supersteps between two waves of one mapping
  static constexpr std::uint64_t kSoon = 6;     // supersteps from wave to wave, what is lost at the pause counted
  static constexpr double kHope = 2;            // h, supersteps to come for each that has been
  static constexpr double kSure = 3;            // standard errors
  static constexpr double kLeast = 0.005;       // of a superstep
  static constexpr double kRisk = 0.009;        // of the job's time so far, for good …
  static constexpr double kShare = 0.5;         // … or of what staying has cost so far
  static constexpr double kSlack = 0.5;         // of what counts as a gain
  static constexpr double kNear = 2;            // times what counts as a gain
};

}  // namespace bsp::decide
