// How long this operator has had to do with a wave in each of its phases: what its limits are counted on.
//
// A wave is stored with the times at which its phases began, but by the clock of whichever operator was leader then, and
// nobody may have looked since. So a limit begins when this leader meets the wave in that phase, on this process' steady
// clock, and time in which it did not look (it was stopped, or a write took long) does not count: whatever a phase waits
// for was asked for before the phase is given up.
#pragma once

#include <map>
#include <optional>

#include "base/core/clock.h"
#include "operator/migrate/wave.h"

namespace bsp::migrate {

class Contact {
 public:
  // To be called at each look with the wave that is stored; null: none.
  void look(const Wave* wave, SteadyTime now);
  [[nodiscard]] const std::map<Phase, SteadyTime>& since() const { return since_; }

 private:
  std::optional<std::uint32_t> number_;
  SteadyTime last_{};
  std::map<Phase, SteadyTime> since_;
};

}  // namespace bsp::migrate
