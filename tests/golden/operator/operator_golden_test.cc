// The operator's complete output for other readers: the Pods that it creates from a template with all fields, the text of
// a plan for each heuristic, and the output of `describe`.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json/yaml.h"
#include "crds/manifest.h"
#include "operator/decide/explain.h"
#include "operator/decide/model/strategy.h"
#include "operator/local/cli/describe.h"
#include "operator/reconcile/kernel/pods/pods.h"
#include "tests/golden/golden.h"
#include "tests/unit/decide/world.h"

namespace bsp {
namespace {

crds::BspJob everything() {
  auto job = crds::read_bsp_job(golden::read("operator/everything.yaml"), "everything.yaml");
  EXPECT_TRUE(job) << job.error().message;
  job->metadata.uid = "0b5e";
  return *job;
}

TEST(GoldenPod, OfARank) {
  reconcile::PodRequest request;
  request.rank = 3;
  request.generation = 1;
  request.attempt = 2;
  request.set = "fast";
  request.node = "fast-0";
  const auto pod = reconcile::make_pod(everything(), request, {.entrypoint = {"/entry"}, .command = {}, .user = "mpi"});
  golden::expect_same("operator/pod_of_a_rank.yaml", write_yaml(pod));
}

TEST(GoldenPod, OfATarget) {
  reconcile::PodRequest request;
  request.rank = 3;
  request.generation = 2;
  request.set = "fast";
  request.node = "fast-0";
  request.target = true;
  request.migration = "weather-w1-r3";
  const auto pod = reconcile::make_pod(everything(), request, {.entrypoint = {"/entry"}, .command = {}, .user = "mpi"});
  golden::expect_same("operator/pod_of_a_target.yaml", write_yaml(pod));
}

TEST(GoldenPod, OfTheShortestTemplate) {
  auto job = crds::read_bsp_job(
      "apiVersion: migbsp.io/v1alpha1\nkind: BSPJob\nmetadata: {name: short, namespace: default}\n"
      "spec: {ranks: 1, template: {spec: {containers: [{name: app, image: localhost/x}]}}}\n",
      "short.yaml");
  ASSERT_TRUE(job) << job.error().message;
  job->metadata.uid = "1";
  const auto pod = reconcile::make_pod(*job, {}, {.entrypoint = {"/entry"}, .command = {"run"}, .user = ""});
  golden::expect_same("operator/pod_of_the_shortest_template.yaml", write_yaml(pod));
}

// Two pools, one twice as fast as the other; rank 5 computes less than the others, rank 3 receives much data from fast.
// Each heuristic runs twice: with one rank that can't move and one that has just moved, and without.
TEST(GoldenPlan, OfEachHeuristic) {
  decide::World world({{"slow", 6, 5e8, 1}, {"fast", 6, 1e9, 1}}, {0, 1, 2, 3, 4, 5, 6});
  world.instructions[5] = 2e8;
  world.recv_bytes[3, 1] = 4e6;
  auto& snapshot = world.snapshot;
  for (auto& rank : snapshot.ranks) rank.memory_bytes = 5e6;
  snapshot.ranks[2].last_move = {3};
  for (auto& p : snapshot.platform.processors)
    if (p.set.value == 1) p.cpu_origin = decide::Origin::kMeasured;
  std::string text;
  for (const decide::Strategy& strategy : decide::strategies()) {
    for (const bool held : {true, false}) {
      snapshot.ranks[1].not_migratable = held ? "an open RMA window" : "";
      const auto plan = world.plan({.heuristic = strategy.heuristic, .alpha0 = 4, .cooldown = held ? 10u : 0u});
      ASSERT_TRUE(plan) << plan.error().message;
      for (const std::string& line : decide::explain(*plan, snapshot)) text += line + "\n";
      for (const decide::Move& move : plan->moves) text += decide::describe(move, snapshot) + "\n";
      text += "\n";
    }
  }
  golden::expect_same("operator/plans.txt", text);
}

TEST(GoldenDescribe, AJobAndAMigration) {
  const auto documents = read_yaml(golden::read("operator/described.yaml"));
  ASSERT_TRUE(documents) << documents.error().message;
  ASSERT_EQ(documents->size(), 2u);
  const auto job = crds::bsp_job_from_json(documents->at(0));
  const auto migration = crds::rank_migration_from_json(documents->at(1));
  ASSERT_TRUE(job) << job.error().message;
  ASSERT_TRUE(migration) << migration.error().message;
  const nlohmann::json event = {{"type", "Warning"},
                                {"reason", "RankKilled"},
                                {"eventTime", "2026-11-21T04:10:00.000000Z"},
                                {"note", "rank 2 was ended by SIGSEGV"}};
  const Time now = from_rfc3339("2026-11-21T05:00:00Z");
  golden::expect_same(
      "operator/described_job.txt",
      local::describe_job(*job, {"call after superstep 1100: AutoMig moves 1 of 3 ranks"}, {event}, now));
  golden::expect_same("operator/described_migration.txt", local::describe_migration(*migration, now));
}

}  // namespace
}  // namespace bsp
