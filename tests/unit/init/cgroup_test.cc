// The effect of a container's limits, and the share of time throttled in the last seconds.
#include "sidecar/init/cgroup.h"

#include <gtest/gtest.h>

#include "sidecar/agent/throttle_share.h"

namespace bsp::init {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(Throttled, IsReadFromBothCgroupVersions) {
  EXPECT_EQ(throttled_ns_in("usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 1234\nnr_bursts 0\n"),
            1'234'000u);
  EXPECT_EQ(throttled_ns_in("nr_periods 10\nnr_throttled 3\nthrottled_time 77\n"), 77u);
  EXPECT_EQ(throttled_ns_in("throttled_time 77"), 77u);
  for (const char* none : {"", "usage_usec 5\n", "throttled_time\n", "throttled_time x\n", "xthrottled_time 5\n"})
    EXPECT_EQ(throttled_ns_in(none), std::nullopt) << none;
}

TEST(MemoryKills, AreReadFromBothCgroupVersions) {
  EXPECT_EQ(memory_kills_in("low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 0\n"), 1u);
  EXPECT_EQ(memory_kills_in("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), 3u);
  EXPECT_EQ(memory_kills_in("oom_kill_disable 0\nunder_oom 0\n"), std::nullopt);
}

TEST(ThrottleShare, CoversTheLastTenSeconds) {
  sidecar::ThrottleShare t;
  EXPECT_EQ(t.share(5 * kSecond), 0);
  t.note(7 * kSecond, 100 * kSecond);  // what happened before the start doesn't count
  EXPECT_EQ(t.share(100 * kSecond), 0);
  EXPECT_EQ(t.share(101 * kSecond), 0);
  t.note(7 * kSecond + kSecond / 2, 101 * kSecond);
  EXPECT_DOUBLE_EQ(t.share(101 * kSecond), 0.5);
  for (std::uint64_t s = 2; s <= 30; ++s) t.note(7 * kSecond + s * kSecond / 2, (100 + s) * kSecond);
  EXPECT_DOUBLE_EQ(t.share(130 * kSecond), 0.5);
  EXPECT_DOUBLE_EQ(t.share(135 * kSecond), 0.25) << "nothing new for five seconds";
  EXPECT_DOUBLE_EQ(t.share(150 * kSecond), 0);
  t.note(0, 151 * kSecond);  // another container
  EXPECT_EQ(t.share(151 * kSecond), 0);
}

}  // namespace
}  // namespace bsp::init
