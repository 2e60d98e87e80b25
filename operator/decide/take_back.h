// Whether Auto's last wave did what it was made for, and the way back if it made supersteps longer.
//
//   slower    mean superstep of the window after > that of the window before + kSure standard errors of the two, and
//             by more than kLeast of it
//   to blame  slower, too, than the window before would have been with the loads of now: times what the model has for the
//             mapping before ÷ what it had then
//
// The wave is then taken back: its ranks go to where they came from, if the slots are still free and the pause is worth it.
// Once, as no rank returns to where it was taken back from; the next call comes kCooldown·α₀ later, and after the job's second
// such wave as many supersteps later as the job is old (Cadence::cooling).
// Only what is seen over kMeasured supersteps on both sides counts, so that of waves which follow each other soon the last is judged,
// by the supersteps before the first. The call after a wave that can be judged comes after as many: a wave may be the first to fill a
// link, and ranks would pay for that until the end of a long window.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "operator/decide/adaptation.h"
#include "operator/decide/strategy.h"

namespace bsp::decide {

struct TakeBack {
  static constexpr double kSure = 3;                          // standard errors
  static constexpr double kLeast = 0.01;                      // of a superstep
  static constexpr std::uint64_t kMeasured = kLeastMeasured;  // supersteps
  static constexpr std::uint64_t kCooldown = 4;               // times α₀
};

struct Verdict {
  bool measured = false;  // the window is long enough to judge by
  bool open = false;      // the wave is still to be judged, or to be taken back
  bool slower = false;
};
Verdict judge_wave(const Case& c);

// Whether the window's mean superstep is longer than `seconds`, of before the wave, by more than noise.
bool is_slower_than(const Case& c, double seconds);

// Where each rank was before the last wave; nothing if a slot is taken, or a rank may not move.
std::optional<std::vector<ProcessorId>> before_last_wave(const Case& c);

}  // namespace bsp::decide
