// Objects that a loop still owns when it is destroyed.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/core/fd.h"
#include "base/net/loop.h"

namespace bsp::net {
namespace {

// Uses the loop in its destructor, like an unused Reply.
struct UsesTheLoopAtItsEnd {
  Loop& loop;
  Loop::TimerId timer;
  int fd;
  int& ended;
  ~UsesTheLoopAtItsEnd() {
    loop.post([] {});
    loop.cancel(timer);
    loop.unwatch(fd);
    ++ended;
  }
};

TEST(Loop, CallbacksMayUseItDuringDestruction) {
  int ended = 0;
  const Fd event(eventfd(0, EFD_CLOEXEC));
  {
    Loop loop;
    const auto never = std::chrono::steady_clock::now() + std::chrono::hours(1);
    const Loop::TimerId timer = loop.at(never, [] {});
    const auto owned = [&] { return std::make_shared<UsesTheLoopAtItsEnd>(loop, timer, event.get(), ended); };
    for (int i = 0; i < 10; ++i) loop.at(never, [kept = owned()] {});
    loop.watch(event.get(), EPOLLIN, [kept = owned()](auto) {});
    loop.post([&loop, kept = owned(), more = owned()]() mutable { loop.post([kept = std::move(kept)] {}); });
  }
  EXPECT_EQ(ended, 13);
}

// An operator sends an epoch's plan to a thousand sidecars at once.
TEST(Loop, PostedWorkDoesNotKeepInputWaiting) {
  constexpr int kWork = 1000;
  const Fd event(eventfd(0, EFD_CLOEXEC));
  Loop loop;
  int done = 0, read_after = -1;
  loop.watch(event.get(), EPOLLIN, [&](auto) {
    eventfd_t value;
    eventfd_read(event.get(), &value);
    read_after = done;
  });
  for (int i = 0; i < kWork; ++i)
    loop.post([&] {
      if (done++ == 0) eventfd_write(event.get(), 1);
      if (done == kWork) loop.stop();
    });
  loop.run();
  EXPECT_EQ(done, kWork);
  EXPECT_GT(read_after, 0);
  EXPECT_LT(read_after, kWork / 2);
}

}  // namespace
}  // namespace bsp::net
