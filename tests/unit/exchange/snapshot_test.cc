// Snapshot, step by step. properties_test.cc tests any order.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/exchange/group.h"

namespace bsp::exchange {
namespace {

constexpr std::uint32_t kMembers = 5;

Group snapshot_group(std::uint32_t members = kMembers) {
  Group group(Mechanism::kSnapshot, members);
  group.start({1});
  return group;
}

// Delivers the oldest message of that kind from one to the other.
void deliver(Group& group, Kind kind, Member from, Member to) {
  const auto it = std::ranges::find_if(
      group.flying, [&](const Group::Flying& f) { return f.message.kind == kind && f.from == from && f.to == to; });
  ASSERT_NE(it, group.flying.end()) << to_string(kind) << " " << from << " -> " << to;
  const auto index = static_cast<std::size_t>(it - group.flying.begin());
  group.deliver([index](std::size_t) { return index; }, false);
}

TEST(Snapshot, UncontendedRequestTakesThreeMessagesPerMember) {
  Group group = snapshot_group();
  EXPECT_EQ(group.messages(), 0u);
  group.change(4, 3);
  group.want(3);
  EXPECT_FALSE(group.ready[3]);
  group.settle();
  ASSERT_TRUE(group.ready[3]);
  EXPECT_EQ(group[3].view().load(4), 4);
  group.decided(3, {{.to = 0, .resource = 0, .amount = 2}});
  group.settle();
  EXPECT_EQ(group.messages(), 3 * (kMembers - 1));
  EXPECT_EQ(group[0].own()[0], 3);
  group.change(0, 2, true);  // the work arrives; it has been counted
  EXPECT_EQ(group[0].own()[0], 3);
}

TEST(Snapshot, SmallestRankGoesFirstAndTheLoserSeesItsDecision) {
  Group group = snapshot_group();
  group.want(2);
  for (Member m : {0u, 1u, 3u, 4u}) deliver(group, Kind::kStart, 2, m);
  for (Member m : {3u, 4u}) deliver(group, Kind::kAnswer, m, 2);
  group.want(1);  // 1 has granted 2's request, and 2 doesn't know yet that it has lost
  deliver(group, Kind::kStart, 1, 2);
  group.settle();
  EXPECT_TRUE(group.ready[1]);
  EXPECT_FALSE(group.ready[2]);
  group.decided(1, {{.to = 4, .resource = 0, .amount = 7}});
  group.settle();
  ASSERT_TRUE(group.ready[2]);
  EXPECT_EQ(group[2].view().load(4), 8);
}

TEST(Snapshot, CompleteRequestBeatsALaterSmallerRank) {
  Group group = snapshot_group();
  group.want(3);
  group.settle();
  ASSERT_TRUE(group.ready[3]);
  group.want(0);
  group.settle();
  EXPECT_FALSE(group.ready[0]);
  group.decided(3, {{.to = 1, .resource = 0, .amount = 1}});
  group.settle();
  ASSERT_TRUE(group.ready[0]);
  EXPECT_EQ(group[0].view().load(1), 2);
}

TEST(Snapshot, DropsAnAnswerToAnOldRequest) {
  Group group = snapshot_group(3);
  group.want(2);
  deliver(group, Kind::kStart, 2, 1);
  deliver(group, Kind::kAnswer, 1, 2);
  group.want(0);
  deliver(group, Kind::kStart, 0, 2);  // 2 yields and asks 1 again, with id 2
  const auto again = std::ranges::find_if(group.flying, [](const auto& f) { return f.from == 2 && f.to == 1; });
  ASSERT_NE(again, group.flying.end());
  EXPECT_EQ(again->message.id, 2u);
  Output out;
  group[2].received(1, {.kind = Kind::kAnswer, .id = 1, .loads = {99}}, out);
  EXPECT_NE(group[2].view().load(1), 99);
  EXPECT_TRUE(out.sends.empty());
  group.settle();
  EXPECT_TRUE(group.ready[0]);
}

TEST(Snapshot, EndAfterACountingAnswerAddsNothing) {
  Group group = snapshot_group(4);
  group.want(3);
  group.settle();
  group.want(0);
  group.decided(3, {{.to = 1, .resource = 0, .amount = 4}});
  deliver(group, Kind::kStart, 0, 1);
  deliver(group, Kind::kEnd, 3, 1);
  deliver(group, Kind::kAnswer, 1, 0);
  EXPECT_EQ(group[0].view().load(1), 5);
  deliver(group, Kind::kEnd, 3, 0);
  EXPECT_EQ(group[0].view().load(1), 5);
  group.settle();
  EXPECT_TRUE(group.ready[0]);
}

TEST(Snapshot, StartThatOvertakesAnEndWaitsForIt) {
  Group group = snapshot_group(2);
  group.want(0);
  group.settle();
  group.decided(0, {{.to = 1, .resource = 0, .amount = 4}});
  group.want(0);
  deliver(group, Kind::kStart, 0, 1);
  EXPECT_EQ(group.count(Kind::kAnswer), 1u) << "an answer now would lack the decision";
  deliver(group, Kind::kEnd, 0, 1);
  EXPECT_EQ(group.count(Kind::kAnswer), 2u);
  group.settle();
  ASSERT_TRUE(group.ready[0]);
  EXPECT_EQ(group[0].view().load(1), 5);
}

TEST(Snapshot, LostMemberBlocksNoOther) {
  Group group = snapshot_group();
  group.want(4);
  for (Member m : {0u, 2u, 3u}) deliver(group, Kind::kStart, 4, m);
  for (Member m : {0u, 2u, 3u}) deliver(group, Kind::kAnswer, m, 4);
  group.tick(4);
  EXPECT_EQ(group.late, (std::vector<Member>{1}));
  group.kill(1, [] { return false; });
  group.report_lost(4, 1);
  EXPECT_TRUE(group.ready[4]);
}

TEST(Snapshot, WaitsForTheMemberThatHoldsItsGrant) {
  Group group = snapshot_group(3);
  group.want(0);
  group.settle();
  group.tick(1);  // wants nothing itself
  EXPECT_EQ(group.late, (std::vector<Member>{0}));
  group.want(1);
  group.tick(1);
  EXPECT_EQ(group.late, (std::vector<Member>{0, 2}));
  group.tick(0);
  EXPECT_TRUE(group.late.empty());
}

TEST(Snapshot, ElectionContinuesWithoutItsWinner) {
  Group group = snapshot_group();
  for (Member m = 0; m < kMembers; ++m) group.want(m);
  for (Member m : {1u, 2u, 3u}) deliver(group, Kind::kStart, 0, m);  // 4 never hears of it
  group.kill(0, [] { return false; });
  for (Member m = 1; m < kMembers; ++m) group.report_lost(m, 0);
  for (Member m = 1; m < kMembers; ++m) {
    group.settle();
    for (Member other = 1; other < kMembers; ++other) EXPECT_EQ(group.ready[other], other == m);
    group.decided(m, {});
  }
}

TEST(Snapshot, NoDecisionWithoutAMajority) {
  Group group = snapshot_group(4);
  group.report_lost(0, 1);
  group.report_lost(0, 2);
  group.want(0);
  group.settle();
  EXPECT_FALSE(group.ready[0]) << "two of four aren't a majority";
}

TEST(Snapshot, TwoDecidersOneFreeSlot) {
  // Replicas 0 and 1 count their own jobs' slots; the pool has one.
  Group group(Mechanism::kSnapshot, 2);
  group.start({0});
  group.want(0);
  group.want(1);
  int taken = 0;
  for (int round = 0; round < 2; ++round) {
    group.settle();
    const Member m = group.ready[0] ? 0 : 1;
    ASSERT_TRUE(group.ready[m]);
    ASSERT_FALSE(group.ready[1 - m]);
    const bool free = group[m].view().total(0) < 1;
    taken += free;
    group.decided(m, free ? std::vector<Assignment>{{.to = m, .resource = 0, .amount = 1}} : std::vector<Assignment>{});
  }
  EXPECT_EQ(taken, 1);
}

}  // namespace
}  // namespace bsp::exchange
