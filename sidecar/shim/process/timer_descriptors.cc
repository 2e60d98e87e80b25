#include "sidecar/shim/process/timer_descriptors.h"

#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sidecar/shim/process/message.h"
#include "sidecar/shim/process/moved_clock.h"
#include "sidecar/shim/process/nanoseconds.h"
#include "sidecar/shim/process/proc_files.h"

#ifndef TFD_IOC_SET_TICKS  // linux/timerfd.h, which glibc's header excludes
#define TFD_IOC_SET_TICKS _IOW('T', 0, std::uint64_t)
#endif

namespace bsp::shim {
namespace {

// By how many ns a timer may differ from its record, which is read in two steps.
constexpr std::int64_t kTolerance = 1'000'000;
constexpr std::int64_t kPreempted = kTolerance / 4;

struct Timer {
  int fd = -1;
  clockid_t clock = CLOCK_MONOTONIC;
  int flags = 0;
  std::uint64_t ticks = 0;    // unread expirations
  std::int64_t left = 0;      // ns; 0: not armed
  std::int64_t interval = 0;  // ns
  std::int64_t expires = 0;   // on the program's clock
};

struct Noted {
  Timer timer;
  std::optional<Timer> reference;  // of a periodic timer
};

std::recursive_mutex noted_lock;  // recursive: reading a timer closes a file, which is intercepted too
std::vector<Noted> noted;
std::atomic<bool> around_stop{false};

// Reads the timer as fdinfo shows it; nothing if the descriptor isn't a timer.
std::optional<Timer> read_timer(int fd) {
  // Brings fdinfo up to date: with unread expirations it would show neither their number nor the next one.
  itimerspec ignored;
  timerfd_gettime(fd, &ignored);
  const std::string text = text_needed("/proc/self/fdinfo/" + std::to_string(fd));
  const char* at = std::strstr(text.c_str(), "clockid:");
  if (at == nullptr) return {};
  Timer timer{.fd = fd};
  unsigned long long ticks = 0;
  long long left[2] = {};
  long long interval[2] = {};
  if (std::sscanf(at, "clockid: %d ticks: %llu settime flags: %o it_value: (%lld, %lld) it_interval: (%lld, %lld)",
                  &timer.clock, &ticks, reinterpret_cast<unsigned*>(&timer.flags), &left[0], &left[1], &interval[0],
                  &interval[1]) != 7)
    return {};
  timer.ticks = ticks;
  timer.left = in_ns(left[0], left[1]);
  timer.interval = in_ns(interval[0], interval[1]);
  return timer;
}

std::vector<int> timers_open() {
  std::vector<int> found;
  for (const int fd : numbers_needed("/proc/self/fd")) {
    char target[32] = "";
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (readlink(link.c_str(), target, sizeof target - 1) > 0 && std::strcmp(target, "anon_inode:[timerfd]") == 0)
      found.push_back(fd);
  }
  return found;
}

std::int64_t now(clockid_t clock) {  // the program's time: clock_gettime is moved_clock's
  timespec t{};
  clock_gettime(clock, &t);
  return in_ns(t.tv_sec, t.tv_nsec);
}

// Reads the timer with the time at which it expires. Repeats if the thread was preempted between reading timer and
// clock, or if a periodic timer has expired while it was read: fdinfo then shows no time left.
std::optional<Timer> read_with_expiry(int fd) {
  std::optional<Timer> timer;
  for (int attempt = 0; attempt < 20; ++attempt) {
    timer = read_timer(fd);
    if (!timer) return {};
    const std::int64_t before = now(timer->clock);
    timer = read_timer(fd);
    if (!timer) return {};
    timer->expires = sum_of(now(timer->clock), timer->left);
    const bool expired = timer->left == 0 && timer->interval != 0;
    if (!expired && now(timer->clock) - before < kPreempted) break;
  }
  return timer;
}

// A timer of the same kind that nobody reads: after the stop it is as late as the program's.
std::optional<Timer> start_reference(const Timer& timer) {
  constexpr std::int64_t kNever = 100LL * 365 * 24 * 3600 * kNsOfSecond;
  const int fd = timerfd_create(timer.clock, TFD_CLOEXEC | TFD_NONBLOCK);
  if (fd < 0) die("the program's timer (descriptor %d) can't be kept: %s", timer.fd, std::strerror(errno));
  const int flags = timer.flags & TFD_TIMER_ABSTIME;
  const itimerspec value{.it_interval = {}, .it_value = as_timespec(kNever + (flags != 0 ? now(timer.clock) : 0))};
  timerfd_settime(fd, flags, &value, nullptr);
  return read_with_expiry(fd);
}

// Of a periodic timer: how many of its expirations the kernel has counted since it was recorded. `shift`: how much later
// they come than before the stop, as its reference tells, which CRIU read and restarted some milliseconds before or after
// it.
std::int64_t counted_since(const Timer& was, const Timer& is, std::int64_t shift) {
  const std::int64_t later_by = difference_of(difference_of(is.expires, was.expires), shift);
  return std::llround(static_cast<double>(later_by) / static_cast<double>(was.interval));
}

bool runs_as_recorded(const Timer& was, const Timer& is, std::int64_t counted) {
  const std::int64_t off = difference_of(difference_of(is.expires, was.expires), product_of(counted, was.interval));
  return -kTolerance <= off && off <= kTolerance;
}

// How many times it should have expired since it was recorded.
std::int64_t due(const Timer& was) {
  const std::int64_t elapsed = difference_of(now(was.clock), was.expires);
  return was.interval == 0 || elapsed < 0 ? 0 : elapsed / was.interval + 1;
}

// Lets the timer expire as recorded. A relative timer stays one, because CRIU restarts it exactly. `unread`: expirations
// to be read besides those due; negative where another thread has already read some that came too early.
void set(const Timer& was, std::int64_t unread) {
  const int absolute = was.flags & TFD_TIMER_ABSTIME;
  std::int64_t ticks = 0;
  std::optional<Timer> is;
  for (int attempt = 0; attempt < 20; ++attempt) {  // again if the thread was preempted meanwhile
    const std::int64_t passed = due(was);
    const std::int64_t expires = sum_of(was.expires, product_of(passed, was.interval));
    const std::int64_t value =
        absolute != 0 ? expires : std::max<std::int64_t>(1, difference_of(expires, now(was.clock)));
    const itimerspec spec{.it_interval = as_timespec(was.interval), .it_value = as_timespec(value)};
    timerfd_settime(was.fd, was.flags & (TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET), &spec, nullptr);
    ticks = unread + passed;
    is = read_with_expiry(was.fd);
    if (!is || std::abs(difference_of(is->expires, expires)) <= kPreempted || (was.interval == 0 && is->left == 0))
      break;
  }
  if (ticks <= 0) return;
  const std::uint64_t all = static_cast<std::uint64_t>(ticks) + (is ? is->ticks : 0);
  ioctl(was.fd, TFD_IOC_SET_TICKS, &all);  // setting the timer has reset them
}

void restore(const Timer& was, std::int64_t shift) {
  const auto is = read_with_expiry(was.fd);
  if (!is || (is->left == 0 && was.interval == 0)) return;  // closed, or expired
  // Unread expirations stop a periodic timer until it is asked for, and CRIU restores it disarmed.
  if (is->left == 0) return set(was, static_cast<std::int64_t>(was.ticks));
  const std::int64_t counted = was.interval == 0 ? 0 : counted_since(was, *is, shift);
  if (!runs_as_recorded(was, *is, counted)) set(was, static_cast<std::int64_t>(is->ticks) - counted);
}

}  // namespace

void timers_before_stop() {
  std::lock_guard guard(noted_lock);
  around_stop.store(true);
  for (const int fd : timers_open()) {
    const auto timer = read_with_expiry(fd);
    if (!timer || timer->left == 0) continue;
    Noted note{.timer = *timer, .reference = {}};
    if (timer->interval != 0) note.reference = start_reference(*timer);
    noted.push_back(note);
  }
}

void timers_after_stop() {
  std::lock_guard guard(noted_lock);
  while (!noted.empty()) {
    const auto [was, reference] = noted.back();
    noted.pop_back();
    std::int64_t shift = 0;
    if (reference) {
      if (const auto is = read_with_expiry(reference->fd)) shift = difference_of(is->expires, reference->expires);
      ::close(reference->fd);
    }
    restore(was, shift);
  }
  around_stop.store(false);
}

void timer_changes(int fd) {
  if (!around_stop.load()) [[likely]]
    return;
  std::lock_guard guard(noted_lock);
  const auto at = std::ranges::find(noted, fd, [](const Noted& note) { return note.timer.fd; });
  if (at == noted.end()) return;
  const auto reference = at->reference;
  noted.erase(at);
  if (reference) ::close(reference->fd);  // calls this function again
}

}  // namespace bsp::shim
