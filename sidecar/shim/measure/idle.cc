// With OMPI_MCA_mpi_yield_when_idle a rank that waits offers its core to others after each look for messages that finds none. Linux (since
// 6.6) gives the core only to a process of the same cgroup then, and every rank of a pod has its own: where a node has fewer cores than
// ranks, those that wait would take turns with those that compute, slice by slice. So who has looked in vain for a while sleeps between
// two looks. What the program itself yields for isn't known, so that it only yields.
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <cstdint>

#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/process/export.h"
#include "sidecar/shim/process/loaded_library.h"
#include "sidecar/shim/process/raw_syscall.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {
namespace {

constexpr std::uint64_t kInVain = kLongTicks;
// Between two looks, if the first found a message of any length: a copy takes that long, and a look in vain a tenth of it.
constexpr std::uint64_t kHandled = 5000;
constexpr timespec kSleep{.tv_sec = 0, .tv_nsec = 1000};  // and what the kernel adds to any sleep, 50 us

struct Idle {
  std::uint64_t since = 0, looked = 0;  // ticks
  const void* of_mpi = nullptr;         // the place in Open MPI that yields
  const void* other = nullptr;          // one elsewhere
};
thread_local Idle idle;

bool is_of_mpi(const void* caller) {
  if (caller == idle.of_mpi || caller == idle.other) return caller == idle.of_mpi;
  const bool is = file_name_of(caller).starts_with("libopen-pal.");
  (is ? idle.of_mpi : idle.other) = caller;
  return is;
}

bool has_looked_in_vain() {
  const std::uint64_t now = ticks();
  if (now - idle.looked > kHandled) idle.since = now;
  idle.looked = now;
  return std::min(now - idle.since, measure.in_call()) > kInVain;
}

}  // namespace
}  // namespace bsp::shim

extern "C" BSP_EXPORT int sched_yield() noexcept {
  using namespace bsp::shim;  // NOLINT
  const bool sleeps = state.epochs && is_of_mpi(__builtin_return_address(0)) && has_looked_in_vain();
  const long result = sleeps ? raw_syscall(SYS_nanosleep, {reinterpret_cast<long>(&kSleep), 0, 0, 0, 0, 0})
                             : raw_syscall(SYS_sched_yield, {});
  idle.looked = ticks();
  return sleeps ? 0 : static_cast<int>(as_libc(result));
}
