#include "sidecar/shim/process/moved_cpu_time.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "sidecar/shim/process/export.h"
#include "sidecar/shim/process/moved_clock.h"
#include "sidecar/shim/process/proc_files.h"

namespace bsp::shim {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

struct ThreadTime {
  pid_t tid = 0;
  std::int64_t ns = 0, system = 0;  // user and system time, of which system
};
// What the clocks showed when the process stopped or, in `offsets`, what earlier incarnations have used.
struct CpuTimes {
  std::int64_t process = 0, user = 0, system = 0;  // ns; process = user + system, but read by another clock
  std::vector<ThreadTime> threads;
};

CpuTimes stopped;
// Written at a gate while other threads may read: each table is complete, and stays until the process ends.
std::atomic<const CpuTimes*> offsets{nullptr};

std::int64_t ns(const timespec& t) { return t.tv_sec * kSecond + t.tv_nsec; }
std::int64_t ns(const timeval& t) { return t.tv_sec * kSecond + t.tv_usec * 1000; }

// linux/posix-timers.h: MAKE_THREAD_CPUCLOCK(tid, CPUCLOCK_SCHED)
clockid_t clock_of_thread(pid_t tid) { return static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3) | 6u); }

std::int64_t used_by(clockid_t clock) {
  timespec t{};
  return kernel_clock(clock, &t) == 0 ? ns(t) : 0;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

int kernel_rusage(int who, rusage* usage) {
  static const auto getrusage_of_libc = next<int (*)(int, rusage*)>("getrusage");
  return getrusage_of_libc(who, usage);
}

pid_t this_thread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

// Linux reports a thread's own split in microseconds, that of another thread in ticks.
std::int64_t system_time_of(pid_t tid) {
  if (tid == this_thread()) {
    rusage usage{};
    kernel_rusage(RUSAGE_THREAD, &usage);
    return ns(usage.ru_stime);
  }
  const std::string stat = text_needed("/proc/self/task/" + std::to_string(tid) + "/stat");
  unsigned long ticks = 0;  // proc(5): field 15; the name, field 2, may contain anything
  if (const std::size_t name_end = stat.rfind(')'); name_end != std::string::npos)
    std::sscanf(stat.c_str() + name_end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %lu", &ticks);
  return static_cast<std::int64_t>(ticks) * (kSecond / sysconf(_SC_CLK_TCK));
}

CpuTimes read_kernel() {
  CpuTimes now;
  now.process = used_by(CLOCK_PROCESS_CPUTIME_ID);
  rusage usage{};
  kernel_rusage(RUSAGE_SELF, &usage);
  now.user = ns(usage.ru_utime), now.system = ns(usage.ru_stime);
  for (const pid_t tid : numbers_needed("/proc/self/task"))
    now.threads.push_back({tid, used_by(clock_of_thread(tid)), system_time_of(tid)});
  return now;
}

ThreadTime of_thread(const CpuTimes& times, pid_t tid) {
  const auto found = std::ranges::find(times.threads, tid, &ThreadTime::tid);
  return found == times.threads.end() ? ThreadTime{} : *found;
}

void add(timeval& t, std::int64_t more) {
  const std::int64_t sum = ns(t) + more;
  t = {sum / kSecond, sum % kSecond / 1000};
}

}  // namespace

void cpu_time_before_stop() {
  stopped = read_kernel();
  const CpuTimes* before = offsets.load();
  if (before == nullptr) return;
  stopped.process += before->process, stopped.user += before->user, stopped.system += before->system;
  for (ThreadTime& thread : stopped.threads) {
    const ThreadTime earlier = of_thread(*before, thread.tid);
    thread.ns += earlier.ns, thread.system += earlier.system;
  }
}

// A process that was not moved has used at least what it had used when it stopped.
void cpu_time_after_stop() {
  const CpuTimes* before = offsets.load();
  const CpuTimes now = read_kernel();
  if (now.process + (before != nullptr ? before->process : 0) >= stopped.process) return;
  auto* offset = new CpuTimes;  // never freed: another thread may read it
  offset->process = stopped.process - now.process;
  offset->user = std::max<std::int64_t>(stopped.user - now.user, 0);
  offset->system = std::max<std::int64_t>(stopped.system - now.system, 0);
  for (const ThreadTime& thread : stopped.threads) {
    const ThreadTime here = of_thread(now, thread.tid);
    const std::int64_t all = std::max<std::int64_t>(thread.ns - here.ns, 0);
    offset->threads.push_back({thread.tid, all, std::clamp<std::int64_t>(thread.system - here.system, 0, all)});
  }
  offsets.store(offset);
}

std::int64_t cpu_time_offset(clockid_t clock) {
  const CpuTimes* offset = offsets.load(std::memory_order_acquire);
  if (offset == nullptr) [[likely]]
    return 0;
  if (clock == CLOCK_PROCESS_CPUTIME_ID) return offset->process;
  if (clock == CLOCK_THREAD_CPUTIME_ID) return of_thread(*offset, this_thread()).ns;
  if (clock < 0 && (clock & 7) == 6)
    return of_thread(*offset, static_cast<pid_t>(~(clock >> 3))).ns;  // pthread_getcpuclockid
  return 0;
}

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT

extern "C" {

BSP_EXPORT int getrusage(__rusage_who_t who, rusage* usage) noexcept {
  const int rc = kernel_rusage(who, usage);
  const CpuTimes* offset = offsets.load(std::memory_order_acquire);
  if (offset == nullptr || rc != 0) [[likely]]
    return rc;
  if (who == RUSAGE_SELF) add(usage->ru_utime, offset->user), add(usage->ru_stime, offset->system);
  if (who == RUSAGE_THREAD) {
    const ThreadTime earlier = of_thread(*offset, this_thread());
    add(usage->ru_utime, earlier.ns - earlier.system), add(usage->ru_stime, earlier.system);
  }
  return rc;
}

BSP_EXPORT std::clock_t clock() noexcept {
  timespec t;
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0) return -1;
  return ns(t) / (kSecond / CLOCKS_PER_SEC);
}

// The returned value counts from an arbitrary moment in the past, which moved_clock.h continues.
BSP_EXPORT std::clock_t times(tms* buffer) noexcept {
  static const auto times_of_libc = next<std::clock_t (*)(tms*)>("times");
  static const std::int64_t tick = kSecond / sysconf(_SC_CLK_TCK);
  const std::clock_t rc = times_of_libc(buffer);
  if (const CpuTimes* offset = offsets.load(std::memory_order_acquire); offset != nullptr && buffer != nullptr) {
    buffer->tms_utime += offset->user / tick;
    buffer->tms_stime += offset->system / tick;
  }
  return rc + times_offset();
}

}  // extern "C"
