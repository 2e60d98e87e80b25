#include "operator/controller/rounds.h"

#include <atomic>
#include <semaphore>
#include <stdexcept>

#include <gtest/gtest.h>

namespace bsp::controller {
namespace {

using namespace std::chrono_literals;

constexpr auto kNever = std::chrono::milliseconds(std::chrono::hours(24));

TEST(Rounds, AreRepeatedUntilTheEnd) {
  std::counting_semaphore<> rounds(0);
  std::atomic<int> count = 0;
  {
    const Rounds repeated(
        [&]() -> Rounds::Next {
          ++count;
          rounds.release();
          return 0ms;
        },
        kNever, "not repeated");
    for (int i = 0; i < 3; ++i) rounds.acquire();
  }
  const int at_the_end = count;
  EXPECT_GE(at_the_end, 3);
  EXPECT_EQ(count, at_the_end);
}

TEST(Rounds, GoOnAfterAFailureAndAfterAnException) {
  std::counting_semaphore<> rounds(0);
  std::atomic<int> count = 0;
  const Rounds repeated(
      [&]() -> Rounds::Next {
        rounds.release();
        if (count++ == 0) return fail(ErrorCode::kFailed, "no server");
        if (count == 2) throw std::runtime_error("no memory");
        return kNever;
      },
      0ms, "failing");
  for (int i = 0; i < 3; ++i) rounds.acquire();
}

TEST(Rounds, EndWhileOneWaits) {
  std::binary_semaphore begun(0);
  Rounds waits(
      [&]() -> Rounds::Next {
        begun.release();
        return kNever;
      },
      kNever, "failing");
  begun.acquire();
  waits.stop();
}

TEST(Rounds, EndAfterTheOneThatRuns) {
  std::binary_semaphore begun(0), closed(0);
  std::atomic<bool> ended = false;
  {
    Rounds runs(
        [&]() -> Rounds::Next {
          begun.release();
          closed.acquire();
          ended = true;
          return fail(ErrorCode::kUnavailable, "the client is closed");
        },
        0ms, "failing");
    begun.acquire();
    runs.stop();
    closed.release();
  }
  EXPECT_TRUE(ended);
  EXPECT_FALSE(begun.try_acquire());
}

}  // namespace
}  // namespace bsp::controller
