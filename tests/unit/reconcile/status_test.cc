// What a job's status mirrors, and the conditions that warn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>

#include "crds/names.h"
#include "operator/reconcile/kernel/rescheduling/decision.h"
#include "operator/reconcile/kernel/resize/resize.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/shell/job/progress.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// --- What a status mirrors ---------------------------------------------------------------------------------------
TEST(Status, CapacityTakenByOtherJobsIsNoChangeBeforeAJobRuns) {
  sim::World w({.ranks = 3, .slow = 2, .fast = 2});
  ASSERT_TRUE(w.run_until(crds::JobPhase::kStarting));
  Observed o = w.observe();
  crds::BspJobStatus status = o.job.status;
  refresh_status(o, status);
  ASSERT_THAT(status.ranks_per_set, SizeIs(2));
  const auto before = status.ranks_per_set[0].slots;
  for (auto& node : o.nodes) node.slots = 0;
  refresh_status(o, status);
  EXPECT_EQ(status.ranks_per_set[0].slots, before);
  status.phase = crds::JobPhase::kRunning;
  refresh_status(o, status);
  EXPECT_EQ(status.ranks_per_set[0].slots, 0u);
}

TEST(Status, MirrorsTheClusterAndASecondReconcileChangesNothing) {
  sim::World w({.ranks = 3, .slow = 2, .fast = 2});
  ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning));
  for (int i = 0; i < 5; ++i) w.tick();
  Observed o = w.observe();
  o.sidecars[Seat{"job-r1-g0"}].status->memory_bytes = 77;
  o.sidecars[Seat{"job-r1-g0"}].status->blocked_reason = "an open window";
  o.sidecars[Seat{"job-r0-g0"}].completed = 40;
  o.sidecars[Seat{"job-r1-g0"}].completed = 41;
  o.sidecars[Seat{"job-r2-g0"}].completed = 42;
  crds::BspJobStatus status = o.job.status;
  refresh_status(o, status);
  EXPECT_EQ(status.superstep.value, 40u) << "the last that all ranks completed";
  EXPECT_EQ(status.ranks[1].memory_bytes, 77u);
  EXPECT_EQ(status.ranks[1].blocked_reason, "an open window");
  ASSERT_THAT(status.ranks_per_set, SizeIs(2));
  EXPECT_EQ(status.ranks_per_set[0].set, "fast");
  EXPECT_EQ(status.ranks_per_set[0].ranks, 1u);
  EXPECT_EQ(status.ranks_per_set[0].slots, 2u);
  EXPECT_EQ(status.ranks_per_set[1].ranks, 2u);

  json once, twice;
  to_json(once, status);
  o.now += std::chrono::hours(1);
  refresh_status(o, status);
  to_json(twice, status);
  EXPECT_EQ(once, twice);

  o.sidecars.erase(Seat{"job-r2-g0"});  // a fresh operator, or a silent sidecar: the count does not fall
  refresh_status(o, status);
  EXPECT_EQ(status.superstep.value, 40u);
}

TEST(Status, OnlyTheJobsOwnSetsAreShown) {
  sim::World w({.ranks = 1, .slow = 2, .fast = 2});
  w.job.spec.sets.names = {"fast"};
  w.job.spec.run_policy.suspend = true;
  ASSERT_TRUE(w.run_until(crds::JobPhase::kSuspended));
  ASSERT_THAT(w.job.status.ranks_per_set, SizeIs(1));
  EXPECT_EQ(w.job.status.ranks_per_set[0].set, "fast");
}

TEST(Status, ConditionsChangeOnceWithTheirTime) {
  Observed o;
  o.now = Time{} + std::chrono::hours(1);
  o.job.metadata.generation = 3;
  crds::BspJobStatus status;
  status.phase = crds::JobPhase::kRunning;
  status.reason = "Running";
  refresh_status(o, status);
  const Time turned = o.now;
  o.now += std::chrono::hours(1);
  status.phase = crds::JobPhase::kMigrating;
  status.reason = "Migrating";
  refresh_status(o, status);
  const crds::Condition* running = crds::find_condition(status.conditions, "Running");
  ASSERT_TRUE(running);
  EXPECT_EQ(running->status, crds::ConditionStatus::kTrue) << "a job that migrates runs";
  EXPECT_EQ(running->last_transition_time, turned);
  EXPECT_EQ(running->reason, "Running");
  EXPECT_EQ(running->observed_generation, 3);
  EXPECT_EQ(crds::find_condition(status.conditions, "Migrating")->last_transition_time, o.now);
  EXPECT_EQ(crds::find_condition(status.conditions, "Failed")->status, crds::ConditionStatus::kFalse);
}

