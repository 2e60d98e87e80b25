// How long this operator has known a wave in each of its phases: what its limits count.
//
// A wave is stored with the times at which its phases began, but on the clock of whichever operator was leader then, and it
// may have been without an operator since. So a limit begins when this leader first sees the wave in that phase, on this
// process' steady clock. Time in which it did not reconcile (it was stopped, or a write took long) does not count: whatever
// a phase waits for was asked for before the wave gives up.
#pragma once

#include <map>
#include <optional>

#include "base/core/clock.h"
#include "operator/migrate/wave.h"

namespace bsp::migrate {

class Contact {
 public:
  // Call it in each reconcile, with the wave that is stored; null: none.
  void note(const Wave* wave, SteadyTime now);
  [[nodiscard]] const std::map<Phase, SteadyTime>& since() const { return since_; }

 private:
  std::optional<std::uint32_t> number_;
  SteadyTime last_{};
  std::map<Phase, SteadyTime> since_;
};

}  // namespace bsp::migrate
