// The clock of a simulated world: from begin() on, clock_gettime() of this process shows it, to whatever library asks.
#pragma once

#include <chrono>

namespace bsp::simulation {

using Nanoseconds = std::chrono::nanoseconds;

void begin_virtual_time();
// Since the world began.
void set_virtual_time(Nanoseconds since);
// Whoever runs now has a wall clock that is off by so much.
void set_wall_clock_error(Nanoseconds error);

}  // namespace bsp::simulation