// kubectl wait passes over a condition that is older than the object's spec.
TEST(Status, ConditionsAreOfTheNewestGeneration) {
  sim::World w({.supersteps = 200});
  ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning));
  const auto all_of = [&](std::int64_t generation) {
    return w.job.status.observed_generation == generation &&
           std::ranges::all_of(w.job.status.conditions,
                               [&](const crds::Condition& c) { return c.observed_generation == generation; });
  };
  EXPECT_TRUE(all_of(1));
  w.job.metadata.generation = 2;  // somebody changes spec.rescheduling.minGain
  const Observed o = w.observe();
  EXPECT_TRUE(reconcile_job(o, unadvised(o), w.limits, w.job_limits).change())
      << "not with the progress, which may be late";
  w.tick();
  EXPECT_TRUE(all_of(2));
  EXPECT_EQ(w.unrest(), "");
  ASSERT_TRUE(w.run_until(crds::JobPhase::kSucceeded)) << w.trace;
  w.job.metadata.generation = 3;  // … and then spec.runPolicy.ttlSecondsAfterFinished, of a job that has ended
  w.tick();
  EXPECT_TRUE(all_of(3));
  EXPECT_EQ(w.unrest(), "");
}

// Its sidecar goes with the pod before it has told what the last supersteps were.
TEST(Status, AFinishedJobHasCompletedWhatOneOfItsRanksHas) {
  sim::World w({.ranks = 3, .supersteps = 40});
  ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value >= 10; }));
  w.silence("job-r1-g0", 1 << 20);
  ASSERT_TRUE(w.run_until(crds::JobPhase::kSucceeded)) << w.trace;
  EXPECT_EQ(w.job.status.superstep.value, 40u);
}

TEST(Status, WhatASidecarTellsOfAJobThatHasEndedIsStored) {
  sim::World w({.supersteps = 40});
  ASSERT_TRUE(w.run_until(crds::JobPhase::kSucceeded)) << w.trace;
  Observed o = w.observe();
  o.job.status.superstep.value = 33;
  o.sidecars[Seat{"job-r0-g0"}].completed = 40;
  const Step step = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
  ASSERT_TRUE(step.change());
  EXPECT_EQ(step.change()->status.superstep.value, 40u);
}

// The number of free slots changes with every other pod.
TEST(Status, LackingCapacityIsOneEvent) {
  sim::World w({.ranks = 4, .slow = 2, .fast = 1});
  w.capacity_may_come = true;
  w.tick();
  EXPECT_EQ(w.job.status.reason, "NoCapacity");
  EXPECT_THAT(w.job.status.message, HasSubstr("add 1 slot to the pools, or create the job with 3 ranks"));
  w.nodes.pop_back();
  w.tick();
  EXPECT_THAT(w.job.status.message, HasSubstr("add 2 slots to the pools, or create the job with 2 ranks"));
  EXPECT_EQ(std::ranges::count(w.events, "NoCapacity", &Event::reason), 1);
}

decide::Snapshot two_sets() {
  decide::Snapshot s;
  s.platform.sets = {{.name = "slow"}, {.name = "fast"}};
  s.platform.processors = {{.name = "slow-0", .set = {0}}, {.name = "fast-0", .set = {1}}};
  s.ranks = {{.processor = {0}}, {.processor = {1}}};
  return s;
}

