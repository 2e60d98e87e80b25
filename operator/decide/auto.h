// Auto, ours: the moves that make the rest of the job short.
//
//   F = Σ over the waves (pause + kBetween · superstep before the next one) + H · superstep afterwards          s
//
// H, supersteps, is what is left of the job, as far as that is known (horizon Window):
//   expected_supersteps given    what is left of them
//   else                         h = kHope times as many as there have been since the last wave
// With horizon Superstep, H is 1.
//
// The second is the rule of ski rental. Staying loses g a superstep, moving costs c, and is paid for after t = c/(h·g)
// supersteps. By then the job has lost t·g = c/h, and c with the move. Who knows its length T loses min(T·g, c) at
// least: for T < t both lose T·g; else it is c/h or more. So ours loses at most 1 + h times what must be lost, whatever
// T is, and pays for its moves at most h times what staying had cost it before, all moves together. h = 1 would have
// the least such bound that a rule has which doesn't know T; h = 2 gains more where a mapping takes many waves
// (docs/decisions.md). A call comes when what was found starts to pay, but never less than α₀ after the last; what
// nobody foresaw waits for the next call.
//
// Noise: what is compared are the largest of many noisy figures, and the smallest that a search finds among many
// mappings, so that some gain is always seen. A plan has to gain more than kSure standard errors of it, which the spread
// of the last superstep against the window's mean tells; and never less than kLeast of the superstep. That is why nobody
// is moved back and forth.
#pragma once

#include <cstdint>

#include "operator/decide/strategy.h"

namespace bsp::decide {

// Whether H follows from the supersteps so far: expected_supersteps is not given.
bool goes_by_age(const Case& c);

// H, supersteps.
double horizon_of(const Case& c);

// Relative standard error of the window's mean instructions of a rank, by the last superstep's distance from it, with an
// allowance for few ranks; 0 with less than two supersteps.
double noise_of(const Metrics& metrics);

struct AutoRule {
  static constexpr std::uint64_t kBetween = 2;  // supersteps between two waves of one mapping
  static constexpr std::uint64_t kSoon = 6;     // supersteps from wave to wave, what is lost at the pause counted
  static constexpr double kHope = 2;            // h, supersteps to come for each that has been
  static constexpr double kSure = 3;            // standard errors
  static constexpr double kLeast = 0.005;       // of a superstep
};

}  // namespace bsp::decide
