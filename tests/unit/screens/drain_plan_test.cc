#include "operator/screens/drain_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/screens/a_job.h"

namespace bsp::screens {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json node_of(const std::string& name, const std::string& set, const std::string& cpu = "1",
             const char* label = "migbsp.io/set") {
  return {{"metadata", {{"name", name}, {"labels", {{label, set}}}}},
          {"status", {{"allocatable", {{"cpu", cpu}, {"memory", "8Gi"}, {"pods", "110"}}}}}};
}

// Rank 0 of a job of one rank is on a node a-0 of Set a.
ClusterObjects one_rank() {
  ClusterObjects objects;
  crds::BspJob job = a_job(1).job;
  job.status.ranks[0].node = "a-0";
  job.status.ranks[0].set = "a";
  objects.jobs = {job};
  objects.nodes = {node_of("a-0", "a")};
  return objects;
}

std::string plan_of(const ClusterObjects& objects) {
  const auto plan = drain_plan("a-0", objects, {.columns = 200, .lines = 24});
  return plan ? joined(*plan) : plan.error().message;
}

TEST(DrainPlan, PrefersTheRanksOwnSet) {
  ClusterObjects objects = one_rank();
  objects.nodes.push_back(node_of("b-0", "b"));
  EXPECT_THAT(plan_of(objects), HasSubstr("rank 0 (a) can go to b-0 (b, another Set)"));
  objects.nodes.push_back(node_of("a-1", "a"));
  EXPECT_THAT(plan_of(objects), HasSubstr("rank 0 (a) can go to a-1 (a)"));
  objects.jobs[0].spec.sets.names = {"b"};
  EXPECT_THAT(plan_of(objects), HasSubstr("can go to b-0"));
}

TEST(DrainPlan, SaysWhyThereIsNowhereToGo) {
  ClusterObjects objects = one_rank();
  EXPECT_THAT(plan_of(objects), HasSubstr("rank 0 (a) can go nowhere: no other node belongs to the job's Sets"));
  objects.nodes.push_back(node_of("a-1", "a"));
  objects.nodes[1]["spec"]["unschedulable"] = true;
  objects.nodes.push_back(node_of("b-0", "b"));
  objects.pods = {
      {{"spec",
        {{"nodeName", "b-0"}, {"containers", json::array({{{"resources", {{"requests", {{"cpu", "1"}}}}}}})}}}}};
  EXPECT_THAT(plan_of(objects),
              HasSubstr("1 node of b is full, 1 node of a is not ready, cordoned, tainted or not selected"));
}

TEST(DrainPlan, GivesNoSlotToTwoRanks) {
  ClusterObjects objects = one_rank();
  objects.jobs.push_back(objects.jobs[0]);
  objects.jobs[1].metadata.name = "other";
  objects.nodes.push_back(node_of("a-1", "a"));
  const std::string plan = plan_of(objects);
  EXPECT_THAT(plan, HasSubstr("a drain moves 1 of 2 ranks away"));
  EXPECT_THAT(plan, HasSubstr("can go nowhere: 1 node of a is full"));
}

// A pod of the job on a full node, with three seats of which rank 1 has one.
TEST(DrainPlan, TakesASeatThatARankHasLeftBeforeASlot) {
  ClusterObjects objects = one_rank();
  crds::BspJob& job = objects.jobs[0];
  job.status.ranks[0].pod = "weather-r0-g0";
  job.status.ranks.push_back(job.status.ranks[0]);
  job.status.ranks[1].rank = RankId{1};
  job.status.ranks[1].node = "a-2";
  job.status.ranks[1].pod = "weather-r1-g0";
  const auto container = [](const char* name) {
    return json{{"name", name}, {"resources", {{"requests", {{"cpu", "1"}}}}}};
  };
  const auto on_drained_node = [&](std::uint32_t rank) {
    job.status.ranks.push_back(job.status.ranks[0]);
    job.status.ranks.back().rank = RankId{rank};
    job.status.ranks.back().local = rank;
  };
  objects.nodes.push_back(node_of("a-1", "a"));
  objects.nodes.push_back(node_of("a-2", "a", "3"));
  objects.pods = {{{"metadata", {{"name", "weather-r1-g0"}, {"namespace", "science"}}},
                   {"spec",
                    {{"nodeName", "a-2"},
                     {"containers",
                      json::array({container("app"), container("app-1"), container("app-2"), container("helper")})}}}}};
  const json pod = objects.pods[0];
  EXPECT_THAT(plan_of(objects), HasSubstr("rank 0 (a) can go to a-2 (a), into a free seat of weather-r1-g0"));
  on_drained_node(2);
  on_drained_node(3);
  on_drained_node(4);
  EXPECT_THAT(plan_of(objects), HasSubstr("a drain moves 3 of 4 ranks away"));
  EXPECT_THAT(plan_of(objects), HasSubstr("ranks 0,2 (a) can go to a-2 (a), into a free seat of weather-r1-g0"));
  EXPECT_THAT(plan_of(objects), HasSubstr("rank 3 (a) can go to a-1 (a)\n"));
  EXPECT_THAT(plan_of(objects), HasSubstr("rank 4 (a) can go nowhere"));
  // Not one whose container has ended, nor one of a pod that ends, of another namespace, or without ranks.
  objects.pods[0]["status"]["containerStatuses"] =
      json::array({{{"name", "app-1"}, {"state", {{"terminated", {{"exitCode", 137}}}}}},
                   {{"name", "app-2"}, {"state", {{"running", json::object()}}}}});
  EXPECT_THAT(plan_of(objects), HasSubstr("rank 0 (a) can go to a-2 (a), into a free seat of weather-r1-g0"));
  EXPECT_THAT(plan_of(objects), HasSubstr("a drain moves 2 of 4 ranks away"));
  for (const auto& [name, value] :
       {std::pair{"deletionTimestamp", "2026-11-21T05:00:00Z"}, {"namespace", "other"}, {"name", "weather-r9-g0"}}) {
    objects.pods[0] = pod;
    objects.pods[0]["metadata"][name] = value;
    EXPECT_THAT(plan_of(objects), HasSubstr("a drain moves 1 of 4 ranks away")) << name;
  }
  objects.pods[0] = pod;
  objects.nodes[2]["spec"]["unschedulable"] = true;
  EXPECT_THAT(plan_of(objects), HasSubstr("a drain moves 1 of 4 ranks away"));
}

// A node has many ranks of one job.
TEST(DrainPlan, SaysOnceWhatHoldsForManyRanks) {
  ClusterObjects objects = one_rank();
  for (std::uint32_t rank = 1; rank < 16; ++rank) {
    objects.jobs[0].status.ranks.push_back(objects.jobs[0].status.ranks[0]);
    objects.jobs[0].status.ranks.back().rank = RankId{rank};
  }
  objects.jobs[0].status.ranks[5].blocked_reason = "not migratable now: an open window";
  objects.nodes.push_back(node_of("a-1", "a", "4"));
  EXPECT_EQ(plan_of(objects),
            "node a-0: a drain moves 4 of 16 ranks away; the others' jobs restart after drainTimeoutSeconds\n\n"
            "science/weather: Running, drainTimeoutSeconds 600\n"
            "  ranks 0-3 (a) can go to a-1 (a)\n"
            "  ranks 4,6-15 (a) can go nowhere: 1 node of a is full\n"
            "  rank 5 (a) can't move now: an open window\n");
}

TEST(DrainPlan, OfRanksThatCantMove) {
  ClusterObjects objects = one_rank();
  objects.nodes.push_back(node_of("a-1", "a"));
  objects.jobs[0].status.ranks[0].blocked_reason = "an open window\033[2J";
  EXPECT_THAT(plan_of(objects), HasSubstr("rank 0 (a) can't move now: an open window?[2J"));
  objects.jobs[0].status.phase = crds::JobPhase::kStarting;
  EXPECT_THAT(plan_of(objects), HasSubstr("can't move while the job is Starting"));
  objects.jobs[0].status.phase = crds::JobPhase::kSucceeded;
  EXPECT_THAT(plan_of(objects), HasSubstr("no rank of a BSPJob runs there"));
}

TEST(DrainPlan, UsesTheCloudsPoolLabel) {
  ClusterObjects objects = one_rank();
  objects.nodes = {node_of("a-0", "a", "1", "cloud.google.com/gke-nodepool"),
                   node_of("a-1", "a", "1", "cloud.google.com/gke-nodepool")};
  EXPECT_THAT(plan_of(objects), HasSubstr("can go to a-1 (a)"));
}

TEST(DrainPlan, UsesTheLabelOfTheJobsPlaces) {
  ClusterObjects objects = one_rank();
  objects.nodes = {node_of("a-0", "a", "1", "cloud.google.com/gke-nodepool"),
                   node_of("a-1", "a", "1", "cloud.google.com/gke-nodepool"), node_of("b-0", "trial")};
  EXPECT_THAT(plan_of(objects), HasSubstr("can go to b-0 (trial, another Set)"));
  objects.jobs[0].status.set_label = "cloud.google.com/gke-nodepool";
  EXPECT_THAT(plan_of(objects), HasSubstr("can go to a-1 (a)"));
}

TEST(DrainPlan, NamesTheNodesThatExist) {
  const auto plan = drain_plan("a-7", one_rank());
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message, "there is no node a-7; did you mean a-0?");
}

TEST(DrainPlan, OfOddObjects) {
  ClusterObjects objects = one_rank();
  for (json odd : {json(), json(7), json::array(), json{{"metadata", 3}},
                   json{{"spec", {{"nodeName", 4}, {"containers", "x"}}}}}) {
    objects.nodes.push_back(odd);
    objects.pods.push_back(odd);
  }
  EXPECT_THAT(plan_of(objects), HasSubstr("can go nowhere"));
}

}  // namespace
}  // namespace bsp::screens
