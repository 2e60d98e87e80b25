// Guard pages of another process, found, taken off and put on again (Linux 6.15).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "base/core/fd.h"
#include "sidecar/init/memory/borrowed_thread.h"
#include "sidecar/init/memory/guards.h"

namespace bsp::init {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kPage = 4096;
constexpr int kInstall = 102;

User me() { return {.uid = ::geteuid(), .gid = ::getegid(), .home = "", .groups = {}}; }

char* pages(std::size_t count) {
  return static_cast<char*>(::mmap(nullptr, count * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

// A process that runs `body`, which stops it once.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    body();
    ::_exit(0);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool stops() const {
    int status = 0;
    return ::waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status);
  }
  [[nodiscard]] int exit_status() const {
    int status = 0;
    while (::waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status)) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  [[nodiscard]] Fd open(const std::string& file) const {
    return Fd(::open(("/proc/" + std::to_string(pid_) + "/" + file).c_str(), O_RDONLY | O_CLOEXEC));
  }

 private:
  pid_t pid_;
};

class GuardPages : public ::testing::Test {
 protected:
  void SetUp() override {
    char* const page = pages(1);
    const bool there = ::madvise(page, kPage, kInstall) == 0;
    ::munmap(page, kPage);
    if (!there) GTEST_SKIP() << "this kernel has no guard pages";
  }
};

TEST_F(GuardPages, AreFoundTakenOffAndPutOnAgain) {
  char* const memory = pages(6);
  const auto at = reinterpret_cast<std::uint64_t>(memory);
  const Child child([&] {
    ::madvise(memory + kPage, 2 * kPage, kInstall);
    ::madvise(memory + 4 * kPage, kPage, kInstall);
    ::raise(SIGSTOP);
  });
  ASSERT_TRUE(child.stops());
  const auto found = find_guards(child.pid(), me());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, (Guards{{at + kPage, at + 3 * kPage}, {at + 4 * kPage, at + 5 * kPage}}));
  ASSERT_TRUE(take_off(child.pid(), *found));
  EXPECT_EQ(find_guards(child.pid(), me()), Guards());
  ASSERT_TRUE(put_on(child.pid(), *found));
  EXPECT_EQ(find_guards(child.pid(), me()), *found);
}

TEST_F(GuardPages, InLockedMemoryCantBePutOnAgain) {
  char* const memory = pages(2);
  const Child child([&] {
    ::madvise(memory, kPage, kInstall);
    ::mlock(memory, 2 * kPage);
    ::raise(SIGSTOP);
  });
  ASSERT_TRUE(child.stops());
  const auto found = find_guards(child.pid(), me());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kRefused);
  EXPECT_THAT(found.error().message,
              HasSubstr("not migratable now: madvise(MADV_GUARD_INSTALL) of the guard pages at"));
  EXPECT_THAT(found.error().message, HasSubstr("unlock it (munlock)"));
}

// As a kernel shows them that doesn't list them (6.13, 6.14).
TEST_F(GuardPages, AreNoticedWhereTheKernelListsNone) {
  char* const memory = pages(2);
  for (const bool guarded : {false, true}) {
    const Child child([&] {
      if (guarded) ::madvise(memory, kPage, kInstall);
      ::raise(SIGSTOP);
    });
    ASSERT_TRUE(child.stops());
    const auto noticed = has_unlisted_guards(child.open("pagemap").get(), child.open("mem").get());
    ASSERT_TRUE(noticed) << noticed.error().message;
    EXPECT_EQ(*noticed, guarded);
  }
}

TEST_F(GuardPages, OfAProcessThatHasEnded) {
  const Child child([] { ::raise(SIGSTOP); });
  ASSERT_TRUE(child.stops());
  ::kill(child.pid(), SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT);
  const auto back = put_on(child.pid(), {{.start = kPage, .end = 2 * kPage}});
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(::waitpid(child.pid(), nullptr, WNOHANG), child.pid()) << "its end is left for others to reap";
}

// It may be anywhere in a restartable sequence; the thread that has stopped the process isn't.
TEST_F(GuardPages, ThreadThatComputesIsntBorrowed) {
  const Child child([] {
    static std::atomic<long> computed{0};
    std::thread stops([] {
      while (computed == 0) continue;
      ::raise(SIGSTOP);
    });
    while (++computed != 0) continue;
    stops.join();
  });
  ASSERT_TRUE(child.stops());
  auto borrowed = BorrowedThread::of(child.pid());
  ASSERT_TRUE(borrowed) << borrowed.error().message;
  const auto thread = borrowed->call(186, {});  // gettid
  ASSERT_TRUE(thread);
  EXPECT_NE(*thread, child.pid());
}

// Neither a call in which a thread waits, nor a signal that is pending, nor what the program does with SIGTRAP is changed.
TEST_F(GuardPages, TheProgramNoticesNothing) {
  const Child child([] {
    static std::atomic<int> alarms{0}, woken{0};
    ::signal(SIGUSR1, [](int) { ++alarms; });
    ::signal(SIGTRAP, SIG_IGN);
    sigset_t held;
    ::sigemptyset(&held);
    ::sigaddset(&held, SIGUSR1);
    ::sigprocmask(SIG_BLOCK, &held, nullptr);
    char* const memory = pages(2);
    ::madvise(memory, kPage, kInstall);
    std::thread stops([] {
      ::raise(SIGUSR1);
      ::raise(SIGSTOP);
      if (woken == 0) ::_exit(alarms == 0 && ::signal(SIGTRAP, SIG_DFL) == SIG_IGN ? 0 : 2);
    });
    const timespec long_time{.tv_sec = 1000, .tv_nsec = 0};
    ::nanosleep(&long_time, nullptr);
    ++woken;
    ::_exit(1);
  });
  ASSERT_TRUE(child.stops());
  const auto found = find_guards(child.pid(), me());
  ASSERT_TRUE(found) << found.error().message;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(take_off(child.pid(), *found) && put_on(child.pid(), *found));
  ::kill(child.pid(), SIGCONT);
  EXPECT_EQ(child.exit_status(), 0);
}

TEST(ListOfGuards, IsReadAsWritten) {
  const Guards some{{0x1000, 0x2000}, {0x7f0000000000, 0x7f0000004000}};
  EXPECT_EQ(decode_guards(encode(some)), some);
  EXPECT_EQ(decode_guards(""), Guards());
}

TEST(ListOfGuards, DamageIsRefused) {
  for (const char* text :
       {"1000-2000", "1000\n", "1000-\n", "-2000\n", "2000-1000\n", "1000-1000\n", "1001-2000\n", "1000-2fff\n",
        "1000-8000000000000000\n", "1000 2000\n", "1000-2000\n\n", "x-y\n", "10000000000000000-2\n"})
    EXPECT_FALSE(decode_guards(text)) << text;
}

}  // namespace
}  // namespace bsp::init
