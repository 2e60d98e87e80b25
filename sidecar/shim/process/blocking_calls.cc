// Calls that wait. Linux ends some of them with EINTR when the process was stopped, as at a gate, although no signal handler ran
// (signal(7)); CRIU ends others so, when it restores a thread in one. A program without signal handlers needn't expect it: for
// it, such a call continues with the time that is left. With a handler EINTR stays, since it may be the handler's.
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "sidecar/shim/process/export.h"
#include "sidecar/shim/process/loaded_library.h"
#include "sidecar/shim/process/moved_clock.h"
#include "sidecar/shim/process/nanoseconds.h"
#include "sidecar/shim/process/raw_syscall.h"

namespace bsp::shim {
namespace {

constexpr std::int64_t kNsOfMs = 1'000'000;

std::atomic<bool> has_handlers{false};

// Their handlers are for debugging, or end the program.
bool is_of_runtime(const void* code) {
  const std::string_view name = file_name_of(code);
  for (const std::string_view library : {"libucs.", "libopen-pal.", "libmpi.", "libpmix.", "libgfortran."})
    if (name.starts_with(library)) return true;
  return false;
}

// `caller` sets a handler for a signal. Those for errors of the thread itself end the program.
void note_handler(int signal, const void* handler, const void* caller) {
  constexpr int kOwnErrors[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
  if (has_handlers || handler == reinterpret_cast<void*>(SIG_DFL) || handler == reinterpret_cast<void*>(SIG_IGN))
    return;
  if (std::ranges::find(kOwnErrors, signal) == std::end(kOwnErrors) && !is_of_runtime(caller)) has_handlers = true;
}

// Whether the call that returned `result` was ended by a stop alone.
bool ended_by_stop(std::int64_t result) { return result == -1 && errno == EINTR && !has_handlers; }

// A timeout of the program, in its own time, which goes on across a move.
class TimeLeft {
 public:
  explicit TimeLeft(std::int64_t ns) : until_(sum_of(monotonic_ns(), ns)) {}
  [[nodiscard]] std::int64_t ns() const { return std::max<std::int64_t>(difference_of(until_, monotonic_ns()), 0); }

 private:
  std::int64_t until_;
};

// Waits for `ms`, 0: not at all, negative: for ever.
template <class Call>
int wait_ms(int ms, const Call& call) {
  if (ms == 0) return call(0);
  const TimeLeft time(ms > 0 ? ms * kNsOfMs : 0);
  int result = call(ms);
  while (ended_by_stop(result)) result = call(ms > 0 ? static_cast<int>((time.ns() + kNsOfMs - 1) / kNsOfMs) : ms);
  return result;
}

// Waits for *`timeout`, null: for ever.
template <class Call>
auto wait_for(const timespec* timeout, const Call& call) {
  const bool limited = timeout != nullptr && is_time(*timeout);
  const TimeLeft time(limited ? in_ns(timeout->tv_sec, timeout->tv_nsec) : 0);
  auto result = call(timeout);
  while (ended_by_stop(result)) {
    const timespec left = as_timespec(time.ns());
    result = call(limited ? &left : timeout);
  }
  return result;
}

}  // namespace
}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT

extern "C" {

using BspHandler = void (*)(int);
int __poll_chk(pollfd* fds, nfds_t count, int ms, std::size_t bytes);

BSP_EXPORT int sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
  static const auto next =
      reinterpret_cast<int (*)(int, const struct sigaction*, struct sigaction*)>(dlsym(RTLD_NEXT, "sigaction"));
  if (action != nullptr) note_handler(signal, reinterpret_cast<void*>(action->sa_handler), __builtin_return_address(0));
  return next(signal, action, old);
}

// glibc's own call of sigaction isn't one of the function above.
BSP_EXPORT BspHandler signal(int signal, BspHandler handler) noexcept {
  static const auto next = reinterpret_cast<BspHandler (*)(int, BspHandler)>(dlsym(RTLD_NEXT, "signal"));
  note_handler(signal, reinterpret_cast<void*>(handler), __builtin_return_address(0));
  return next(signal, handler);
}

BSP_EXPORT BspHandler __sysv_signal(int signal, BspHandler handler) noexcept {
  static const auto next = BSP_NEXT(__sysv_signal);
  note_handler(signal, reinterpret_cast<void*>(handler), __builtin_return_address(0));
  return next(signal, handler);
}

BSP_EXPORT BspHandler sigset(int signal, BspHandler handler) noexcept {
  static const auto next = BSP_NEXT(sigset);
  note_handler(signal, reinterpret_cast<void*>(handler), __builtin_return_address(0));
  return next(signal, handler);
}

// MPI asks for events with every progress, without waiting: a way through libc's function, too, would make messages slower.
BSP_EXPORT int epoll_wait(int epoll, epoll_event* events, int most, int ms) {
  if (ms == 0) [[likely]] {
    pthread_testcancel();
    return static_cast<int>(
        as_libc(raw_syscall(SYS_epoll_pwait, {epoll, reinterpret_cast<long>(events), most, 0, 0, 0})));
  }
  static const auto next = BSP_NEXT(epoll_wait);
  return wait_ms(ms, [&](int left) { return next(epoll, events, most, left); });
}

BSP_EXPORT int epoll_pwait(int epoll, epoll_event* events, int most, int ms, const sigset_t* mask) {
  static const auto next = BSP_NEXT(epoll_pwait);
  return wait_ms(ms, [&](int left) { return next(epoll, events, most, left, mask); });
}

BSP_EXPORT int epoll_pwait2(int epoll, epoll_event* events, int most, const timespec* timeout, const sigset_t* mask) {
  static const auto next = BSP_NEXT(epoll_pwait2);
  return wait_for(timeout, [&](const timespec* left) { return next(epoll, events, most, left, mask); });
}

BSP_EXPORT int poll(pollfd* fds, nfds_t count, int ms) {
  static const auto next = BSP_NEXT(poll);
  return wait_ms(ms, [&](int left) { return next(fds, count, left); });
}

// poll, called by code that was compiled with _FORTIFY_SOURCE.
BSP_EXPORT int __poll_chk(pollfd* fds, nfds_t count, int ms, std::size_t bytes) {
  static const auto next = BSP_NEXT(__poll_chk);
  return wait_ms(ms, [&](int left) { return next(fds, count, left, bytes); });
}

BSP_EXPORT int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* timeout) {
  static const auto next = BSP_NEXT(sigtimedwait);
  return wait_for(timeout, [&](const timespec* left) { return next(set, info, left); });
}

