// Where a set is restored that a node has refused, or on which a restore has failed.
#include "operator/reconcile/kernel/checkpoints/fitting_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <set>

#include "operator/reconcile/kernel/checkpoints/checkpoints.h"
#include "operator/reconcile/kernel/conditions.h"
#include "tests/unit/reconcile/expectations.h"
#include "tests/unit/reconcile/sets.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const CpuFeatures kAvx2 = *CpuFeatures::from_names("pni,avx,avx2"),
                  kAvx512 = *CpuFeatures::from_names("pni,avx,avx2,avx512f");

std::set<std::string> nodes_of(const World& w) {
  std::set<std::string> nodes;
  for (const crds::RankPlace& place : w.job.status.ranks) nodes.insert(place.node);
  return nodes;
}

// The ranks of `w` have a set, and `node`, which one had, is gone.
void lose_after_a_set(World& w, const std::string& node) {
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 2)) << w.trace;
  w.job.spec.checkpoint.interval = "1h";
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  ASSERT_THAT(nodes_of(w), Contains(node));
  w.lose_node(node);
  std::erase_if(w.nodes, [&](const observe::NodeFacts& one) { return one.name == node; });
}

bool resumes(World& w) {
  return w.run_until([&] { return w.has_event(kResumedFrom); }, 5000);
}

std::vector<std::string> reasons_of_restarts(const World& w) {
  std::vector<std::string> reasons;
  for (const crds::RestartRecord& restart : w.job.status.restarts) reasons.push_back(restart.reason);
  return reasons;
}

TEST(FittingNodes, ASetThatACpuRefusesIsRestoredOnAnother) {
  World w({.ranks = 2, .slow = 4, .fast = 2});
  w.cpus = {{"slow", kAvx512}, {"fast", kAvx2}, {"slow-2", kAvx2}};
  ASSERT_NO_FATAL_FAILURE(lose_after_a_set(w, "slow-0"));
  const std::uint64_t last = newest(w).id;
  ASSERT_TRUE(resumes(w)) << w.job.status.message;
  EXPECT_EQ(w.job.status.checkpoint->restored, last);
  EXPECT_FALSE(w.has_event(kSetUnusable));
  EXPECT_THAT(nodes_of(w), ElementsAre("slow-1", "slow-3"));
  ASSERT_THAT(reasons_of_restarts(w), Contains(kCpuFeaturesDiffer));
  EXPECT_THAT(w.job.status.restarts.back().message, HasSubstr("the CPU of node slow-2 lacks avx512f"));
  EXPECT_EQ(w.job.status.checkpoint->without_progress, 1u) << "only the loss counts";
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST(FittingNodes, ASetGoesToAnotherSetOfNodesThatHasTheCpu) {
  World w({.ranks = 2, .slow = 3, .fast = 2});
  w.cpus = {{"slow", kAvx2}, {"fast", kAvx512}};
  w.job.spec.sets.names = {"fast", "slow"};
  ASSERT_NO_FATAL_FAILURE(lose_after_a_set(w, "fast-0"));
  w.nodes.push_back({.name = "fast-9", .set = "fast", .cordoned = true});
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kSetUnusable); }, 5000)) << "there is room for one only";

  World other({.ranks = 2, .slow = 3, .fast = 3});
  other.cpus = {{"slow", kAvx2}, {"fast", kAvx512}};
  ASSERT_NO_FATAL_FAILURE(lose_after_a_set(other, "slow-0"));
  for (auto& set : other.job.status.checkpoint->sets) set.features = {{std::format("{:x}", kAvx512.bits()), "0-1"}};
  ASSERT_TRUE(resumes(other)) << other.job.status.message;
  EXPECT_THAT(nodes_of(other), ElementsAre("fast-0", "fast-1"));
  EXPECT_FALSE(other.has_event(kSetUnusable));
}

// Ranks that have seen different features keep to the nodes that each needs, as they were mapped.
TEST(FittingNodes, RanksThatHaveSeenLessStayWhereTheyAre) {
  World w({.ranks = 4, .slow = 2, .fast = 6});
  w.cpus = {{"slow", kAvx512}, {"fast", kAvx2}};
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 2)) << w.trace;
  w.job.spec.checkpoint.interval = "1h";
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.end_program(0, 0, 9);
  ASSERT_TRUE(resumes(w)) << w.job.status.message;
  EXPECT_THAT(nodes_of(w), ElementsAre("fast-0", "fast-1", "slow-0", "slow-1"));
  EXPECT_EQ(w.job.status.restarts.size(), 1u);
}

TEST(FittingNodes, ASetIsGivenUpOnceEveryNodeIsKnownToLackSomething) {
  World w({.ranks = 2, .slow = 5, .fast = 1});
  w.cpus = {{"slow", kAvx2}, {"fast", kAvx2}};
  ASSERT_NO_FATAL_FAILURE(lose_after_a_set(w, "slow-0"));
  for (auto& set : w.job.status.checkpoint->sets) set.features = {{std::format("{:x}", kAvx512.bits()), "0-1"}};
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kSetUnusable); }, 5000)) << w.job.status.message;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning, 5000)) << w.job.status.message;
  std::set<std::string> tried;
  for (const PodRequest& request : w.created) tried.insert(request.node);
  EXPECT_EQ(tried.size(), 6u) << "each node was tried";
  EXPECT_FALSE(w.has_event(kResumedFrom));
  EXPECT_EQ(w.violation, "") << w.trace;
}