TEST(Status, AThrottlingCpuLimitIsWarnedOfOnce) {
  sim::World w;
  ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning));
  for (int i = 0; i < 5; ++i) w.tick();
  Observed o = w.observe();
  auto condition = [](const Step& out) { return crds::find_condition(status_of(out).conditions, "CPUThrottled"); };
  auto throttle = [&](double share) {
    for (auto& [seat, facts] : o.sidecars) facts.throttled = seat.pod == "job-r1-g0" ? share : share / 10;
    const Step out = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
    o.job.status = status_of(out);
    return out;
  };
  EXPECT_FALSE(condition(throttle(0.5))) << "no limit of the user's: the node is slow";
  o.job.spec.pod_template["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "250m";
  EXPECT_EQ(condition(throttle(0.04))->status, crds::ConditionStatus::kFalse);
  const Step much = throttle(0.4);
  ASSERT_TRUE(condition(much));
  EXPECT_EQ(condition(much)->status, crds::ConditionStatus::kTrue);
  EXPECT_EQ(condition(much)->reason, "CPULimit");
  EXPECT_THAT(condition(much)->message,
              HasSubstr("rank 1 was held back for 40 % of the time by its CPU limit of 250m"));
  EXPECT_THAT(condition(much)->message, HasSubstr("spec.template.spec.containers[app].resources.limits.cpu"));
  EXPECT_TRUE(much.change());
  ASSERT_THAT(notices_of(much).events, SizeIs(1));
  EXPECT_EQ(notices_of(much).events[0].type, "Warning");
  for (const double still : {0.5, 0.03}) {
    const Step out = throttle(still);
    EXPECT_FALSE(out.change());
    EXPECT_THAT(notices_of(out).events, testing::IsEmpty());
    EXPECT_EQ(condition(out)->status, crds::ConditionStatus::kTrue) << "it does not flicker";
  }
  EXPECT_EQ(condition(throttle(0.01))->status, crds::ConditionStatus::kFalse);
}

TEST(Status, OnlyALimitBelowItsNodesShareHoldsARankBack) {
  sim::World w({.ranks = 3, .slow = 2, .fast = 3});  // nodes that give a quarter of a core to a rank, and a whole one
  ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning));
  Observed o = w.observe();
  std::vector<std::uint8_t> on_fast, everywhere;
  for (const crds::RankPlace& place : o.job.status.ranks)
    on_fast.push_back(place.set == "fast"), everywhere.push_back(1);
  const std::vector<std::uint8_t> nowhere(everywhere.size());
  ASSERT_NE(on_fast, nowhere);
  ASSERT_NE(on_fast, everywhere);
  const auto with = [&](double share, const char* limit) {
    for (auto& [seat, facts] : o.sidecars) facts.throttled = share;
    nlohmann::json& resources = o.job.spec.pod_template["spec"]["containers"][0]["resources"];
    resources = limit ? nlohmann::json{{"limits", {{"cpu", limit}}}} : nlohmann::json::object();
    return held_back_by_limit(o);
  };
  EXPECT_EQ(with(0.5, nullptr), nowhere) << "the nodes are slow";
  EXPECT_EQ(with(0.5, "nonsense"), nowhere);
  EXPECT_EQ(with(0.5, "2"), nowhere);
  EXPECT_EQ(with(0.5, "500m"), on_fast);
  EXPECT_EQ(with(0.5, "0.2"), everywhere);
  EXPECT_EQ(with(0.04, "0.2"), nowhere) << "hardly";
  o.nodes.clear();
  EXPECT_EQ(with(0.5, "500m"), everywhere) << "of a node that has gone nothing is known";
  o.sidecars.clear();
  EXPECT_EQ(with(0.5, "500m"), nowhere);
}

