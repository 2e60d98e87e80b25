// The process detects a move to another machine by the kernel's boot id, or to other clocks of the same one by the time
// namespace. It then adds an offset to every monotonic clock, so that the clock continues from where it stopped, advanced by
// the wall-clock time of the pause (never backwards, should the two machines' wall clocks differ). The functions here
// intercept the calls of the program and of every library; without an offset they cost two loads more than glibc's.
#include "sidecar/shim/process/moved_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "sidecar/shim/process/deadlines.h"
#include "sidecar/shim/process/export.h"
#include "sidecar/shim/process/moved_cpu_time.h"
#include "sidecar/shim/process/nanoseconds.h"
#include "sidecar/shim/process/proc_files.h"
#include "sidecar/shim/process/timer_descriptors.h"

namespace bsp::shim {
namespace {

// A boot of a machine and a time namespace, in which CLOCK_MONOTONIC counts. It is read without allocating: a thread may wait
// for the offset while it holds an allocator's lock (jemalloc's reads the clock).
class Clocks {
 public:
  static Clocks current() {
    Clocks found;
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    found.known_ = fd >= 0 && read(fd, found.boot_, sizeof found.boot_) > 0;
    if (fd >= 0) close(fd);
    // Kernels without time namespaces have no such file.
    if (readlink("/proc/self/ns/time", found.name_space_, sizeof found.name_space_) < 0) found.name_space_[0] = '\0';
    return found;
  }
  // False if either couldn't be read.
  [[nodiscard]] bool are(const Clocks& other) const {
    return known_ && other.known_ && std::memcmp(boot_, other.boot_, sizeof boot_) == 0 &&
           std::memcmp(name_space_, other.name_space_, sizeof name_space_) == 0;
  }

 private:
  bool known_ = false;
  char boot_[64] = {};
  char name_space_[64] = {};
};

// What the program's clocks are ahead of this machine's, in ns; the last in ticks. Each clock counts in its own way from the boot.
struct Offsets {
  std::int64_t monotonic = 0;
  std::int64_t raw = 0;
  std::int64_t boottime = 0;
  std::int64_t times = 0;