// As of an autoscaler that makes one node after the other.
TEST(FittingNodes, ASetIsGivenUpAfterSomeAttemptsWhateverNodesThereAre) {
  World w({.ranks = 2, .slow = 40, .fast = 0});
  w.job.spec.sets.names = {"slow"};
  w.cpus = {{"slow", kAvx2}};
  ASSERT_NO_FATAL_FAILURE(lose_after_a_set(w, "slow-0"));
  for (auto& set : w.job.status.checkpoint->sets) set.features = {{std::format("{:x}", kAvx512.bits()), "0-1"}};
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kSetUnusable); }, 9000)) << w.job.status.message;
  EXPECT_EQ(std::ranges::count(reasons_of_restarts(w), kCpuFeaturesDiffer), std::ptrdiff_t{kCpuTries});
}

// In a cluster the scheduler chooses the node within a Set.
TEST(FittingNodes, TheSchedulerIsTold) {
  World w({.ranks = 2, .slow = 4, .fast = 1});
  w.capacity_may_come = w.scheduled = true;
  w.cpus = {{"slow", kAvx512}, {"fast", kAvx2}, {"slow-2", kAvx2}};
  ASSERT_NO_FATAL_FAILURE(lose_after_a_set(w, "slow-0"));
  const std::uint64_t last = newest(w).id;
  ASSERT_TRUE(resumes(w)) << w.job.status.message;
  EXPECT_EQ(w.job.status.checkpoint->restored, last);
  EXPECT_THAT(w.created.back().unfit, ElementsAre("slow-2"));
  EXPECT_EQ(w.pod_of(0)->node, "slow-1");
  EXPECT_EQ(w.pod_of(1)->node, "slow-3");
  EXPECT_EQ(w.violation, "") << w.trace;
}

// --- A node on which a restore has failed ----------------------------------------------------------------

// Two ranks, the restore of one of which fails on slow-1.
void lose_and_fail(World& w, const std::string& why, bool by_storage = false) {
  w.job.spec.run_policy.backoff_limit = 9;
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 2)) << w.trace;
  w.job.spec.checkpoint.interval = "1h";
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  ASSERT_THAT(nodes_of(w), ElementsAre("slow-0", "slow-1"));
  w.end_program(0, 0, 9);
  ASSERT_TRUE(w.run_until(
      [&] {
        for (auto& [name, pod] : w.pods) {
          pod.restore_fails = pod.node == "slow-1" && !by_storage ? why : "";
          pod.storage_fails = pod.node == "slow-1" && by_storage;
        }
        return w.job.status.attempt == 2 || w.has_event(kResumedFrom);
      },
      9000))
      << w.trace;
  ASSERT_FALSE(w.has_event(kResumedFrom));
  for (auto& [name, pod] : w.pods) pod.restore_fails = "", pod.storage_fails = false;
}

TEST(FittingNodes, ANodeWhereARestoreHasFailedIsLeftOutIfAnotherHasRoom) {
  for (const bool by_storage : {false, true}) {
    World w({.ranks = 2, .slow = 3, .fast = 1});
    ASSERT_NO_FATAL_FAILURE(lose_and_fail(w, "criu restore failed: no such device", by_storage));
    ASSERT_TRUE(resumes(w)) << w.job.status.message;
    EXPECT_THAT(nodes_of(w), ElementsAre("slow-0", "slow-2")) << by_storage;
    EXPECT_EQ(w.created.back().rather_not_on, "slow-1");
    EXPECT_EQ(w.violation, "") << w.trace;
  }
}

TEST(FittingNodes, ANodeWhereARestoreHasFailedIsTakenIfNoOtherHasRoom) {
  World w({.ranks = 2, .slow = 2, .fast = 0});
  w.job.spec.sets.names = {"slow"};
  ASSERT_NO_FATAL_FAILURE(lose_and_fail(w, "criu restore failed: no such device"));
  ASSERT_TRUE(resumes(w)) << w.job.status.message;
  EXPECT_THAT(nodes_of(w), ElementsAre("slow-0", "slow-1"));
}

// Kueue has admitted the job to certain Sets.
TEST(FittingNodes, NoOtherSetIsChosenThanThatWhichKueueHasAdmitted) {
  World w({.ranks = 2, .slow = 2, .fast = 2});
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 1)) << w.trace;
  Observed o = w.observe();
  crds::StoredSet set = newest(w);
  set.suspected_on = "slow-0";
  const auto cordoned = [&] {
    std::vector<std::string> names;
    for (const observe::NodeFacts& node : nodes_to_resume_on(set, o, o.nodes))
      if (node.cordoned) names.push_back(node.name);
    return names;
  };
  EXPECT_THAT(cordoned(), ElementsAre("slow-0"));
  o.queued.emplace();
  EXPECT_THAT(cordoned(), IsEmpty());
}

}  // namespace
}  // namespace bsp::reconcile::sim