TEST(Status, ADistrustedSidecarIsNamedOnce) {
  sim::World w;
  ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning));
  Observed o = w.observe();
  auto condition = [](const Step& out) { return crds::find_condition(status_of(out).conditions, "ReportsRejected"); };
  auto after = [&](double more) {
    o.now += from_seconds(more);
    o.steady += from_seconds(more);
    const Step out = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
    o.job.status = status_of(out);
    return out;
  };
  EXPECT_FALSE(condition(after(1))) << "a condition that is always there says nothing";
  o.sidecars.at(Seat{"job-r1-g0"}).rejected = "JSON has 9 levels, more than the limit of 8";
  o.sidecars.at(Seat{"job-r1-g0"}).rejected_at = o.steady;
  const Step reported = after(1);
  ASSERT_TRUE(condition(reported));
  EXPECT_EQ(condition(reported)->status, crds::ConditionStatus::kTrue);
  EXPECT_THAT(condition(reported)->message, HasSubstr("the sidecar of rank 1 (job-r1-g0)"));
  EXPECT_THAT(condition(reported)->message, HasSubstr("9 levels, more than the limit of 8"));
  EXPECT_TRUE(reported.change());
  ASSERT_THAT(notices_of(reported).events, SizeIs(1));
  EXPECT_EQ(notices_of(reported).events[0].reason, "ReportsRejected");
  EXPECT_FALSE(after(10).change()) << "reported once";
  EXPECT_EQ(condition(after(60))->status, crds::ConditionStatus::kFalse);
}

TEST(Claims, OnlyOneFarAheadOfMostIsDistrusted) {
  const SteadyTime now = SteadyTime{} + std::chrono::hours(2);
  std::map<Seat, SidecarFacts> sidecars;
  const auto claim = [&](const char* pod, std::uint64_t completed, double seconds_ago = 1) {
    sidecars[{pod}].completed = completed;
    sidecars[{pod}].completed_at = now - from_seconds(seconds_ago);
  };
  claim("a", 1ull << 40);
  doubt_claims(sidecars, now);
  EXPECT_EQ(sidecars[{"a"}].completed, 1ull << 40) << "there is no other to compare it with";
  claim("restored", 0);
  doubt_claims(sidecars, now);
  EXPECT_EQ(sidecars[{"a"}].completed, 1ull << 40) << "a restored rank counts from 0 until its first edge";
  claim("silent", 5, 3600);
  doubt_claims(sidecars, now);
  EXPECT_EQ(sidecars[{"a"}].completed, 1ull << 40) << "an hour ago it was right";
  claim("b", (1ull << 40) - kFarAhead);
  doubt_claims(sidecars, now);
  EXPECT_EQ(sidecars[{"a"}].rejected, "");
  claim("b", 7);
  doubt_claims(sidecars, now);
  EXPECT_EQ(sidecars[{"a"}].completed, 7u);
  EXPECT_NE(sidecars[{"a"}].rejected, "");
  EXPECT_EQ(sidecars[{"b"}].rejected, "");
}

TEST(Status, MixedUnitsOfWorkAreAConditionAndAnEvent) {
  sim::World w;
  ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning));
  Observed o = w.observe();
  auto condition = [](const Step& out) { return crds::find_condition(status_of(out).conditions, "MixedUnits"); };
  auto after = [&](bool counted) {
    for (auto& [seat, s] : o.sidecars) s.completed = 1;
    o.sidecars.at(Seat{"job-r0-g0"}).status->instructions_measured = counted;
    const Step out = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
    o.job.status = status_of(out);
    return out;
  };
  EXPECT_FALSE(condition(after(true))) << "a condition that is always there says nothing";
  const Step mixed = after(false);
  ASSERT_TRUE(condition(mixed));
  EXPECT_EQ(condition(mixed)->status, crds::ConditionStatus::kTrue);
  EXPECT_THAT(condition(mixed)->message, HasSubstr("no rank is moved"));
  ASSERT_THAT(notices_of(mixed).events, SizeIs(1));
  EXPECT_EQ(notices_of(mixed).events[0].reason, "MixedUnits");
  EXPECT_EQ(condition(after(true))->status, crds::ConditionStatus::kFalse);
}

// Nobody knows how far a rank is whose sidecar isn't heard.
TEST(Status, NoProgramIsBlamedForSidecarsThatAreNotHeard) {
  sim::World w;
  ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning));
  Observed o = w.observe();
  for (const bool untrusted : {true, false}) {
    Progress progress;
    const auto ended_after = [&](int seconds) {
      o.steady += std::chrono::seconds(seconds);
      progress.fill(o);
      return o.superstep_ended;
    };
    SidecarFacts& silent = o.sidecars.at(Seat{"job-r0-g0"});
    const SteadyTime first = ended_after(0);
    EXPECT_EQ(ended_after(10), first);
    (untrusted ? silent.untrusted = true : (silent.unreachable_since = o.steady, true));
    EXPECT_EQ(ended_after(1000), o.steady);
    silent.untrusted = false, silent.unreachable_since = {};
    const SteadyTime heard = o.steady;
    EXPECT_EQ(ended_after(10), heard) << "when it was heard last";
  }
}

