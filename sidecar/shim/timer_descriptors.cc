#include "sidecar/shim/timer_descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sidecar/shim/moved_clock.h"

#ifndef TFD_IOC_SET_TICKS  // linux/timerfd.h, which glibc's header excludes
#define TFD_IOC_SET_TICKS _IOW('T', 0, std::uint64_t)
#endif

namespace bsp::shim {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
// By how many ns a timer may differ from its record, which is read in two steps.
constexpr std::int64_t kTolerance = 1'000'000;

constexpr int kDueWithinMs = 1000;

struct Timer {
  int fd = -1;
  clockid_t clock = CLOCK_MONOTONIC;
  int flags = 0;
  std::uint64_t ticks = 0;    // unread expirations
  std::int64_t left = 0;      // ns; 0: not armed
  std::int64_t interval = 0;  // ns
  std::int64_t expires = 0;   // on the program's clock
};

std::recursive_mutex noted_lock;  // recursive: reading a timer closes a file, which is intercepted too
std::vector<Timer> noted;
std::atomic<bool> around_stop{false};

// Reads the timer as fdinfo shows it; nothing if the descriptor isn't a timer.
std::optional<Timer> read_timer(int fd) {
  // Brings fdinfo up to date: with unread expirations it would show neither their number nor the next one.
  itimerspec ignored;
  timerfd_gettime(fd, &ignored);
  const int info = ::open(("/proc/self/fdinfo/" + std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC);
  if (info < 0) return {};
  char text[1024];
  const ssize_t got = ::read(info, text, sizeof text - 1);
  ::close(info);
  text[got > 0 ? got : 0] = '\0';
  const char* at = std::strstr(text, "clockid:");
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
  timer.left = left[0] * kSecond + left[1];
  timer.interval = interval[0] * kSecond + interval[1];
  return timer;
}

std::vector<int> timers_open() {
  std::vector<int> found;
  DIR* dir = opendir("/proc/self/fd");
  if (dir == nullptr) return found;
  while (const dirent* entry = readdir(dir)) {
    char target[32] = "";
    if (readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1) > 0 &&
        std::strcmp(target, "anon_inode:[timerfd]") == 0)
      found.push_back(std::atoi(entry->d_name));
  }
  closedir(dir);
  return found;
}

std::int64_t now(clockid_t clock) {  // the program's time: clock_gettime is moved_clock's
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

// Reads the timer with the time at which it expires. Repeats if the thread was preempted between reading timer and
// clock.
std::optional<Timer> read_with_expiry(int fd) {
  constexpr std::int64_t kPreempted = kTolerance / 4;
  std::optional<Timer> timer;
  for (int attempt = 0; attempt < 20; ++attempt) {
    timer = read_timer(fd);
    if (!timer) return {};
    const std::int64_t before = now(timer->clock);
    timer = read_timer(fd);
    if (!timer) return {};
    timer->expires = now(timer->clock) + timer->left;
    if (now(timer->clock) - before < kPreempted) break;
  }
  return timer;
}

bool expires_when_noted(const Timer& was, const Timer& is) {
  if (is.left == 0) return was.interval == 0;  // it has expired meanwhile
  std::int64_t difference = std::abs(is.expires - was.expires);
  if (was.interval != 0) {
    difference %= was.interval;
    difference = std::min(difference, was.interval - difference);
  }
  return difference <= kTolerance;
}

timespec as_timespec(std::int64_t ns) { return {.tv_sec = ns / kSecond, .tv_nsec = ns % kSecond}; }

void set(const Timer& timer) {
  const itimerspec value{.it_interval = as_timespec(timer.interval), .it_value = as_timespec(timer.expires)};
  timerfd_settime(timer.fd, TFD_TIMER_ABSTIME | (timer.flags & TFD_TIMER_CANCEL_ON_SET), &value, nullptr);
  if (timer.ticks == 0) return;
  // Setting the timer has reset its expirations. One that is due counts at once, but not necessarily before the call
  // returns.
  if (timer.expires <= now(timer.clock)) {
    pollfd due{.fd = timer.fd, .events = POLLIN, .revents = 0};
    ::poll(&due, 1, kDueWithinMs);
  }
  const auto is = read_timer(timer.fd);
  const std::uint64_t ticks = timer.ticks + (is ? is->ticks : 0);
  ioctl(timer.fd, TFD_IOC_SET_TICKS, &ticks);
}

}  // namespace

void timers_before_stop() {
  std::lock_guard guard(noted_lock);
  around_stop.store(true);
  for (const int fd : timers_open()) {
    const auto timer = read_with_expiry(fd);
    if (timer && timer->left != 0) noted.push_back(*timer);
  }
}

void timers_after_stop() {
  std::lock_guard guard(noted_lock);
  while (!noted.empty()) {
    const Timer was = noted.back();
    noted.pop_back();
    if (const auto is = read_with_expiry(was.fd); is && !expires_when_noted(was, *is)) set(was);
  }
  around_stop.store(false);
}

void timer_changes(int fd) {
  if (!around_stop.load()) [[likely]]
    return;
  std::lock_guard guard(noted_lock);
  std::erase_if(noted, [fd](const Timer& timer) { return timer.fd == fd; });
}

}  // namespace bsp::shim
