// The scheduler: from reports to decisions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/reconcile/rescheduling_fixture.h"

namespace bsp::reconcile {
namespace {

using crds::ReschedulingMode;
using migrate::Phase;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST_F(Rescheduling, DecidesWhenTheWindowIsFull) {
  Rescheduler r = rescheduler();
  EXPECT_FALSE(feed(r, 1, 3));
  const auto decided = feed(r, 4);
  ASSERT_TRUE(decided);
  EXPECT_EQ(decided->decision.superstep.value, 4u);
  EXPECT_EQ(decided->decision.alpha, 4u);
  EXPECT_EQ(decided->decision.outcome, "Migrating");
  EXPECT_NEAR(decided->decision.imbalance, 0.2, 1e-9) << "2 s against a mean of 5/3 s";
  EXPECT_EQ(decided->decision.time, o.now);
  ASSERT_THAT(decided->moves, SizeIs(2));
  EXPECT_EQ(decided->moves[0].set, "fast");
  EXPECT_THAT((std::vector{decided->moves[0].rank, decided->moves[1].rank}), UnorderedElementsAre(0, 1));
  EXPECT_THAT((std::vector{decided->moves[0].node, decided->moves[1].node}), UnorderedElementsAre("fast-1", "fast-2"));
  EXPECT_EQ(decided->moves[0].migration, "") << "its name is handed out with the wave";
  // 4 supersteps of 1 s less, and moving costs the assumed 0.3 s and 1 MB at 300 MB/s.
  EXPECT_NEAR(decided->predicted_gain_seconds, 4 - 0.3 - 1e6 / 300e6, 1e-6);
  EXPECT_THAT(decided->text, SizeIs(testing::Gt(5u)));
  EXPECT_FALSE(r.advance(o)) << "nothing new, nothing decided";
}

// Supersteps of one length say nothing about those of another.
TEST_F(Rescheduling, AnotherEdgeStartsAnotherWindow) {
  Rescheduler r = rescheduler();
  const auto feed_edge = [&](std::uint64_t superstep, std::uint64_t chosen_after) {
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      wire::RankReport of = report(rank, superstep);
      of.edge_call = "MPI_Allreduce", of.edge_stride = chosen_after + 1, of.edge_chosen_after = chosen_after;
      r.add(of);
    }
    return r.advance(o);
  };
  for (std::uint64_t t = 1; t <= 3; ++t) EXPECT_FALSE(feed_edge(t, 0));
  for (std::uint64_t t = 4; t <= 7; ++t) EXPECT_FALSE(feed_edge(t, 4)) << t;
  EXPECT_TRUE(feed_edge(8, 4)) << "four supersteps of the new edge: 5 to 8";
  crds::BspJobStatus status = o.job.status;
  r.store(status, o);
  ASSERT_TRUE(status.superstep_edge);
  EXPECT_EQ(status.superstep_edge->stride, 5u);
  EXPECT_EQ(status.superstep_edge->chosen_after.value, 4u);
}

TEST_F(Rescheduling, MixedUnitsOfWorkGiveNoDecision) {
  Rescheduler r = rescheduler();
  for (auto& [seat, s] : o.sidecars) s.completed = 1;
  o.sidecars.at(o.job.status.ranks[2].seat()).status->instructions_measured = false;
  EXPECT_EQ(unit_of_work(o), observe::WorkUnit::kMixed);
  EXPECT_FALSE(feed(r, 1, 8));
  o.sidecars.at(o.job.status.ranks[2].seat()).status->instructions_measured = true;
  EXPECT_EQ(unit_of_work(o), observe::WorkUnit::kInstructions);
  EXPECT_TRUE(feed(r, 9, 12)) << "and decides when they have one unit again";
  store(r);
  for (const auto& entry : o.job.status.calibration) {
    if (entry.name == "cpu") {
      EXPECT_EQ(entry.source, crds::CalibrationSource::kCounted) << entry.set;
    }
  }
}

// Ranks in slow and fast take the same CPU time, so rank 2, in fast, has twice as much to do.
TEST_F(Rescheduling, WhereOnlyCpuTimeIsKnownTheBenchmarkComparesSets) {
  time_and_benchmark();
  Rescheduler r = rescheduler();
  const auto decided = feed(r, 1, 4);
  ASSERT_TRUE(decided);
  EXPECT_EQ(decided->decision.planned_moves, 2u) << "no trial with one rank";
  store(r);
  for (const char* set : {"slow", "fast"}) {
    ASSERT_TRUE(calibrated("cpu", set) && calibrated("cpuBenchmark", set)) << set;
    EXPECT_EQ(calibrated("cpu", set)->source, crds::CalibrationSource::kCalibrated) << set;
    EXPECT_EQ(calibrated("cpuBenchmark", set)->source, crds::CalibrationSource::kMeasured) << set;
    EXPECT_EQ(calibrated("cpuBenchmark", set)->unit, "units/s") << set;
  }
  EXPECT_NEAR(calibrated("cpuBenchmark", "slow")->value, 5000, 1e-6);
  EXPECT_EQ(calibrated("cpuBenchmark", "slow")->samples, 2u) << "nodes";
  EXPECT_NEAR(calibrated("cpu", "slow")->value, 5e8, 1);
  EXPECT_NEAR(calibrated("cpu", "fast")->value, 2e9, 1) << "a second of CPU time is worth two of slow";
}

TEST_F(Rescheduling, WithoutABenchmarkOrWithAHostileOneCpuTimeIsAsBefore) {
  time_and_benchmark();
  for (auto& [seat, s] : o.sidecars) s.status->cpu.reset();
  o.sidecars.at(o.job.status.ranks[2].seat()).status->cpu = wire::CpuBenchmark{.model = "", .integer_ns = 1};
  Rescheduler r = rescheduler();
  feed(r, 1, 4);
  store(r);
  EXPECT_EQ(calibrated("cpu", "fast")->source, crds::CalibrationSource::kAssumed);
  EXPECT_NEAR(calibrated("cpu", "fast")->value, 1e9, 1);
  EXPECT_FALSE(calibrated("cpuBenchmark", "fast"));
}

// Ranks in slow take twice as long, as their limit has it.
TEST_F(Rescheduling, ALimitThatHoldsRanksBackMakesNoSetSlower) {
  time_and_benchmark();
  for (auto& [seat, s] : o.sidecars) s.status->cpu.reset();
  o.job.spec.pod_template["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "200m";
  Rescheduler unaware = rescheduler();
  const auto moved = feed(unaware, 1, 4);
  ASSERT_TRUE(moved);
  EXPECT_GT(moved->decision.planned_moves, 0u);
  for (auto& [seat, s] : o.sidecars) s.throttled = 0.5;
  Rescheduler r = rescheduler();
  const auto decided = feed(r, 1, 4);
  ASSERT_TRUE(decided);
  EXPECT_EQ(decided->decision.planned_moves, 0u);
  store(r);
  for (const char* set : {"slow", "fast"}) EXPECT_NEAR(calibrated("cpu", set)->value, 1e9, 1) << set;
}

// As of a target that waits, or whose move was rolled back.
TEST_F(Rescheduling, ASetWithoutRanksHasTheSpeedThatItsFirstPodMeasured) {
  o.nodes.push_back({.name = "newest-0", .set = "newest", .speed = 1});
  Rescheduler r = rescheduler();
  for (auto& [seat, s] : o.sidecars) s.completed = 1;
  feed(r, 1, 3);
  store(r);
  EXPECT_EQ(calibrated("cpu", "newest")->source, crds::CalibrationSource::kAssumed);
  EXPECT_NEAR(calibrated("cpu", "newest")->value, (5e8 / 0.25 + 1e9) / 2, 1) << "what the nodes give to a rank";

  for (const crds::RankPlace& place : o.job.status.ranks) benchmark(place.pod, place.set == "slow" ? 200'000 : 100'000);
  o.pods["job-r0-g1"].node = "newest-0";
  o.pods["job-r0-g1"].set = "newest";
  o.sidecars[Seat{"job-r0-g1"}].status.emplace();
  benchmark("job-r0-g1", 50'000);
  feed(r, 4);
  store(r);
  EXPECT_EQ(calibrated("cpu", "newest")->source, crds::CalibrationSource::kCalibrated);
  EXPECT_NEAR(calibrated("cpu", "newest")->value, (4 * 5e8 / 0.25 + 2 * 1e9) / 2, 1);
  EXPECT_EQ(calibrated("cpu", "newest")->samples, 0u);
  EXPECT_EQ(calibrated("cpu", "fast")->source, crds::CalibrationSource::kCounted) << "instructions are work, as before";
  EXPECT_NEAR(calibrated("cpu", "fast")->value, 1e9, 1);

  o.sidecars.erase(Seat{"job-r0-g1"});
  o.pods.erase("job-r0-g1");
  Rescheduler fresh = rescheduler();
  feed(fresh, 5);
  store(fresh);
  EXPECT_EQ(calibrated("cpu", "newest")->source, crds::CalibrationSource::kCalibrated) << "it is remembered";
  EXPECT_NEAR(calibrated("cpu", "newest")->value, (4 * 5e8 / 0.25 + 2 * 1e9) / 2, 1);
}

TEST_F(Rescheduling, OffDecidesNothingAndAdviseMovesNoRank) {
  o.job.spec.rescheduling.mode = ReschedulingMode::kOff;
  Rescheduler off = rescheduler();
  EXPECT_FALSE(feed(off, 1, 30));
  store(off);
  EXPECT_EQ(o.job.status.alpha, 0u);
  EXPECT_GT(o.job.status.imbalance, 0) << "it is measured all the same";

  o.job.spec.rescheduling.mode = ReschedulingMode::kAdvise;
  Rescheduler advise = rescheduler();
  const auto decided = feed(advise, 1, 4);
  ASSERT_TRUE(decided);
  EXPECT_THAT(decided->moves, IsEmpty());
  EXPECT_THAT(decided->decision.moves, SizeIs(2));
  EXPECT_EQ(decided->decision.outcome, "Advised");
  store(advise);
  EXPECT_FALSE(o.job.status.predicted_gain_seconds) << "no rank moves, nothing is gained";
}

// They were requested while the ranks of that attempt ran, far ahead of the program now: a gate based on them would be
// reached much later, and the window would wait for supersteps that are repeated.
TEST_F(Rescheduling, ReportsOfThePreviousAttemptAreIgnored) {
  o.job.status.attempt = 1;
  o.job.status.epoch->epoch = 3;
  Rescheduler r = rescheduler();
  for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_FALSE(r.add(report(rank, 773)));
  EXPECT_EQ(r.collector().completed(0), 0u);
  EXPECT_FALSE(r.advance(o));
  EXPECT_EQ(r.superstep_seconds(), 0) << "this attempt has measured nothing yet";
  EXPECT_EQ(r.collector().since(0), 0u);

  std::optional<Decided> decided;
  for (std::uint64_t t = 1; t <= 4; ++t)
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      wire::RankReport now = report(rank, t);
      now.epoch = rank == 0 ? 4 : 3;  // one has moved since
      EXPECT_TRUE(r.add(now));
      if (auto d = r.advance(o)) decided = std::move(d);
    }
  ASSERT_TRUE(decided) << "it decides as if there had been no attempt before";
  EXPECT_EQ(decided->decision.superstep.value, 4u);
}

TEST_F(Rescheduling, LateDuplicateAndLostReportsDoNotMatter) {
  Rescheduler r = rescheduler();
  r.add(report(0, 2));
  r.add(report(0, 1));
  r.add(report(1, 1));
  r.add(report(1, 1));
  r.add(report(2, 2));
  r.add(report(1, 2));
  EXPECT_FALSE(r.advance(o));
  r.add(report(2, 1));  // too late: superstep 2 is taken
  EXPECT_FALSE(feed(r, 4 - 1));
  const auto decided = feed(r, 4);
  ASSERT_TRUE(decided);
  EXPECT_EQ(decided->decision.superstep.value, 4u);
}

TEST_F(Rescheduling, AJoiningPoolRenumbersNoSet) {
  Rescheduler r = rescheduler();
  feed(r, 1, 3);
  o.nodes.insert(o.nodes.begin(), {.name = "aaa-0", .set = "aaa", .speed = 100});
  const auto decided = feed(r, 4);
  ASSERT_TRUE(decided) << "the epoch's Sets are what was measured";
  ASSERT_THAT(decided->moves, SizeIs(2));
  for (const MoveRequest& move : decided->moves) EXPECT_EQ(move.set, "fast");
}

TEST_F(Rescheduling, TerminatingPodsHoldTheirSlot) {
  Rescheduler r = rescheduler();
  feed(r, 1, 3);
  o.pods["job-r0-g7"].node = "fast-1";  // a source of the previous wave, still being deleted
  o.nodes.at(2).taken = 1;              // fast-2: another job's
  const auto decided = feed(r, 4);
  ASSERT_TRUE(decided);
  EXPECT_THAT(decided->moves, IsEmpty());
  for (const auto& stay : decided->decision.stays)
    if (stay.rank.value != 2) {
      EXPECT_EQ(stay.reason, "NoCapacity");
    }
}

TEST_F(Rescheduling, AMovedRankCoolsDownAndABlockedOneStays) {
  o.job.spec.rescheduling.cooldown_supersteps = 100;
  SchedulerState state;
  state.moves[0] = {.last = 1, .left = {"slow-9"}};
  o.job.status.rescheduler = to_json(state);
  o.job.status.ranks[1].blocked_reason = "an open window";
  Rescheduler r = rescheduler();
  const auto decided = feed(r, 1, 4);
  ASSERT_TRUE(decided);
  EXPECT_THAT(decided->moves, IsEmpty());
  for (const auto& stay : decided->decision.stays) {
    if (stay.rank.value == 0) {
      EXPECT_EQ(stay.reason, "Cooldown");
    }
    if (stay.rank.value == 1) {
      EXPECT_EQ(stay.reason, "NotMigratable");
    }
  }
}

struct HeldRank : Rescheduling {
  std::string reason_of(std::uint32_t rank) {
    Rescheduler r = rescheduler();
    const auto decided = feed(r, 1, 4);
    if (!decided) return "no decision";
    for (const auto& stay : decided->decision.stays)
      if (stay.rank.value == rank) return stay.reason;
    return "moves";
  }
};

// Otherwise every call would stop the whole job only to fail again.
TEST_F(HeldRank, StaysForAWhileAfterItsDumpFailed) {
  ASSERT_EQ(reason_of(0), "moves");
  crds::RankMigration m;
  m.spec.rank = {0};
  m.status.phase = Phase::kRolledBack;
  m.status.message = "rank 0: not migratable now: descriptor 3 is an open socket; rank 10 continues";
  m.status.completion_time = o.now - std::chrono::minutes(4);
  o.migrations.push_back(m);
  EXPECT_EQ(reason_of(0), "NotMigratable");
  o.migrations[0].status.message = "rank 10: not migratable now: descriptor 3 is an open socket";
  EXPECT_EQ(reason_of(0), "moves");  // it was rolled back with another rank of its wave
  o.migrations[0].status.message = m.status.message;
  o.migrations[0].status.completion_time = o.now - std::chrono::minutes(6);
  EXPECT_EQ(reason_of(0), "moves");
}

// It would take the moves of others back again, too.
TEST_F(HeldRank, StaysForAWhileAfterItsTargetDidNotComeUp) {
  using std::chrono::minutes;
  const auto failed = [&](std::uint32_t generation, minutes ago) {
    crds::RankMigration m;
    m.spec.rank = {0};
    m.status.phase = Phase::kRolledBack;
    m.status.reason = "PrepareTimeout";
    m.status.target_pod = std::format("job-r0-g{}", generation);
    m.status.target_set = "fast";
    m.status.message =
        std::format("the target pods were not ready in time: {} was not created: exceeded quota", m.status.target_pod);
    m.status.completion_time = o.now - ago;
    return m;
  };
  ASSERT_EQ(reason_of(0), "moves");
  o.migrations = {failed(1, minutes(0))};
  EXPECT_EQ(reason_of(0), "NotMigratable") << "to whatever Set";
  o.migrations = {failed(1, minutes(4))};
  EXPECT_EQ(reason_of(0), "TargetFailed");
  o.migrations[0].status.reason = "TargetLost";
  o.migrations[0].status.message = "target job-r0-g1 of rank 0: the pod is gone";
  EXPECT_EQ(reason_of(0), "TargetFailed");
  o.migrations[0].status.message = "target job-r1-g1 of rank 1: the pod is gone";
  EXPECT_EQ(reason_of(0), "moves") << "another move of its wave failed";
  o.migrations[0].status.message = "the target pods were not ready in time: job-r1-g1 was not created, and 9 more";
  EXPECT_EQ(reason_of(0), "TargetFailed") << "it may be among them";
  o.migrations = {failed(1, minutes(6))};
  EXPECT_EQ(reason_of(0), "moves");
  o.migrations = {failed(1, minutes(20)), failed(2, minutes(6))};
  EXPECT_EQ(reason_of(0), "TargetFailed") << "longer after each";
  o.migrations = {failed(1, minutes(30)), failed(2, minutes(11))};
  EXPECT_EQ(reason_of(0), "moves");
  o.migrations = {failed(1, minutes(20)), failed(2, minutes(15)), failed(3, minutes(6))};
  o.migrations[1].status.phase = Phase::kSucceeded;
  EXPECT_EQ(reason_of(0), "moves") << "since it has moved there, this is the first";
  o.migrations.clear();
  for (std::uint32_t i = 0; i < 100; ++i) o.migrations.push_back(failed(i, minutes(61)));
  EXPECT_EQ(reason_of(0), "moves") << "an hour at most";
  o.migrations = {failed(1, minutes(4))};
  o.migrations[0].status.target_set = "elsewhere";
  EXPECT_EQ(reason_of(0), "moves") << "that was another Set";
}

// A gate that parts ranks of such a communicator is postponed, whoever of them moves. The next call would propose the same move.
TEST_F(HeldRank, StaysWhereItsCommunicatorKeepsItsPodTogether) {
  using std::chrono::minutes;
  const std::string shared =
      "a communicator whose ranks share memory (MPI_COMM_TYPE_SHARED) and would part: move all of its pod's ranks "
      "together, or let the program free it";
  const auto postponed = [&](std::uint32_t wave, std::uint32_t rank, minutes ago, const std::string& why) {
    crds::RankMigration m;
    m.spec.rank = {rank};
    m.status.wave = wave;
    m.status.phase = Phase::kRolledBack;
    m.status.reason = "Postponed";
    m.status.message = "the gate was postponed for too long: " + why;
    m.status.completion_time = o.now - ago;
    return m;
  };
  const std::string both = std::format("rank 0: {}, rank 1: {}", shared, shared);
  ASSERT_EQ(reason_of(0), "moves");
  ASSERT_EQ(reason_of(1), "moves");
  o.migrations = {postponed(1, 0, minutes(4), both)};
  EXPECT_EQ(reason_of(0), "NotMigratable");
  EXPECT_EQ(reason_of(1), "NotMigratable") << "it would part them too";
  o.migrations = {postponed(1, 0, minutes(6), both)};
  EXPECT_EQ(reason_of(0), "moves") << "the communicator may be gone";
  o.migrations = {postponed(1, 0, minutes(30), both), postponed(2, 1, minutes(9), both)};
  EXPECT_EQ(reason_of(0), "NotMigratable") << "longer after each";
  o.migrations[1].status.completion_time = o.now - minutes(11);
  EXPECT_EQ(reason_of(0), "moves");
  // Two ranks of one wave are one attempt.
  o.migrations = {postponed(2, 0, minutes(6), both), postponed(2, 1, minutes(6), both)};
  EXPECT_EQ(reason_of(0), "moves");
  o.migrations.clear();
  for (std::uint32_t i = 0; i < 100; ++i) o.migrations.push_back(postponed(i, 0, minutes(61), both));
  EXPECT_EQ(reason_of(0), "moves") << "an hour at most";

  // Only some are named, so whoever shares a pod with one of them may be meant.
  o.migrations = {postponed(1, 0, minutes(4), std::format("rank 0: {}, and 9 more", shared))};
  EXPECT_NE(reason_of(1), "NotMigratable") << "in another pod";
  o.job.status.ranks[1].pod = o.job.status.ranks[0].pod;
  EXPECT_EQ(reason_of(1), "NotMigratable");

  // They have parted since, so the communicator is gone; together they may have taken it with them.
  auto moved = postponed(3, 0, minutes(1), "");
  moved.status.phase = Phase::kSucceeded;
  o.migrations = {postponed(1, 0, minutes(4), both), moved};
  EXPECT_EQ(reason_of(1), "moves");
  o.migrations.push_back(moved);
  o.migrations.back().spec.rank = {1};
  EXPECT_EQ(reason_of(1), "NotMigratable");
  o.migrations = {postponed(1, 0, minutes(4), both), moved};
  o.migrations[1].status.completion_time = o.now - minutes(20);
  EXPECT_EQ(reason_of(1), "NotMigratable") << "that was before";
}

// A window on rank 2 postpones every gate, whoever moves.
TEST_F(HeldRank, StaysForAWhileAfterAGateWasPostponedForAnother) {
  using std::chrono::minutes;
  crds::RankMigration m;
  m.spec.rank = {0};
  m.status.wave = 1;
  m.status.phase = Phase::kRolledBack;
  m.status.reason = "Postponed";
  m.status.message = "the gate was postponed for too long: rank 2: memory that ranks share (MPI_Win_allocate_shared)";
  m.status.completion_time = o.now - minutes(4);
  o.migrations = {m};
  EXPECT_EQ(reason_of(0), "NotMigratable");
  EXPECT_EQ(reason_of(1), "NotMigratable");
  m.status.phase = Phase::kSucceeded;
  m.status.wave = 2;
  m.status.completion_time = o.now - minutes(1);
  o.migrations.push_back(m);
  EXPECT_EQ(reason_of(0), "moves") << "a gate was passed since";
  // Whatever stands there, nothing is held by what can't be read.
  for (const char* odd :
       {"", "rank", "rank : x", "rank 99999999999: x", "rank -1: x", ", and 3 more", "no rank reached it"}) {
    o.migrations = {m};
    o.migrations[0].status.phase = Phase::kRolledBack;
    o.migrations[0].status.message = odd;
    EXPECT_EQ(reason_of(0), "moves") << odd;
  }
}

}  // namespace
}  // namespace bsp::reconcile
