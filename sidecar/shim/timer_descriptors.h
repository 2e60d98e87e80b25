// Timer descriptors (timerfd) of the program over a move.
//
// CRIU starts a timer again with what was left of it when the process was dumped: late by the pause, and one that was set to an
// absolute time up to a second early (CRIU adds whole seconds of the clock only). What a program can observe of a timer is when
// it expires on its own clocks: that moment is noted before the process stops, and the timer set to it where the kernel's differs.
#pragma once

namespace bsp::shim {

// Around the stop, within clock_before_stop() and clock_after_stop() of moved_clock.h.
void timers_before_stop();
void timers_after_stop();

// Another thread sets or closes it meanwhile, or makes one under its number: what was noted is void.
void timer_changes(int fd);

}  // namespace bsp::shim
