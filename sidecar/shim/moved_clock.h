// Monotonic time that continues across a move: another machine's CLOCK_MONOTONIC counts from another boot.
#pragma once

#include <cstdint>

namespace bsp::shim {

void clock_before_stop();
void clock_after_stop();

// Seconds since an arbitrary point, as MPI_Wtime returns them; continuous across a move.
double wtime();

// What the monotonic clocks are ahead of this machine's.
std::int64_t monotonic_offset_ns();

}  // namespace bsp::shim
