// Monotonic time that continues across a move: another machine's CLOCK_MONOTONIC counts from another boot.
#pragma once

#include <time.h>

#include <cstdint>

namespace bsp::shim {

// Around the stop, by the thread at the gate. Until the second call has found out where the process is, other threads wait
// before they read a monotonic clock.
void clock_before_stop();
void clock_after_stop();

// Seconds since an arbitrary point, as MPI_Wtime returns them; continuous across a move.
double wtime();

// What the program's times() is ahead of this machine's, in ticks.
std::int64_t times_offset();

[[nodiscard]] bool is_monotonic(clockid_t clock);
// The program's time.
[[nodiscard]] std::int64_t monotonic_ns(clockid_t clock = CLOCK_MONOTONIC);
// A time of the program as this machine's kernel counts it. Of another clock, or invalid: as it is.
[[nodiscard]] timespec on_this_machine(clockid_t clock, const timespec& time);

}  // namespace bsp::shim