BSP_EXPORT int sigwaitinfo(const sigset_t* set, siginfo_t* info) { return sigtimedwait(set, info, nullptr); }

BSP_EXPORT int semtimedop(int set, sembuf* operations, std::size_t count, const timespec* timeout) noexcept {
  static const auto next = BSP_NEXT(semtimedop);
  return wait_for(timeout, [&](const timespec* left) { return next(set, operations, count, left); });
}

BSP_EXPORT int semop(int set, sembuf* operations, std::size_t count) noexcept {
  return semtimedop(set, operations, count, nullptr);
}

BSP_EXPORT int sem_timedwait(sem_t* semaphore, const timespec* until) {
  static const auto next = BSP_NEXT(sem_timedwait);
  int result = next(semaphore, until);
  while (ended_by_stop(result)) result = next(semaphore, until);
  return result;
}

BSP_EXPORT int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) {
  static const auto next = BSP_NEXT(sem_clockwait);
  int result = -1;
  do {
    const timespec here = on_this_machine(clock, *until);
    result = next(semaphore, clock, &here);
  } while (ended_by_stop(result));
  return result;
}

// An absolute time isn't left to the kernel, which would keep it across a move as the time of another machine.
BSP_EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* request, timespec* remaining) {
  static const auto next = BSP_NEXT(clock_nanosleep);
  const bool moves = (flags & TIMER_ABSTIME) && is_monotonic(clock) && is_time(*request);
  timespec left = *request, rest = *request;
  for (;;) {
    if (moves)
      left = as_timespec(
          std::max<std::int64_t>(difference_of(in_ns(request->tv_sec, request->tv_nsec), monotonic_ns(clock)), 0));
    const int error = next(clock, moves ? flags & ~TIMER_ABSTIME : flags, &left, &rest);
    if (error == EINTR && !has_handlers) {
      if (!(flags & TIMER_ABSTIME)) left = rest;
      continue;
    }
    if (error == EINTR && remaining != nullptr && !(flags & TIMER_ABSTIME)) *remaining = rest;
    return error;
  }
}

BSP_EXPORT int nanosleep(const timespec* request, timespec* remaining) {
  const int error = clock_nanosleep(CLOCK_REALTIME, 0, request, remaining);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

BSP_EXPORT int usleep(useconds_t us) {
  const timespec time = as_timespec(std::int64_t{us} * 1000);
  return nanosleep(&time, nullptr);
}

BSP_EXPORT unsigned sleep(unsigned seconds) {
  const int error = errno;
  timespec left{static_cast<time_t>(seconds), 0};
  if (nanosleep(&left, &left) != 0) return static_cast<unsigned>(left.tv_sec);
  errno = error;
  return 0;
}

BSP_EXPORT int thrd_sleep(const timespec* duration, timespec* remaining) {
  const int error = clock_nanosleep(CLOCK_REALTIME, 0, duration, remaining);
  return error == 0 ? 0 : error == EINTR ? -1 : -2;
}

}  // extern "C"
