// CPU time that continues over a move. CRIU restores a process as a new one, whose CPU clocks start at zero: without this a
// program that subtracts two readings (Fortran's cpu_time, C's clock) gets a negative time.
#pragma once

#include <time.h>

#include <cstdint>

namespace bsp::shim {

// The kernel's clock_gettime, before any offset.
int kernel_clock(clockid_t clock, timespec* t);

// Around the stop at a gate, on the thread that closes the epoch.
void cpu_time_before_stop();
void cpu_time_after_stop();

// Nanoseconds to add to what the kernel says of `clock`: 0 unless it is a CPU clock of this process or of the calling thread.
std::int64_t cpu_time_offset(clockid_t clock);

}  // namespace bsp::shim
