// Waits of threads for each other until a time of a monotonic clock, across a move.
#pragma once

namespace bsp::shim {

// After a move to another machine: wakes who waits for a condition until a monotonic time, which the program must expect of
// any condition.
void wake_waiters();

}  // namespace bsp::shim
