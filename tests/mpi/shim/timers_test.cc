// The program's timers while a stop makes them late, as a checkpoint does.
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

using namespace std::chrono_literals;

// Mimics CRIU 4 on a machine that doesn't preempt it: it reads all timers at once, and after the pause restarts all at once,
// each with the time it had left. To an absolute one it adds the clock's whole seconds (criu/pie/restorer.c, timerfd_arm).
class AsCriuDoes {
 public:
  using Clock = std::chrono::steady_clock;

  explicit AsCriuDoes(pid_t pid) : process_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
    const std::string process = "/proc/" + std::to_string(pid);
    for (const auto& entry : std::filesystem::directory_iterator(process + "/fd"))
      if (std::filesystem::read_symlink(entry.path()) == "anon_inode:[timerfd]")
        timers_.push_back({.fd = std::stoi(entry.path().filename())});
    do {
      read_ = Clock::now();
      for (Timer& timer : timers_) read(process + "/fdinfo/" + std::to_string(timer.fd), timer);
    } while (Clock::now() - read_ > kAtOnce);
  }
  ~AsCriuDoes() { ::close(process_); }
  AsCriuDoes(const AsCriuDoes&) = delete;
  AsCriuDoes& operator=(const AsCriuDoes&) = delete;

  [[nodiscard]] std::size_t timers() const { return timers_.size(); }
  // Each timer is late by the pause.
  void restore(std::chrono::milliseconds pause) {
    const Clock::time_point at = read_ + pause;
    std::this_thread::sleep_until(at);
    std::map<int, time_t> seconds;  // of each clock; read once, because a second may begin meanwhile
    for (const Timer& t : timers_) {
      timespec now{};
      if (seconds.contains(t.clock) || ::clock_gettime(t.clock, &now) != 0) continue;
      seconds[t.clock] = now.tv_sec;
    }
    for (const Timer& t : timers_) {
      const int fd = static_cast<int>(::syscall(SYS_pidfd_getfd, process_, t.fd, 0));
      ASSERT_GE(fd, 0);
      Clock::time_point now;
      do {
        now = Clock::now();
        restart(fd, t, now - at, seconds[t.clock]);
      } while (Clock::now() - now > kAtOnce);
      ::close(fd);
    }
  }

 private:
  struct Timer {
    int fd = -1;
    int clock = 0;
    unsigned long long ticks = 0;
    unsigned flags = 0;
    itimerspec value{};
  };
  static constexpr Clock::duration kAtOnce = 5ms;

  static void read(const std::string& path, Timer& t) {
    std::ifstream file(path);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const auto at = text.find("clockid:");
    ASSERT_NE(at, std::string::npos) << text;
    ASSERT_EQ(std::sscanf(text.c_str() + at,
                          "clockid: %d ticks: %llu settime flags: %o it_value: (%ld, %ld) it_interval: (%ld, %ld)",
                          &t.clock, &t.ticks, &t.flags, &t.value.it_value.tv_sec, &t.value.it_value.tv_nsec,
                          &t.value.it_interval.tv_sec, &t.value.it_interval.tv_nsec),
              7);
  }

  // As CRIU would have done `late` earlier.
  static void restart(int fd, const Timer& timer, std::chrono::nanoseconds late, time_t seconds) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    itimerspec value = timer.value;
    std::uint64_t ticks = timer.ticks;
    std::int64_t left = value.it_value.tv_sec * kSecond + value.it_value.tv_nsec;
    const std::int64_t interval = value.it_interval.tv_sec * kSecond + value.it_interval.tv_nsec;
    if (timer.flags & TFD_TIMER_ABSTIME) {
      value.it_value.tv_sec += seconds;
    } else if (left != 0) {
      left -= late.count();
      for (; left <= 0 && interval != 0; left += interval) ++ticks;
      left = std::max<std::int64_t>(left, 1);
      value.it_value = {left / kSecond, left % kSecond};
    }
    EXPECT_EQ(::timerfd_settime(fd, static_cast<int>(timer.flags), &value, nullptr), 0);
    if (ticks != 0) {
      EXPECT_EQ(::ioctl(fd, _IOW('T', 0, std::uint64_t), &ticks), 0);
    }
  }

  int process_;
  Clock::time_point read_;
  std::vector<Timer> timers_;
};

TEST(Shim, TimersOfTheProgramExpireOnItsClocks) {
  Job job({.ranks = 2, .program = "shim_timers", .arguments = {"1000000"}, .environment = {}});
  ASSERT_TRUE(job.reach(3));
  // A pause of whole periods of the periodic timer leaves its phase as it was.
  for (const auto pause : {450ms, 400ms, 400ms}) {
    ASSERT_EQ(job.gate(), Job::Gate::kStopped);
    AsCriuDoes first(job.programs[0].pid());
    AsCriuDoes second(job.programs[1].pid());
    EXPECT_GE(first.timers(), 9u);
    first.restore(pause);
    second.restore(pause);
    job.next_epoch();
    ASSERT_TRUE(job.reach(job.completed() + 4)) << job.stderr_of(0) << job.stderr_of(1);
  }
  ASSERT_TRUE(job.turn()) << "stopped, but not moved";
  job.finish_ok();
}

}  // namespace
}  // namespace bsp::test
