// Whether Auto's last wave, or the last few that followed each other soon, did what they were made for, and the way back if
// they made supersteps longer.
//
//   slower    mean superstep of the window after > that of the window before + kSure standard errors of the two, and
//             by more than kLeast of it
//   to blame  slower, too, than the window before would have been with the loads of now: times what the model has for the
//             mapping before ÷ what it had then
//
// All of it is then taken back: its ranks go to where they came from, if the slots are still free and the pauses are worth it. Who
// came to a slot that another rank of it had left goes first, and the other one after the next window, if that is slower, too.
// Once, as no rank returns to where it was taken back from; the next call comes kCooldown·α₀ later, and after the job's second
// such wave as many supersteps later as the job is old (Cadence::cooling).
// Only what is seen over kMeasured supersteps on both sides counts, so that waves which follow each other soon are judged together,
// by the supersteps before the first. The call after a wave that can be judged comes after as many: a wave may be the first to fill a
// link, and ranks would pay for that until the end of a long window.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "operator/decide/model/adaptation.h"
#include "operator/decide/model/strategy.h"

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
// The wave that the call at `now` plans; `model`: what the model has for the mapping before it, s.
Judged judged_from(const Case& c, Superstep now, double model);

// Whether the window's mean superstep is longer than `seconds`, of before the wave, by more than noise.
bool is_slower_than(const Case& c, double seconds);

// Where each rank is after the first wave back, and where it was before the judged ones.
struct WayBack {
  std::vector<ProcessorId> first, home;

  [[nodiscard]] bool is_short() const { return first == home; }
};
// Nothing if a slot is taken, or a rank may not move.
std::optional<WayBack> way_back(const Case& c);

}  // namespace bsp::decide
