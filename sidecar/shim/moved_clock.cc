// The process detects a move to another machine by the kernel's boot id. It then adds an offset to every monotonic
// clock, so that the clock continues from where it stopped, advanced by the wall-clock time of the pause (never
// backwards, should the two machines' wall clocks differ). The functions here intercept the calls of the program and
// of every library; without an offset they cost one load more than glibc's.
#include "sidecar/shim/moved_clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/timerfd.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "sidecar/shim/export.h"
#include "sidecar/shim/moved_cpu_time.h"
#include "sidecar/shim/nanoseconds.h"
#include "sidecar/shim/proc_files.h"
#include "sidecar/shim/timer_descriptors.h"

namespace bsp::shim {
namespace {

std::atomic<std::int64_t> offset_ns{0};  // other threads read the clock while the thread at the gate sets it
std::optional<std::string> boot_id;
std::int64_t stopped_monotonic_ns = 0;
std::int64_t stopped_realtime_ns = 0;

using ClockGettime = int (*)(clockid_t, timespec*);

ClockGettime find_clock_gettime() { return reinterpret_cast<ClockGettime>(dlsym(RTLD_NEXT, "clock_gettime")); }

std::int64_t kernel_ns(clockid_t clock) {
  timespec t;
  kernel_clock(clock, &t);
  return in_ns(t.tv_sec, t.tv_nsec);
}

std::optional<std::string> read_boot_id() { return read_text("/proc/sys/kernel/random/boot_id"); }

bool is_monotonic(clockid_t clock) {
  return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_MONOTONIC_COARSE ||
         clock == CLOCK_BOOTTIME || clock == CLOCK_BOOTTIME_ALARM;
}

// The clock of a timer descriptor, as the kernel shows it: CLOCK_REALTIME if it is none. Nothing, with errno, if it can't be read.
std::optional<clockid_t> clock_of_timer(int fd) {
  const auto text = read_text("/proc/self/fdinfo/" + std::to_string(fd));
  if (!text && errno != ENOENT) return {};
  int clock = CLOCK_REALTIME;
  if (const auto at = text ? text->find("clockid:") : std::string::npos; at != std::string::npos)
    std::sscanf(text->c_str() + at, "clockid: %d", &clock);
  return clock;
}

}  // namespace

int kernel_clock(clockid_t clock, timespec* t) {
  static ClockGettime const next = find_clock_gettime();
  return next(clock, t);
}

std::int64_t monotonic_offset_ns() { return offset_ns; }

void clock_before_stop() {
  boot_id = read_boot_id();
  stopped_monotonic_ns = kernel_ns(CLOCK_MONOTONIC) + offset_ns;
  stopped_realtime_ns = kernel_ns(CLOCK_REALTIME);
}

void clock_after_stop() {
  // Without an answer it may have moved; if it has not, the offset only repeats what the clock does.
  if (const auto now_id = read_boot_id(); now_id && now_id == boot_id) return;
  std::int64_t pause = kernel_ns(CLOCK_REALTIME) - stopped_realtime_ns;
  if (pause < 0) pause = 0;
  offset_ns = stopped_monotonic_ns + pause - kernel_ns(CLOCK_MONOTONIC);
}

double wtime() {
  timespec t;
  kernel_clock(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec) + 1e-9 * static_cast<double>(offset_ns);
}

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT

extern "C" {

BSP_EXPORT int clock_gettime(clockid_t clock, timespec* t) noexcept {
  const int rc = kernel_clock(clock, t);
  if (rc != 0) return rc;
  if (is_monotonic(clock)) {
    if (offset_ns != 0) [[unlikely]]
      *t = later(*t, offset_ns);
  } else if (const std::int64_t used = cpu_time_offset(clock); used != 0) [[unlikely]] {
    *t = later(*t, used);
  }
  return rc;
}

// Absolute deadlines are in the program's time; the kernel needs its own.
BSP_EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* request, timespec* remaining) {
  using Next = int (*)(clockid_t, int, const timespec*, timespec*);
  static const auto next = reinterpret_cast<Next>(dlsym(RTLD_NEXT, "clock_nanosleep"));
  if (offset_ns == 0 || !(flags & TIMER_ABSTIME) || !is_monotonic(clock) || !is_time(*request))
    return next(clock, flags, request, remaining);
  const timespec deadline = later(*request, -offset_ns);
  if (deadline.tv_sec < 0) return 0;
  return next(clock, flags, &deadline, remaining);
}

BSP_EXPORT int timerfd_settime(int fd, int flags, const itimerspec* value, itimerspec* old) noexcept {
  using Next = int (*)(int, int, const itimerspec*, itimerspec*);
  static const auto next = reinterpret_cast<Next>(dlsym(RTLD_NEXT, "timerfd_settime"));
  const bool armed = value != nullptr && (value->it_value.tv_sec != 0 || value->it_value.tv_nsec != 0);
  itimerspec shifted = value != nullptr ? *value : itimerspec{};
  if (offset_ns != 0 && (flags & TFD_TIMER_ABSTIME) && armed && is_time(value->it_value)) {
    const auto clock = clock_of_timer(fd);
    if (!clock) return -1;
    if (is_monotonic(*clock)) shifted.it_value = later(value->it_value, -offset_ns);
    if (shifted.it_value.tv_sec < 0) shifted.it_value = {0, 1};  // already expired; 0 would disarm it
  }
  timer_changes(fd);
  const int rc = next(fd, flags, value != nullptr ? &shifted : nullptr, old);
  timer_changes(fd);  // again, in case the timer was recorded before the kernel had the new time
  return rc;
}

BSP_EXPORT int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                      const timespec* until) {
  using Next = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  static const auto next = reinterpret_cast<Next>(dlsym(RTLD_NEXT, "pthread_cond_clockwait"));
  if (next == nullptr) return ENOSYS;
  if (offset_ns == 0 || !is_monotonic(clock) || !is_time(*until)) return next(condition, mutex, clock, until);
  timespec deadline = later(*until, -offset_ns);
  if (deadline.tv_sec < 0) deadline = {0, 0};
  return next(condition, mutex, clock, &deadline);
}

}  // extern "C"
