// What the operator only observes: sidecars' answers, RankMigrations, Kueue's Workloads, with every value at every place of them.
#include <gtest/gtest.h>

#include "crds/rankmigration.h"
#include "operator/kinds.h"
#include "operator/reconcile/kernel/start/kueue.h"
#include "operator/reconcile/shell/node_benchmarks.h"
#include "operator/reconcile/shell/objects.h"
#include "tests/unit/reconcile/every_place.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using hostile::at_every_place;
using nlohmann::json;

class Seen : public ::testing::Test {
 protected:
  // What is stored can be read.
  static void reconcile(const sim::World& world, Observed o) {
    o.now = from_rfc3339("2026-11-25T04:05:06Z");
    JobClocks().fill(o);
    const Step out = reconcile_job(o, unadvised(o), world.limits, world.job_limits);
    crds::BspJob next = o.job;
    next.status = status_of(out);
    const auto read = crds::bsp_job_from_json(json::parse(json(next).dump()));
    EXPECT_TRUE(read) << read.error().message;
  }
};

class SeenIn : public Seen, public ::testing::WithParamInterface<migrate::Phase> {};

TEST_P(SeenIn, ASidecarsAnswer) {
  sim::World world({.name = "job", .ranks = 2, .slow = 2, .fast = 2});
  ASSERT_TRUE(world.run_until(crds::JobPhase::kRunning)) << world.trace;
  world.migrate_by_hand("by-hand", 0, "fast");
  ASSERT_TRUE(world.run_until(GetParam())) << world.trace;
  Observed seen = world.observe();
  seen.steady += std::chrono::hours(1);  // so that the wave's limits, which go by what sidecars report, are asked for
  int answers = 0;
  for (const auto& [seat, sidecar] : seen.sidecars) {
    if (!sidecar.status) continue;
    json good = *sidecar.status;
    good["cpu"] = {{"model", "m"}, {"integer_ns", 150'000}, {"floating_ns", 150'000}, {"memory_ns", 150'000}};
    at_every_place(good, [&](const json& changed, const auto&) {
      const auto status = wire::rank_status_from_json(changed);
      if (!status) return;
      Observed o = seen;
      o.sidecars[seat].status = *status;
      NodeBenchmarks().share(o);
      doubt_claims(o.sidecars, o.steady);
      reconcile(world, std::move(o));
      ++answers;
    });
  }
  EXPECT_GT(answers, 200);
}

INSTANTIATE_TEST_SUITE_P(Hostile, SeenIn,
                         ::testing::Values(migrate::Phase::kPreparing, migrate::Phase::kPausing,
                                           migrate::Phase::kCheckpointing, migrate::Phase::kResuming),
                         [](const auto& phase) { return std::string(crds::to_string(phase.param)); });

TEST_F(Seen, ARankMigration) {
  sim::World world({.name = "job", .ranks = 2, .slow = 2, .fast = 2});
  ASSERT_TRUE(world.run_until(crds::JobPhase::kRunning)) << world.trace;
  world.migrate_by_hand("by-hand", 0, "fast");
  json made;
  to_json(made, world.migration("by-hand"));
  ASSERT_TRUE(
      world.run_until([&] { return world.migration("by-hand").status.phase == crds::MigrationPhase::kSucceeded; }));
  json done;
  to_json(done, world.migration("by-hand"));
  const Observed seen = world.observe();
  int read = 0;
  for (const json& good : {made, done})
    at_every_place(good, [&](const json& changed, const auto&) {
      const auto migration = crds::rank_migration_from_json(changed);
      if (!migration) return;
      Observed o = seen;
      o.migrations = {*migration};
      o.leaving["slow-0"] = "is cordoned";
      reconcile(world, std::move(o));
      ++read;
    });
  EXPECT_GT(read, 100);
}

TEST_F(Seen, AWorkloadOfKueue) {
  sim::World world({.name = "job", .ranks = 2});
  world.queued = Queued{"team", {}};
  ASSERT_TRUE(world.run_until([&] { return !world.queued->workload.is_null(); })) << world.trace;
  json good = world.queued->workload;
  good["metadata"]["resourceVersion"] = "4";
  good["metadata"]["generation"] = 2;
  good["status"] = {{"admission", {{"clusterQueue", "all"}}}, {"conditions", json::array()}};
  for (const char* type : {"QuotaReserved", "Admitted", "Evicted", "PodsReady"})
    good["status"]["conditions"].push_back(
        {{"type", type}, {"status", "True"}, {"reason", "Preempted"}, {"message", "m"}});
  good["spec"]["podSets"] = json::array();  // the operator's own
  const Observed seen = world.observe();
  int writes = 0;
  at_every_place(good, [&](json changed, const auto&) {
    for (const bool trimmed : {false, true}) {
      if (trimmed) trim_watched(kWorkload, changed);
      for (const crds::JobPhase phase :
           {crds::JobPhase::kSuspended, crds::JobPhase::kRunning, crds::JobPhase::kSucceeded}) {
        Observed o = seen;
        o.job.status.phase = phase;
        o.queued = Queued{"team", changed};
        (void)admits(*o.queued);
        (void)json(why_held(*o.queued)).dump();
        const WorkloadWrites wanted = workload_writes(o, false);
        (void)wanted.status.dump();
        writes += !wanted.status.is_null() || !wanted.spec.is_null() || !wanted.create.is_null();
      }
      Observed o = seen;
      o.queued = Queued{"team", changed};
      reconcile(world, std::move(o));
    }
  });
  EXPECT_GT(writes, 100);
}

}  // namespace
}  // namespace bsp::reconcile
