// The screens of jobs as the kernels store them in the simulated cluster: one that moved ranks and took a move back, one
// that is drained and has nowhere to go, one that waits, one that failed.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/reconcile/kernel/rescheduling/decision.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/screens/drain_plan.h"
#include "operator/screens/explain.h"
#include "operator/screens/timeline.h"
#include "operator/screens/top.h"
#include "tests/golden/golden.h"
#include "tests/unit/decide/world.h"
#include "tests/unit/reconcile/world.h"

namespace bsp {
namespace {

using crds::JobPhase;
using nlohmann::json;
using reconcile::sim::World;

// Through JSON, as kubectl prints it.
screens::Shown stored(const World& w) {
  json job;
  to_json(job, w.job);
  screens::Shown shown{crds::bsp_job_from_json(json::parse(job.dump())).value(), {}};
  for (const auto& [name, migration] : w.migrations) {
    json j;
    to_json(j, migration);
    shown.migrations.push_back(crds::rank_migration_from_json(json::parse(j.dump())).value());
  }
  return shown;
}

std::string text(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

void expect_screens(const std::string& name, const World& w) {
  const screens::Shown shown = stored(w);
  const auto page = screens::explain(shown, w.now), frame = screens::top(shown, w.now);
  EXPECT_LE(page.size(), 24u);
  EXPECT_LE(frame.size(), 24u);
  golden::expect_same("screens/" + name + ".txt", text(page) + "---\n" + text(frame));
}

// What reports would have left in the status: a superstep's computing time by rank.
void measure(World& w, const std::vector<double>& seconds) {
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    w.job.status.ranks[i].compute_seconds = seconds[i];
    w.job.status.ranks[i].time_seconds = 2.1;
    w.job.status.ranks[i].memory_bytes = 52 << 20;
  }
  w.job.status.imbalance = 0.312;
}

// A call of AutoMig on seven ranks of two Sets, as operator/decide makes it.
crds::Decision a_decision(Time now, crds::ReschedulingMode mode) {
  decide::World world({{"slow", 6, 5e8, 1}, {"fast", 6, 1e9, 1}}, {0, 1, 2, 3, 4, 5, 6});
  world.instructions[5] = 2e8;
  world.recv_bytes[3, 1] = 4e6;
  for (auto& rank : world.snapshot.ranks) rank.memory_bytes = 5e6;
  world.snapshot.ranks[1].not_migratable = "an open RMA window";
  const auto plan = world.plan({.heuristic = decide::Heuristic::kAutoMig, .alpha0 = 4});
  EXPECT_TRUE(plan);
  return reconcile::to_decision(*plan, world.snapshot, now, 0.312, mode);
}

// Rank 0 moved to fast, the target of rank 1 was lost, and rank 2 moved.
World& moved() {
  static World w({.name = "weather", .ranks = 4, .slow = 4, .fast = 4});
  if (!w.migrations.empty()) return w;
  EXPECT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  for (int i = 0; i < 30; ++i) w.tick();
  w.migrate_by_hand("weather-by-hand", 0, "fast");
  EXPECT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 1; })) << w.trace;
  for (int i = 0; i < 40; ++i) w.tick();
  w.decide({{.migration = "", .rank = 1, .set = "fast", .node = "fast-1"}});
  EXPECT_TRUE(w.run_until(migrate::Phase::kTransferring)) << w.trace;
  w.lose_pod("weather-r1-g1");
  EXPECT_TRUE(w.run_until([&] { return w.job.status.migrations.rolled_back == 1; })) << w.trace;
  for (int i = 0; i < 20; ++i) w.tick();
  w.decide({{.migration = "", .rank = 2, .set = "fast", .node = "fast-2"}});
  EXPECT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 2; })) << w.trace;
  for (int i = 0; i < 25; ++i) w.tick();
  measure(w, {1.02, 2.08, 1.05, 2.11});
  w.job.status.last_decision = a_decision(w.now - std::chrono::seconds(12), crds::ReschedulingMode::kMigrate);
  w.job.status.realised_gain_seconds = 10.5;
  return w;
}

TEST(Screens, OfAJobThatMovedRanks) { expect_screens("moved", moved()); }

TEST(Screens, OfAJobThatOnlyAdvises) {
  World w({.name = "advised", .ranks = 3, .slow = 3, .fast = 3});
  w.job.spec.rescheduling.mode = crds::ReschedulingMode::kAdvise;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  measure(w, {2.1, 1.9, 1});
  w.job.status.last_decision = a_decision(w.now - std::chrono::seconds(3), crds::ReschedulingMode::kAdvise);
  expect_screens("advised", w);
}

