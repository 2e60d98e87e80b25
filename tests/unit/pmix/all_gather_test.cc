// What an all-gather accepts from its own program and from other ranks' sidecars: bounded by the size of the whole.
#include "sidecar/agent/pmix/all_gather.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <nlohmann/json.hpp>
#include <numeric>

namespace bsp::pmix {
namespace {

Placement each_alone(std::uint32_t size) {
  Placement placement{.server_of = std::vector<std::uint32_t>(size)};
  std::iota(placement.server_of.begin(), placement.server_of.end(), 0u);
  return placement;
}

struct World {
  explicit World(std::uint32_t size, std::uint32_t rank = 0) : World(each_alone(size), rank) {}
  explicit World(Placement placement, std::uint32_t server = 0)
      : gather(loop, 1, std::move(placement), server,
               [](std::uint32_t, std::string_view, nlohmann::json, std::string, net::LinkPeer::Done) {}) {}
  // The result of a collective of the local program; "" while it is pending.
  std::string enter(std::string key, std::vector<std::uint32_t> members, std::string data) {
    auto said = std::make_shared<std::string>();
    gather.enter(std::move(key), std::move(members), std::move(data),
                 [said](Result<Gathered> all) { *said = all ? "done" : all.error().message; });
    return *said;
  }
  net::Loop loop;
  AllGather gather;
};

TEST(AllGather, PartBeyondItsShareIsRefused) {
  World few(2), many(1000);
  EXPECT_EQ(few.enter("fence", {}, std::string(kMaxPart, 'x')), "");
  EXPECT_NE(few.enter("fence", {}, std::string(kMaxPart + 1, 'x')), "");
  EXPECT_EQ(many.enter("fence", {}, std::string(60'000, 'x')), "");
  EXPECT_NE(many.enter("fence", {}, std::string(70'000, 'x')), "") << "a thousand of these exceed a message";
}

TEST(AllGather, MembersThatDoNotExist) {
  World world(4);
  EXPECT_NE(world.enter("group/a", {0, 4}, ""), "");
  EXPECT_NE(world.enter("group/a", {0, 0xffffffff}, ""), "");
  EXPECT_NE(world.enter("group/a", {1, 2}, ""), "") << "without this rank";
  EXPECT_EQ(world.enter("group/a", {0}, ""), "done");
}

// Ranks 0 and 3 share a pod, so do 1 and 2.
TEST(AllGather, EveryPodTakesPartOnce) {
  const Placement two{.server_of = {0, 1, 1, 0}};
  World world(two);
  EXPECT_EQ(world.enter("fence", {}, "a"), "");
  EXPECT_FALSE(world.gather.gather("fence#0", 2, "x")) << "a pod goes by its lowest rank";
  EXPECT_FALSE(world.gather.gather("fence#0", 3, "x"));
  EXPECT_TRUE(world.gather.gather("fence#0", 1, "b"));
  EXPECT_EQ(world.enter("group/inside", {0, 3}, ""), "done") << "it needs nobody else";
  EXPECT_EQ(world.enter("group/inside", {3}, ""), "done");
  EXPECT_NE(world.enter("group/others", {1, 2}, ""), "") << "none of them is here";
  // Two groups among the same pods are two collectives.
  EXPECT_EQ(world.enter("group/a", {0, 1}, ""), "");
  EXPECT_EQ(world.enter("group/a", {0, 2}, ""), "");
  EXPECT_TRUE(world.gather.gather("group/a.0.2#0", 1, ""));
  EXPECT_TRUE(world.gather.gather("group/a.0.1#0", 1, ""));
  // A pod's share is that of its ranks.
  EXPECT_EQ(world.enter("fence", {}, std::string(2 * kMaxPart, 'x')), "");
  EXPECT_NE(world.enter("fence", {}, std::string(2 * kMaxPart + 1, 'x')), "");
  EXPECT_TRUE(world.gather.gather("fence#1", 1, std::string(2 * kMaxPart, 'x')));
  EXPECT_FALSE(world.gather.gather("fence#2", 1, std::string(2 * kMaxPart + 1, 'x')));
  World other(two, 1);
  EXPECT_EQ(other.enter("group/b", {2}, ""), "done") << "with rank 2 alone it is the root";
}

TEST(AllGather, PeerCantExhaustMemory) {
  World world(4);
  EXPECT_FALSE(world.gather.gather("fence#0", 1, std::string(kMaxPart + 1, 'x')));
  EXPECT_FALSE(world.gather.gather("fence#0", 4, "x"));
  EXPECT_FALSE(world.gather.gather(std::string(1 << 20, 'k'), 1, "x"));
  std::size_t taken = 0;
  for (int n = 0; n < 10'000; ++n)
    taken += world.gather.gather("fence#" + std::to_string(n), 1, std::string(kMaxPart, 'x')).has_value();
  EXPECT_LE(taken, 128u) << "of a MiB each";
  World small(4);
  taken = 0;
  for (int n = 0; n < 10'000; ++n) taken += small.gather.gather("fence#" + std::to_string(n), 1, "x").has_value();
  EXPECT_LE(taken, 1024u);
  // An honest pending one still completes.
  EXPECT_TRUE(small.gather.gather("fence#0", 2, "x"));
}

TEST(AllGather, EndedCollectiveReleasesItsParts) {
  World world(2);
  for (int n = 0; n < 300; ++n) {
    ASSERT_TRUE(world.gather.gather("fence#" + std::to_string(n), 1, std::string(kMaxPart, 'x'))) << n;
    ASSERT_EQ(world.enter("fence", {}, std::string(kMaxPart, 'y')), "done") << n;
  }
}

// What 100,000 collectives of a long epoch leave behind; doesn't apply to sanitizers' allocators.
TEST(AllGather, EndedCollectiveLeavesNothingBehind) {
  World world(2);
  world.enter("fence", {}, "");
  EXPECT_TRUE(world.gather.gather("fence#0", 1, ""));
  const std::size_t before = ::mallinfo2().uordblks;
  for (int n = 1; n < 100'000; ++n) {
    ASSERT_TRUE(world.gather.gather("fence#" + std::to_string(n), 1, ""));
    ASSERT_EQ(world.enter("fence", {}, ""), "done");
  }
  const auto held = static_cast<std::int64_t>(::mallinfo2().uordblks) - static_cast<std::int64_t>(before);
  EXPECT_LT(held, 64 << 10);
}

TEST(AllGather, RepeatedPartAfterTheEndIsIgnored) {
  World world(2);
  ASSERT_TRUE(world.gather.gather("fence#0", 1, "x"));
  ASSERT_EQ(world.enter("fence", {}, "y"), "done");
  ASSERT_TRUE(world.gather.gather("fence#0", 1, "x"));
  for (int n = 0; n < 2000; ++n) ASSERT_TRUE(world.gather.gather("fence#0", 1, "x")) << n;
  EXPECT_TRUE(world.gather.gather("fence#1", 1, "x"));
  EXPECT_EQ(world.enter("fence", {}, "y"), "done");
}

TEST(AllGather, EarlyFailureIsReportedAndInventedOnesAreDropped) {
  World world(2, 1);
  const auto gave_up = [] { return std::unexpected(Error{ErrorCode::kUnavailable, "rank 0 gave up"}); };
  world.gather.deliver("fence#0", gave_up(), {}, [](std::uint64_t) {});
  EXPECT_EQ(world.enter("fence", {}, ""), "another member has given up");
  const std::size_t before = ::mallinfo2().uordblks;
  for (int n = 0; n < 20'000; ++n)
    world.gather.deliver("group/" + std::to_string(n) + "#0", gave_up(), {}, [](std::uint64_t) {});
  const auto held = static_cast<std::int64_t>(::mallinfo2().uordblks) - static_cast<std::int64_t>(before);
  EXPECT_LT(held, 512 << 10);
}

}  // namespace
}  // namespace bsp::pmix
