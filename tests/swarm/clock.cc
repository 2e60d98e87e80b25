#include "tests/swarm/clock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace bsp::simulation {
namespace {

constexpr std::int64_t kWallAtBegin = 1'790'000'000;  // seconds, September 2026
constexpr std::int64_t kUptimeAtBegin = 5'000;

bool is_virtual = false;
Nanoseconds now_since_begin{}, wall_clock_error{};

timespec as_timespec(std::int64_t seconds, Nanoseconds since) {
  return {.tv_sec = seconds + since.count() / 1'000'000'000, .tv_nsec = since.count() % 1'000'000'000};
}

}  // namespace

void begin_virtual_time() {
  is_virtual = true;
  now_since_begin = wall_clock_error = {};
}
void set_virtual_time(Nanoseconds since) { now_since_begin = since; }
void set_wall_clock_error(Nanoseconds error) { wall_clock_error = error; }

}  // namespace bsp::simulation

// libstdc++ and everything else in this process find this one before glibc's.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  using namespace bsp::simulation;
  if (!is_virtual) return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  const bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  *time = wall ? as_timespec(kWallAtBegin, now_since_begin + wall_clock_error)
               : as_timespec(kUptimeAtBegin, now_since_begin);
  return 0;
}