TEST(Status, CertificatesThatAreRefusedAreACondition) {
  sim::World w;
  ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning));
  Observed o = w.observe();
  const auto after = [&] {
    const Step out = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
    o.job.status = status_of(out);
    return out;
  };
  const auto condition = [&] { return crds::find_condition(o.job.status.conditions, "CertificatesRefused"); };
  after();
  EXPECT_FALSE(condition());
  for (const char* pod : {"job-r0-g0", "job-r1-g0"}) o.sidecars.at(Seat{pod}).untrusted = true;
  const Step refused = after();
  ASSERT_TRUE(condition());
  EXPECT_EQ(condition()->status, crds::ConditionStatus::kTrue);
  EXPECT_THAT(condition()->message, HasSubstr("the operator and the sidecars of ranks 0, 1 don't accept each other's"));
  EXPECT_TRUE(refused.change());
  ASSERT_THAT(notices_of(refused).events, SizeIs(1));
  EXPECT_EQ(notices_of(refused).events[0].reason, "CertificatesRefused");
  EXPECT_FALSE(after().change()) << "said once";
  for (auto& [seat, facts] : o.sidecars) facts.untrusted = false;
  after();
  EXPECT_EQ(condition()->status, crds::ConditionStatus::kFalse);
}

TEST(Status, AProgramWithoutSuperstepsIsWarnedOfOnceWithItsCalls) {
  sim::World w;
  ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning));
  Observed o = w.observe();
  o.superstep_seconds = 0;
  o.superstep_ended = o.steady;
  auto condition = [](const Step& out) { return crds::find_condition(status_of(out).conditions, "NoSupersteps"); };
  auto after = [&](double silent) {
    o.steady = o.superstep_ended + from_seconds(silent);
    const Step out = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
    o.job.status = status_of(out);
    return out;
  };
  o.job.spec.rescheduling.mode = crds::ReschedulingMode::kOff;
  EXPECT_FALSE(condition(after(1000))) << "no rank is to move";
  o.job.spec.rescheduling.mode = crds::ReschedulingMode::kMigrate;
  EXPECT_FALSE(condition(after(60))) << "a condition that is always there says nothing";
  o.superstep_seconds = 20;
  EXPECT_FALSE(condition(after(199))) << "supersteps may be long";
  const Step late = after(201);
  ASSERT_TRUE(condition(late));
  EXPECT_EQ(condition(late)->status, crds::ConditionStatus::kTrue);
  EXPECT_THAT(condition(late)->message, HasSubstr("no superstep has ended for 201 s"));
  EXPECT_THAT(condition(late)->message, HasSubstr("rank 0 has called none; ranks of a program without one stay"));
  EXPECT_THAT(condition(late)->message,
              HasSubstr("with MPI_THREAD_MULTIPLE only calls on MPI_COMM_WORLD itself count"));
  EXPECT_TRUE(late.change());
  ASSERT_THAT(notices_of(late).events, SizeIs(1));
  EXPECT_EQ(notices_of(late).events[0].type, "Warning");
  EXPECT_EQ(notices_of(late).events[0].reason, "NoSupersteps");
  EXPECT_FALSE(after(300).change()) << "reported once";
  o.superstep_ended = o.steady;
  EXPECT_EQ(condition(after(1))->status, crds::ConditionStatus::kFalse);

  o.job.spec.superstep = {.call = "MPI_Barrier"};
  o.sidecars.at(Seat{"job-r0-g0"}).status->collective = "MPI_Allreduce";
  EXPECT_THAT(condition(after(400))->message,
              HasSubstr("rank 0 calls MPI_Allreduce most often, and spec.superstep.call"));
  after(1);
  o.job.spec.superstep = {.call = "MPI_Allreduce", .stride = 1000};
  EXPECT_THAT(
      condition(after(400))->message,
      HasSubstr("every 1000th MPI_Allreduce of all ranks (spec.superstep); with a smaller spec.superstep.stride"));
  after(1);
  o.job.spec.superstep = {.call = "Auto"};
  EXPECT_THAT(condition(after(400))->message, HasSubstr("none has yet; rank 0 calls MPI_Allreduce most often"));
  after(1);
  o.job.status.superstep_edge = {.call = "MPI_Bcast", .stride = 12};
  EXPECT_THAT(condition(after(400))->message,
              HasSubstr("every 12th MPI_Bcast of all ranks (status.summary.superstepEnds)"));
}

