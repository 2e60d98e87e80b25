// Waits of threads for each other until a time of a monotonic clock. The program's time goes on across a move, the kernel's
// doesn't: a deadline reaches the kernel in this machine's time, and who waits while the process moves waits anew.
#include "sidecar/shim/process/deadlines.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <mutex>

#include "sidecar/shim/process/export.h"
#include "sidecar/shim/process/moved_clock.h"
#include "sidecar/shim/process/moved_cpu_time.h"
#include "sidecar/shim/process/nanoseconds.h"
#include "sidecar/shim/process/raw_syscall.h"

namespace bsp::shim {
namespace {

// The condition for which a thread waits until a monotonic time. All are in one list.
class Waiter {
 public:
  Waiter() {
    const std::lock_guard lock(mutex_);
    next_ = first_;
    if (first_ != nullptr) first_->previous_ = this;
    first_ = this;
  }
  ~Waiter() {
    const std::lock_guard lock(mutex_);
    (previous_ != nullptr ? previous_->next_ : first_) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  static void wake_all() {
    const std::lock_guard lock(mutex_);
    for (const Waiter* w = first_; w != nullptr; w = w->next_)
      if (pthread_cond_t* const condition = w->condition.load()) pthread_cond_broadcast(condition);
  }

  std::atomic<pthread_cond_t*> condition{nullptr};

 private:
  static inline constinit std::mutex mutex_;
  static inline constinit Waiter* first_ = nullptr;
  Waiter* previous_ = nullptr;
  Waiter* next_ = nullptr;
};

// `wait` until `until`, as a pthread_cond_ function that returns an error number.
template <class Wait>
int wait_for_condition(pthread_cond_t* condition, clockid_t clock, const timespec* until, const Wait& wait) {
  if (!is_monotonic(clock) || !is_time(*until)) return wait(until);
  thread_local Waiter waiter;
  waiter.condition = condition;
  const timespec here = on_this_machine(clock, *until);
  const int error = wait(&here);
  waiter.condition = nullptr;
  // Another machine's clock may have been past the deadline; a condition may wake without a cause.
  if (error == ETIMEDOUT && monotonic_ns(clock) < in_ns(until->tv_sec, until->tv_nsec)) return 0;
  return error;
}

// `wait` for something that no one else can wake: in periods of the wall clock, which is the same on another machine.
template <class Wait>
int wait_in_periods(clockid_t clock, const timespec* until, const Wait& wait) {
  constexpr std::int64_t kPeriod = kNsOfSecond / 10;
  if (until == nullptr || !is_monotonic(clock) || !is_time(*until)) return wait(clock, until);
  for (;;) {
    const std::int64_t left = difference_of(in_ns(until->tv_sec, until->tv_nsec), monotonic_ns(clock));
    timespec now;
    kernel_clock(CLOCK_REALTIME, &now);
    const timespec end = later(now, std::clamp<std::int64_t>(left, 0, kPeriod));
    if (const int error = wait(CLOCK_REALTIME, &end); error != ETIMEDOUT || left <= 0) return error;
  }
}

// glibc keeps a condition's clock in this bit (nptl/pthreadP.h, COND_CLOCK_MONOTONIC; since 2.25).
clockid_t clock_of(const pthread_cond_t* condition) {
  constexpr unsigned kMonotonic = 2;
  return (__atomic_load_n(&condition->__data.__wrefs, __ATOMIC_RELAXED) & kMonotonic) != 0 ? CLOCK_MONOTONIC
                                                                                           : CLOCK_REALTIME;
}

}  // namespace

void wake_waiters() { Waiter::wake_all(); }

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT

extern "C" {

BSP_EXPORT int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  static const auto next = BSP_NEXT(pthread_cond_timedwait);
  return wait_for_condition(condition, clock_of(condition), until,
                            [&](const timespec* here) { return next(condition, mutex, here); });
}

BSP_EXPORT int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                      const timespec* until) {
  static const auto next = BSP_NEXT(pthread_cond_clockwait);
  return wait_for_condition(condition, clock, until,
                            [&](const timespec* here) { return next(condition, mutex, clock, here); });
}

BSP_EXPORT int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) noexcept {
  static const auto next = BSP_NEXT(pthread_mutex_clocklock);
  return wait_in_periods(clock, until, [&](clockid_t of, const timespec* end) { return next(mutex, of, end); });
}

BSP_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* until) noexcept {
  static const auto next = BSP_NEXT(pthread_rwlock_clockrdlock);
  return wait_in_periods(clock, until, [&](clockid_t of, const timespec* end) { return next(lock, of, end); });
}

BSP_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* until) noexcept {
  static const auto next = BSP_NEXT(pthread_rwlock_clockwrlock);
  return wait_in_periods(clock, until, [&](clockid_t of, const timespec* end) { return next(lock, of, end); });
}

BSP_EXPORT int pthread_clockjoin_np(pthread_t thread, void** result, clockid_t clock, const timespec* until) {
  static const auto next = BSP_NEXT(pthread_clockjoin_np);
  return wait_in_periods(clock, until,
                         [&](clockid_t of, const timespec* end) { return next(thread, result, of, end); });
}

// How C++'s futures and Rust's threads wait, past the C library's functions. Called from anywhere, as by a thread that has nearly
// ended: nothing of a sanitizer's here, no static variable's guard, which may wait by syscall() itself.
BSP_UNSANITIZED BSP_EXPORT long syscall(long number, ...) noexcept {
  long arguments[6];
  va_list list;
  va_start(list, number);
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  timespec here{};
  const auto operation = static_cast<int>(arguments[1]);
  const bool is_deadline = number == SYS_futex && (operation & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET &&
                           !(operation & FUTEX_CLOCK_REALTIME) && arguments[3] != 0;
  if (is_deadline) {
    here = on_this_machine(CLOCK_MONOTONIC, *reinterpret_cast<const timespec*>(arguments[3]));
    arguments[3] = reinterpret_cast<long>(&here);
  }
  return as_libc(raw_syscall(number, arguments));
}

}  // extern "C"
