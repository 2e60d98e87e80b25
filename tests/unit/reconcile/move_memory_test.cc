// A rank is at its target twice for a moment, as a checkpoint and as a process: a node that has a slot, but not the
// memory for both, is no target, and the job says so.
#include "operator/reconcile/kernel/rescheduling/move_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <nlohmann/json.hpp>

#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/kernel/waves.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr std::int64_t kMi = 1 << 20;

// Ranks 0 and 1 in slow, rank 2 in fast, whose two other nodes have a free slot each; a rank requests 256 MiB and uses 100.
class MoveMemoryTest : public testing::Test {
 protected:
  MoveMemoryTest() {
    sim::World w({.ranks = 3, .slow = 2, .fast = 3});
    check(w.run_until(crds::JobPhase::kRunning), "the job runs");
    o = w.observe();
    child()["resources"]["requests"]["memory"] = "256Mi";
    for (crds::RankPlace& rank : o.job.status.ranks) rank.memory_bytes = 100 * kMi;
    from = std::ranges::find(o.job.status.ranks, "slow", &crds::RankPlace::set)->rank.value;
  }
  json& child() { return o.job.spec.pod_template["spec"]["containers"][0]; }
  // Of all nodes of fast, for this job's pods.
  void give(std::int64_t mebibytes) {
    for (observe::NodeFacts& node : o.nodes)
      if (node.set == "fast") node.memory = mebibytes * kMi;
  }
  WaveStart begin(std::vector<MoveRequest> requests) {
    crds::BspJobStatus status = o.job.status;
    return begin_wave(o, std::move(requests), status);
  }
  [[nodiscard]] MoveRequest to_fast() const { return {.migration = "m", .rank = from, .set = "fast", .node = ""}; }

  Observed o;
  std::uint32_t from = 0;
};

TEST_F(MoveMemoryTest, IncludesTheRankAndItsCheckpoint) {
  const MoveMemory asked = MoveCapacity(o).of(o.job.status.ranks[0]);
  EXPECT_EQ(asked.process, 256 * kMi);
  EXPECT_EQ(asked.checkpoint, 100 * kMi);
  o.job.status.ranks[0].memory_bytes = 300 * kMi;
  EXPECT_EQ(MoveCapacity(o).of(o.job.status.ranks[0]).both(), 600 * kMi) << "it holds more than it asked for";
  EXPECT_EQ(MoveCapacity(o).of_largest().both(), 600 * kMi);
  child().erase("resources");
  EXPECT_EQ(MoveCapacity(o).of(o.job.status.ranks[1]).both(), 200 * kMi) << "it asked for nothing";
  o.job.status.ranks[0].memory_bytes = ~0ull;
  EXPECT_GT(MoveCapacity(o).of_largest().both(), 0) << "what a sidecar says may be anything";
}

TEST_F(MoveMemoryTest, OfANodeIsWhatTheJobsPodsLeave) {
  give(512);
  for (const observe::NodeFacts& node : o.nodes) {
    const bool holds = std::ranges::any_of(o.pods, [&](const auto& entry) { return entry.second.node == node.name; });
    EXPECT_EQ(MoveCapacity(o).free_memory(node), node.set == "slow" ? INT64_MAX : (holds ? 256 : 512) * kMi);
  }
}

TEST_F(MoveMemoryTest, DecidesWhetherAMoveMayBegin) {
  give(356);
  EXPECT_TRUE(begin({to_fast()}).wave);
  give(355);
  const WaveStart start = begin({to_fast()});
  EXPECT_FALSE(start.wave);
  ASSERT_EQ(start.refused.size(), 1u);
  EXPECT_EQ(start.refused[0].reason, "NoCapacity");
  EXPECT_THAT(
      start.refused[0].message,
      HasSubstr("has a free slot, but not the memory that a move takes while it lasts: 256 MiB for the rank and "
                "100 MiB for its checkpoint, and 355 MiB are left"));
}

TEST_F(MoveMemoryTest, ClosesNodesToDecisions) {
  auto open = [&] {
    std::vector<observe::NodeFacts> nodes = o.nodes;
    keep_memory(nodes, o);
    std::uint32_t slots = 0;
    for (const observe::NodeFacts& node : nodes)
      if (node.set == "fast") slots += node.slots - node.taken;
    return slots;
  };
  EXPECT_EQ(open(), 3u) << "memory is not counted";
  give(356);
  EXPECT_EQ(open(), 3u) << "the rank that is in fast keeps its slot";
  give(355);
  EXPECT_EQ(open(), 1u);
}

