// Gangs whose ranks share pods: the PodGroup counts pods, and each start has one with the number of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/kernel/status.h"
#include "tests/unit/reconcile/expectations.h"

namespace bsp::reconcile::sim {
namespace {

using crds::Gang;
using crds::JobPhase;
using testing::IsEmpty;
using testing::SizeIs;

struct GangsOfSeats : testing::TestWithParam<Gang> {
  // Five ranks on nodes with three slots each: pods of two and of one rank, and of two.
  World w{{.ranks = 5, .slow = 2, .fast = 2, .slots = 3, .ranks_per_pod = 2}};
  GangsOfSeats() {
    w.capacity_may_come = true;
    w.job.spec.scheduling.gang = GetParam();
  }
  [[nodiscard]] std::uint32_t members(const nlohmann::json& group) const {
    const nlohmann::json& spec = group.at("spec");
    return GetParam() == Gang::kPodGroup ? spec.at("schedulingPolicy").at("gang").at("minCount").get<std::uint32_t>()
                                         : spec.at("minMember").get<std::uint32_t>();
  }
  [[nodiscard]] static std::string name_of(const nlohmann::json& group) { return group.at("metadata").at("name"); }
};

TEST_P(GangsOfSeats, TheGroupIsMadeBeforeThePodsAndCountsThem) {
  w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kPending);
  EXPECT_THAT(w.pods, IsEmpty());
  ASSERT_THAT(w.pod_groups, SizeIs(1));
  EXPECT_EQ(name_of(w.pod_groups[0]), "job-job-uid-p3");
  EXPECT_EQ(members(w.pod_groups[0]), 3u);
  EXPECT_THAT(w.job.status.ranks, IsEmpty()) << "nothing is stored before the group is there";
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.violation << w.trace;
  EXPECT_THAT(w.pods, SizeIs(3));
  EXPECT_THAT(w.pod_groups, SizeIs(1));
  for (const PodRequest& pod : w.created) EXPECT_EQ(pod.pod_group, "job-job-uid-p3");
  EXPECT_EQ(w.unrest(), "");
}

// The nodes change while the group is being made: the start that follows has another number of pods, and so another group.
TEST_P(GangsOfSeats, AStartThatIsMappedAnewHasAnotherGroup) {
  w.tick();
  ASSERT_THAT(w.pod_groups, SizeIs(1));
  for (auto& node : w.nodes) node.slots = 2;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.violation << w.trace;
  EXPECT_THAT(w.pods, SizeIs(3));
  for (auto& node : w.nodes) node.slots = 1;
  w.nodes.push_back({.name = "slow-2", .set = "slow", .slots = 1});
  w.end_program(4, 3, 0);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.attempt == 1 && w.job.status.phase == JobPhase::kRunning; }))
      << w.violation << w.trace;
  EXPECT_THAT(w.pods, SizeIs(5));
  ASSERT_THAT(w.pod_groups, SizeIs(2));
  EXPECT_EQ(name_of(w.pod_groups[1]), "job-job-uid-1-p5");
  EXPECT_EQ(members(w.pod_groups[1]), 5u);
}

// A rank beside rank 0 has had more pods than that, so the next pod of both has a later generation than rank 0's.
TEST_P(GangsOfSeats, AStartAfterMovesFindsItsGroup) {
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.violation << w.trace;
  for (const char* set : {"fast", "slow"}) {
    w.migrate_by_hand(std::string("to-") + set, 1, set);
    ASSERT_TRUE(w.run_until([&] { return crds::is_finished(w.migration(std::string("to-") + set).status.phase); }))
        << w.violation << w.trace;
  }
  w.end_program(4, 3, 0);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.attempt == 1 && w.job.status.phase == JobPhase::kRunning; }))
      << w.violation << w.trace;
  EXPECT_EQ(w.violation, "");
  EXPECT_THAT(w.pods, SizeIs(3));
  EXPECT_EQ(members(w.pod_groups.back()), 3u);
  EXPECT_EQ(w.created.back().pod_group, name_of(w.pod_groups.back()));
}

INSTANTIATE_TEST_SUITE_P(OfEachScheduler, GangsOfSeats,
                         testing::Values(Gang::kPodGroup, Gang::kSchedulerPlugins, Gang::kVolcano),
                         [](const auto& p) { return std::string(crds::to_string(p.param)); });

}  // namespace
}  // namespace bsp::reconcile::sim