TEST(Screens, OfAJobThatIsDrainedAndHasNowhereToGo) {
  World w({.name = "drained", .ranks = 2, .slow = 2, .fast = 0});
  w.job.spec.sets.names = {"slow"};
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.cordon("slow-0");
  for (int i = 0; i < 20; ++i) w.tick();
  measure(w, {1, 1});
  expect_screens("drained", w);
}

TEST(Screens, OfAJobThatWaits) {
  World w({.name = "waits", .ranks = 4, .slow = 1, .fast = 1});
  w.capacity_may_come = true;
  for (int i = 0; i < 10; ++i) w.tick();
  expect_screens("waits", w);
}

TEST(Screens, OfAJobThatFailed) {
  World w({.name = "failed", .ranks = 2, .slow = 2, .fast = 2});
  w.job.spec.run_policy.backoff_limit = 0;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.end_program(1, 1, 0);
  ASSERT_TRUE(w.run_until(JobPhase::kFailed)) << w.trace;
  expect_screens("failed", w);
}

TEST(Screens, OfATimeline) {
  World& w = moved();
  std::vector<screens::CallMade> calls;
  const Time begin = w.job.status.start_time;
  double alpha = 4, d = 0.5;
  for (int k = 1; k <= 6; ++k) {
    calls.push_back({.time = begin + std::chrono::seconds(4 * k),
                     .superstep = Superstep{static_cast<std::uint64_t>(k * 4)},
                     .alpha = alpha,
                     .alpha_next = alpha * (k % 3 == 0 ? 1 : 2),
                     .d = d,
                     .d_next = k == 4 ? d / 2 : d,
                     .moves = k == 5,
                     .busy = {0.5, 1, 0.5, 0.98}});
    alpha = calls.back().alpha_next;
    d = calls.back().d_next;
  }
  golden::expect_same("screens/moved.svg",
                      screens::timeline_svg(stored(w), calls, begin + std::chrono::milliseconds(600), w.now));
}

json node_of(const std::string& name, const std::string& set, const std::string& cpu, bool cordoned = false) {
  json node = {{"metadata", {{"name", name}, {"labels", {{"migbsp.io/set", set}}}}},
               {"status", {{"allocatable", {{"cpu", cpu}, {"memory", "8Gi"}, {"pods", "110"}}}}}};
  if (cordoned) node["spec"]["unschedulable"] = true;
  return node;
}
json pod_on(const std::string& node, const std::string& cpu) {
  return {{"spec",
           {{"nodeName", node},
            {"containers", json::array({{{"name", "app"}, {"resources", {{"requests", {{"cpu", cpu}}}}}}})}}}};
}

// slow-0 has a rank of each job; slow-1 has one free slot, slow-2 is cordoned, and fast-0 has one free slot.
TEST(Screens, OfADrainPlan) {
  screens::ClusterObjects objects;
  for (const char* name : {"first", "second", "third"}) {
    World w({.name = name, .ranks = 2, .slow = 2, .fast = 2});
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
    crds::BspJob job = stored(w).job;
    job.spec.pod_template = {
        {"spec", {{"containers", json::array({{{"name", "app"}, {"resources", {{"requests", {{"cpu", "1"}}}}}}})}}}};
    job.spec.sets.names = {"slow", "fast"};
    job.status.ranks[0].node = "slow-0", job.status.ranks[0].set = "slow";
    job.status.ranks[1].node = "slow-1", job.status.ranks[1].set = "slow";
    objects.jobs.push_back(std::move(job));
  }
  objects.jobs[1].status.ranks[1].node = "slow-0";
  objects.jobs[2].status.ranks[1].node = "slow-0";
  objects.jobs[2].status.ranks[1].blocked_reason = "not migratable now: an open file of MPI-IO";
  objects.nodes = {node_of("slow-0", "slow", "6", true), node_of("slow-1", "slow", "2500m"),
                   node_of("slow-2", "slow", "4", true), node_of("fast-0", "fast", "2")};
  objects.pods = {pod_on("slow-1", "1"), pod_on("fast-0", "1")};
  const auto plan = screens::drain_plan("slow-0", objects);
  ASSERT_TRUE(plan) << plan.error().message;
  golden::expect_same("screens/drain_plan.txt", text(*plan));
}

}  // namespace
}  // namespace bsp
