#include "sidecar/shim/process/threads.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "sidecar/shim/process/nanoseconds.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {

constinit thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));

namespace {

// With MPI_THREAD_MULTIPLE: the number of threads inside MPI, and whether one of them wants to close the epoch.
std::atomic<int> inside{0};
std::atomic<bool> closing{false};

}  // namespace

bool keep_others_out_of_mpi(std::uint64_t gate) {
  if (!state.multiple) return true;
  constexpr std::int64_t kLongest = 64'000'000, kShortest = 2'000'000;
  static std::uint64_t latest_gate = 0;
  static std::int64_t moment = kLongest;
  if (std::exchange(latest_gate, gate) != gate) moment = kLongest;
  closing.store(true);
  const std::uint64_t end = clock_ns(CLOCK_MONOTONIC) + static_cast<std::uint64_t>(moment);
  while (inside.load() > 1 && clock_ns(CLOCK_MONOTONIC) < end) {
    const timespec pause{0, 20000};
    nanosleep(&pause, nullptr);
  }
  moment = std::max(moment / 2, kShortest);
  return inside.load() == 1;
}

void let_others_into_mpi() {
  if (state.multiple) closing.store(false);
}

namespace {

// A thread may end without returning from an MPI call: its error handler may leave by longjmp or an exception.
struct EndOfThread {
  ~EndOfThread() {
    if (thread_state.depth != 0) leave_threaded();
  }
};

}  // namespace

// Store then load on both sides: either the closing thread sees the other thread inside, or the other thread sees
// that the epoch is closing and waits outside.
void enter_threaded() {
  static thread_local const EndOfThread end_of_thread;
  for (;;) {
    inside.fetch_add(1);
    if (!closing.load()) return;
    inside.fetch_sub(1);
    const timespec pause{0, 100000};
    nanosleep(&pause, nullptr);
  }
}

void leave_threaded() { inside.fetch_sub(1); }

// Not in a callback of MPI's.
void step_aside() {
  if (!closing.load() || thread_state.depth != 1) return;
  leave_threaded();
  enter_threaded();
}

}  // namespace bsp::shim