// Rank `from` needs 64 GiB for a moment, the others 512 MiB.
TEST_F(MoveMemoryTest, OfARankThatFitsNowhereClosesNoNodeToOthers) {
  give(40 * 1024);
  o.job.status.ranks[from].memory_bytes = 32 * 1024 * kMi;
  std::vector<observe::NodeFacts> nodes = o.nodes;
  for (observe::NodeFacts& node : nodes)
    if (node.set == "slow") node.cordoned = true;
  o.nodes = nodes;
  const std::map<std::uint32_t, std::string> held_back = keep_memory(nodes, o);
  std::uint32_t open = 0;
  for (const observe::NodeFacts& node : nodes)
    if (node.set == "fast") open += node.slots - node.taken;
  EXPECT_EQ(open, 3u);
  ASSERT_EQ(held_back.size(), 1u);
  EXPECT_THAT(held_back.at(from), HasSubstr("not the memory that a move takes while it lasts: 32768 MiB for the rank"));
  crds::BspJobStatus status = o.job.status;
  EXPECT_TRUE(warn_of_move_memory(o, status));
  EXPECT_THAT(crds::find_condition(status.conditions, kMovesLackMemory)->message,
              HasSubstr(std::format("rank {} can't move: node fast-", from)));
}

TEST_F(MoveMemoryTest, IsReportedInACondition) {
  crds::BspJobStatus status = o.job.status;
  give(356);
  EXPECT_FALSE(warn_of_move_memory(o, status));
  EXPECT_EQ(crds::find_condition(status.conditions, kMovesLackMemory), nullptr) << "nothing to report";
  give(300);
  EXPECT_TRUE(warn_of_move_memory(o, status));
  EXPECT_THAT(crds::find_condition(status.conditions, kMovesLackMemory)->message,
              HasSubstr("no rank can move into Set fast: node fast-"));
  const std::string message = crds::find_condition(status.conditions, kMovesLackMemory)->message;
  give(290);
  EXPECT_FALSE(warn_of_move_memory(o, status)) << "how much too little is no news";
  EXPECT_EQ(crds::find_condition(status.conditions, kMovesLackMemory)->message, message);
  give(400);
  EXPECT_FALSE(warn_of_move_memory(o, status));
  EXPECT_EQ(crds::find_condition(status.conditions, kMovesLackMemory)->status, crds::ConditionStatus::kFalse);
}

// The scheduler counts a pod's requests, but not its checkpoint.
TEST(ReservedMemory, HoldsTheCheckpointAfterTheTargetIsPlaced) {
  Reservation reservation{
      .uid = "u", .wave = 1, .each = {500, 256 * kMi, 1}, .checkpoint = 100 * kMi, .slots = {}, .until = {}};
  reservation.slots.push_back({"a-r0-g1", 0, "fast", "fast-1"});
  const Reservations reservations =
      reservations_from_json({{"data", reservation_data({.of_job = {{"default/a", reservation}}, .version = ""})}});
  const auto at_fast = [&](bool placed) {
    return reserved_by_others(reservations, "default/b", [&](const auto&, const auto&) { return placed; }).at("fast-1");
  };
  EXPECT_EQ(at_fast(false), (Resources{500, 356 * kMi, 1}));
  EXPECT_EQ(at_fast(true), (Resources{0, 100 * kMi, 0}));
}

TEST_F(MoveMemoryTest, WhatTheTemplateAsksForAndThePodsLackIsReported) {
  crds::BspJobStatus status = o.job.status;
  o.capacity_may_come = true;
  EXPECT_FALSE(warn_of_overrides(o, status));
  child()["securityContext"]["capabilities"]["add"] = {"IPC_LOCK"};
  o.job.spec.pod_template["spec"]["restartPolicy"] = "OnFailure";
  o.job.spec.pod_template["spec"]["terminationGracePeriodSeconds"] = 0;
  EXPECT_TRUE(warn_of_overrides(o, status));
  EXPECT_THAT(crds::find_condition(status.conditions, kTemplateOverridden)->message,
              AllOf(HasSubstr("restartPolicy is OnFailure and the pods have Never"), HasSubstr("IPC_LOCK"),
                    HasSubstr("terminationGracePeriodSeconds is 0 and the pods have 1")));
  EXPECT_FALSE(warn_of_overrides(o, status)) << "reported once";
}

TEST_F(MoveMemoryTest, AReplacedProfileIsReported) {
  crds::BspJobStatus status = o.job.status;
  o.job.spec.rescheduling.mode = crds::ReschedulingMode::kMigrate;
  EXPECT_FALSE(warn_of_seccomp(o, status));
  child()["securityContext"]["seccompProfile"]["type"] = "RuntimeDefault";
  EXPECT_TRUE(warn_of_seccomp(o, status));
  EXPECT_THAT(crds::find_condition(status.conditions, kSeccompReplaced)->message,
              HasSubstr("asks for seccompProfile RuntimeDefault, and the program runs Unconfined"));
  EXPECT_FALSE(warn_of_seccomp(o, status)) << "reported once";
  o.job.spec.rescheduling.mode = crds::ReschedulingMode::kOff;
  EXPECT_FALSE(warn_of_seccomp(o, status));
  EXPECT_EQ(crds::find_condition(status.conditions, kSeccompReplaced)->status, crds::ConditionStatus::kFalse);
  o.job.spec.checkpoint.storage = crds::CheckpointStorage{};
  EXPECT_TRUE(warn_of_seccomp(o, status));
  EXPECT_THAT(crds::find_condition(status.conditions, kSeccompReplaced)->message,
              HasSubstr("mode Off or Advise and without spec.checkpoint.storage"))
      << "each of both needs the program Unconfined";
}

}  // namespace
}  // namespace bsp::reconcile
