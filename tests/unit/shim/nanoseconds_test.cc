#include "sidecar/shim/process/nanoseconds.h"

#include <gtest/gtest.h>

namespace bsp::shim {
namespace {

constexpr timespec kNever{std::numeric_limits<time_t>::max(), kNsOfSecond - 1};

// A constant expression has no overflow.
static_assert(sum_of(kLatest, 1) == kLatest && sum_of(kEarliest, -1) == kEarliest && sum_of(kLatest, kEarliest) == -1);
static_assert(difference_of(kLatest, -1) == kLatest && difference_of(kEarliest, 1) == kEarliest);
static_assert(difference_of(0, kEarliest) == kLatest && difference_of(kEarliest, kEarliest) == 0);
static_assert(product_of(kLatest, 2) == kLatest && product_of(kLatest, -2) == kEarliest &&
              product_of(kEarliest, -1) == kLatest);
static_assert(in_ns(9'223'372'036, 854'775'807) == kLatest && in_ns(9'223'372'036, 854'775'808) == kLatest);
static_assert(in_ns(1, 5) == 1'000'000'005 && in_ns(kLatest, 0) == kLatest);

bool is(const timespec& t, time_t seconds, long ns) { return t.tv_sec == seconds && t.tv_nsec == ns; }

TEST(Nanoseconds, NeverRemainsNever) {
  EXPECT_TRUE(is(later(kNever, 0), 9'223'372'036, 854'775'807));
  EXPECT_TRUE(is(later(kNever, 5 * kNsOfSecond), 9'223'372'036, 854'775'807)) << "on a machine that booted earlier";
  EXPECT_GT(later(kNever, -1'000'000 * kNsOfSecond).tv_sec, 9'000'000'000) << "on one that booted later";
}

TEST(Nanoseconds, TimesBeforeZeroAreWholeSecondsAndARest) {
  EXPECT_TRUE(is(later({0, 1}, -2), -1, kNsOfSecond - 1));
  EXPECT_TRUE(is(later({3, 1}, -2 * kNsOfSecond), 1, 1));
  EXPECT_TRUE(is(as_timespec(-kNsOfSecond), -1, 0));
}

TEST(Nanoseconds, WhatIsNoTimeIsTold) {
  EXPECT_TRUE(is_time({0, 0}) && is_time(kNever));
  EXPECT_FALSE(is_time({0, kNsOfSecond}) || is_time({0, -1}) || is_time({-1, 0}));
}

}  // namespace
}  // namespace bsp::shim