TEST(Decision, ShowsThePlan) {
  decide::Plan plan{.superstep = {12}};
  plan.pm_list = {{.rank = {0}, .target = {1}, .comp = 3, .comm = 1, .mem = 0.5, .pm = 3.5}};
  plan.levels = {{.level = 0, .rank = {}, .pf = 2}, {.level = 1, .rank = {0}, .pf = 1}};
  plan.chosen_level = 1;
  plan.moves = {{.rank = {0}, .from = {0}, .to = {1}, .from_set = {0}, .to_set = {1}, .gain_window = 9}};
  plan.stays = {{.rank = {1}, .reason = decide::Reason::kBestSetIsOwn, .target = {1}}};
  plan.objective = {.name = "pf", .before = 2, .after = 1};
  plan.now = {.k = {3}, .alpha = 10, .d = 0.5};
  plan.next = {.k = {13}, .alpha = 14, .d = 0.75};
  const Time now = Time{} + std::chrono::hours(2);
  const auto d = to_decision(plan, two_sets(), now, 0.25, crds::ReschedulingMode::kMigrate);
  EXPECT_EQ(d.superstep.value, 12u);
  EXPECT_EQ(d.time, now);
  EXPECT_EQ(d.alpha, 10u);
  EXPECT_EQ(d.alpha_next, 14u);
  EXPECT_DOUBLE_EQ(d.d, 0.5);
  EXPECT_DOUBLE_EQ(d.d_next, 0.75);
  EXPECT_DOUBLE_EQ(d.imbalance, 0.25);
  ASSERT_THAT(d.potentials, SizeIs(1));
  EXPECT_EQ(d.potentials[0].target_set, "fast");
  EXPECT_DOUBLE_EQ(d.potentials[0].comm, 1);
  EXPECT_DOUBLE_EQ(d.potentials[0].mem, 0.5);
  EXPECT_DOUBLE_EQ(d.potentials[0].pm, 3.5);
  ASSERT_THAT(d.levels, SizeIs(2));
  EXPECT_DOUBLE_EQ(d.levels[1].pf, 1);
  EXPECT_EQ(d.chosen_level, 1u);
  EXPECT_DOUBLE_EQ(d.objective_before, 2);
  EXPECT_DOUBLE_EQ(d.objective_after, 1);
  ASSERT_THAT(d.moves, SizeIs(1));
  EXPECT_EQ(d.moves[0].from_set, "slow");
  EXPECT_EQ(d.moves[0].to_set, "fast");
  EXPECT_EQ(d.moves[0].to_node, "fast-0");
  EXPECT_DOUBLE_EQ(d.moves[0].predicted_gain_seconds, 9);
  ASSERT_THAT(d.stays, SizeIs(1));
  EXPECT_EQ(d.stays[0].reason, "BestSetIsOwn");
  EXPECT_EQ(d.outcome, "Migrating");
  EXPECT_EQ(to_decision(plan, two_sets(), now, 0, crds::ReschedulingMode::kAdvise).outcome, "Advised");
  plan.moves.clear();
  EXPECT_EQ(to_decision(plan, two_sets(), now, 0, crds::ReschedulingMode::kMigrate).outcome, "NothingToGain");
  plan.stays[0].reason = decide::Reason::kGainBelowMinimum;
  EXPECT_EQ(to_decision(plan, two_sets(), now, 0, crds::ReschedulingMode::kMigrate).outcome, "BelowMinGain");
}

}  // namespace
}  // namespace bsp::reconcile