  [[nodiscard]] std::int64_t of(clockid_t clock) const {
    switch (clock) {
      case CLOCK_MONOTONIC:
      case CLOCK_MONOTONIC_COARSE:
        return monotonic;
      case CLOCK_MONOTONIC_RAW:
        return raw;
      case CLOCK_BOOTTIME:
      case CLOCK_BOOTTIME_ALARM:
        return boottime;
      default:
        return 0;
    }
  }
};

constexpr Offsets kNotMoved;
std::atomic<const Offsets*> clock_offsets{&kNotMoved};  // null while the process is stopped and may move
const Offsets* before_stop = &kNotMoved;
Offsets* after_move = nullptr;  // for the next move; others are kept, since a thread may be reading them
Offsets stopped_at;             // the program's clocks
std::int64_t stopped_realtime_ns = 0;
pthread_t at_gate;
Clocks clocks_before_stop;

// Once the thread at the gate has published them. That thread itself, in a signal's handler, has those before the stop.
const Offsets& offsets_after_stop() {
  constexpr int kLongestMs = 10'000;  // a thread that the one at the gate waits for must not wait for ever
  if (pthread_equal(at_gate, pthread_self()) != 0) return *before_stop;
  for (int ms = 0; ms < kLongestMs; ++ms) {
    if (const Offsets* const current = clock_offsets) return *current;
    const timespec pause{0, 1'000'000};
    syscall(SYS_nanosleep, &pause, nullptr);
  }
  return *before_stop;
}

const Offsets& current_offsets() {
  const Offsets* const current = clock_offsets;
  return current != nullptr ? *current : offsets_after_stop();
}

std::int64_t kernel_ns(clockid_t clock) {
  timespec t;
  kernel_clock(clock, &t);
  return in_ns(t.tv_sec, t.tv_nsec);
}

// The machine's clocks.
Offsets readings() {
  return {.monotonic = kernel_ns(CLOCK_MONOTONIC),
          .raw = kernel_ns(CLOCK_MONOTONIC_RAW),
          .boottime = kernel_ns(CLOCK_BOOTTIME),
          .times = syscall(SYS_times, nullptr)};
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
  static const auto next = BSP_NEXT(clock_gettime);
  return next(clock, t);
}

std::int64_t times_offset() { return current_offsets().times; }

bool is_monotonic(clockid_t clock) {
  constexpr unsigned kMonotonic = 1u << CLOCK_MONOTONIC | 1u << CLOCK_MONOTONIC_RAW | 1u << CLOCK_MONOTONIC_COARSE |
                                  1u << CLOCK_BOOTTIME | 1u << CLOCK_BOOTTIME_ALARM;
  return clock >= 0 && clock < 32 && (kMonotonic >> clock & 1u) != 0;
}

std::int64_t monotonic_ns(clockid_t clock) {
  for (;;) {
    const Offsets& before = current_offsets();
    const std::int64_t time = sum_of(kernel_ns(clock), before.of(clock));
    if (&current_offsets() == &before) [[likely]]  // else it has moved in between
      return time;
  }
}

timespec on_this_machine(clockid_t clock, const timespec& time) {
  const std::int64_t offset = is_time(time) ? current_offsets().of(clock) : 0;
  if (offset == 0) return time;
  const timespec here = later(time, -offset);
  return here.tv_sec >= 0 ? here : timespec{0, 1};  // long past; 0 would disarm a timer
}

void clock_before_stop() {
  if (after_move == nullptr) after_move = new Offsets;
  clocks_before_stop = Clocks::current();
  before_stop = clock_offsets;
  const Offsets now = readings();
  stopped_realtime_ns = kernel_ns(CLOCK_REALTIME);
  stopped_at = {.monotonic = now.monotonic + before_stop->monotonic,
                .raw = now.raw + before_stop->raw,
                .boottime = now.boottime + before_stop->boottime,
                .times = now.times + before_stop->times};
  at_gate = pthread_self();
  clock_offsets = nullptr;
}

void clock_after_stop() {
  // Without an answer it may have moved; if it has not, the offsets only repeat what the clocks do.
  if (Clocks::current().are(clocks_before_stop)) {
    clock_offsets = before_stop;
    return;
  }
  static const std::int64_t tick_ns = kNsOfSecond / sysconf(_SC_CLK_TCK);
  const Offsets now = readings();
  const std::int64_t pause = std::max<std::int64_t>(kernel_ns(CLOCK_REALTIME) - stopped_realtime_ns, 0);
  *after_move = {.monotonic = stopped_at.monotonic + pause - now.monotonic,
                 .raw = stopped_at.raw + pause - now.raw,
                 .boottime = stopped_at.boottime + pause - now.boottime,
                 .times = stopped_at.times + pause / tick_ns - now.times};
  clock_offsets = after_move;
  after_move = nullptr;
  wake_waiters();
}

double wtime() { return 1e-9 * static_cast<double>(monotonic_ns()); }

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT

extern "C" {

BSP_EXPORT int clock_gettime(clockid_t clock, timespec* t) noexcept {
  if (is_monotonic(clock)) {
    if (clock_offsets == &kNotMoved) [[likely]] {
      const int rc = kernel_clock(clock, t);
      if (clock_offsets == &kNotMoved) [[likely]]  // else it has moved in between
        return rc;
    }
    *t = as_timespec(monotonic_ns(clock));
    return 0;
  }
  const int rc = kernel_clock(clock, t);
  if (rc != 0) return rc;
  if (const std::int64_t used = cpu_time_offset(clock); used != 0) [[unlikely]]
    *t = later(*t, used);
  return rc;
}

BSP_EXPORT int timerfd_settime(int fd, int flags, const itimerspec* value, itimerspec* old) noexcept {
  static const auto next = BSP_NEXT(timerfd_settime);
  const bool armed = value != nullptr && (value->it_value.tv_sec != 0 || value->it_value.tv_nsec != 0);
  itimerspec shifted = value != nullptr ? *value : itimerspec{};
  if ((flags & TFD_TIMER_ABSTIME) && armed && clock_offsets != &kNotMoved) {
    const auto clock = clock_of_timer(fd);
    if (!clock) return -1;
    shifted.it_value = on_this_machine(*clock, value->it_value);
  }
  timer_changes(fd);
  const int rc = next(fd, flags, value != nullptr ? &shifted : nullptr, old);
  timer_changes(fd);  // again, in case the timer was recorded before the kernel had the new time
  return rc;
}

}  // extern "C"
