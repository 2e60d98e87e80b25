#include "base/core/backoff.h"

#include <gtest/gtest.h>

namespace bsp {
namespace {

using namespace std::chrono_literals;

TEST(Backoff, DoublesFromTheFirstPauseToTheLongest) {
  Backoff tries(200ms, 1s);
  EXPECT_EQ(tries.next(), 200ms);
  EXPECT_EQ(tries.next(), 400ms);
  EXPECT_EQ(tries.next(), 800ms);
  EXPECT_EQ(tries.next(), 1s);
  EXPECT_EQ(tries.next(), 1s);
  EXPECT_EQ(tries.failures(), 5u);
  tries.reset();
  EXPECT_EQ(tries.next(), 200ms);
}

TEST(Backoff, StaysAtTheLongestHoweverOftenItFails) {
  const Backoff tries(1ns, std::chrono::hours(24 * 365));
  EXPECT_EQ(tries.after(~0u), std::chrono::hours(24 * 365));
}

}  // namespace
}  // namespace bsp
