// Timer descriptors (timerfd) of the program across a move.
//
// CRIU restarts a timer with the time it had left when the process was dumped. It is therefore late by the pause, and
// a timer set to an absolute time may be up to a second early (CRIU adds only the clock's whole seconds). A program
// observes a timer by when it expires on its own clocks. So that time is recorded before the process stops, and the
// timer is set to it afterwards if the kernel's differs.
#pragma once

namespace bsp::shim {

// Call before the stop, and after clock_after_stop() of moved_clock.h.
void timers_before_stop();
void timers_after_stop();

// Another thread is setting or closing it, or creating one with its number: discards the recorded state.
void timer_changes(int fd);

}  // namespace bsp::shim
