#include "base/core/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace bsp {
namespace {

using ::testing::HasSubstr;

TEST(Guard, TurnsAnExceptionIntoAnError) {
  const Result<int> done = guarded([]() -> int { throw std::runtime_error("type must be string"); });
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().retryable);
  EXPECT_THAT(done.error().message, HasSubstr("type must be string"));
  EXPECT_EQ(guarded([] { return 7; }).value(), 7);
}

TEST(Guard, TurnsAFailedCheckIntoAnErrorThatNamesItsPlace) {
  const auto done = guarded([] { check(false, "a wave begins in an open epoch"); });
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("a wave begins in an open epoch"));
  EXPECT_THAT(done.error().message, HasSubstr("guard_test.cc:"));
}

TEST(Guard, InnerGuardKeepsTheOuterOne) {
  const auto done = guarded([] {
    EXPECT_FALSE(guarded([] { check(false, "inner"); }));
    check(false, "outer");
  });
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("outer"));
}

TEST(GuardDeathTest, FailedCheckOutsideAGuardAborts) {
  EXPECT_DEATH(check(false, "never so"), "broken invariant: never so");
  (void)guarded([] {});
  EXPECT_DEATH(check(false, "never so"), "broken invariant: never so");
}

TEST(GuardDeathTest, GuardAppliesToItsOwnThreadOnly) {
  EXPECT_DEATH((void)guarded([] { std::thread([] { check(false, "elsewhere"); }).join(); }), "elsewhere");
}

}  // namespace
}  // namespace bsp
