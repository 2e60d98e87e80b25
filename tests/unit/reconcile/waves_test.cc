// Waves seen from the job: made from a decision or by hand, shown in RankMigrations, ended well, rolled back or lost;
// and requests that can't be met.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>

#include "crds/names.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using migrate::Phase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

bool wave_over(const World& w) {
  return w.wave_phase() != Phase::kPending && crds::is_finished(w.wave_phase()) &&
         w.job.status.phase == JobPhase::kRunning;
}

// The job computes on and nothing of the wave is left to be done.
void expect_goes_on(World& w) {
  for (int i = 0; i < 15; ++i) w.tick();
  const std::uint64_t before = w.job.status.superstep.value;
  for (int i = 0; i < 10; ++i) w.tick();
  EXPECT_EQ(w.violation, "") << w.trace;
  EXPECT_GT(w.job.status.superstep.value, before + 5) << w.trace;
  EXPECT_EQ(w.unrest(), "") << w.trace;
  EXPECT_EQ(w.pods.size(), w.job.spec.ranks) << w.trace;
  for (const auto& place : w.job.status.ranks) EXPECT_TRUE(w.pods.contains(place.pod)) << place.pod << "\n" << w.trace;
}

std::vector<std::string> phases_of(const crds::RankMigration& m) {
  std::vector<std::string> names;
  for (const auto& t : m.status.phase_times) names.emplace_back(crds::to_string(t.phase));
  return names;
}

// --- Ends well -------------------------------------------------------------------------------------------------
TEST(Waves, ADecisionMovesItsRanksInOnePause) {
  World w({.ranks = 3, .slow = 3, .fast = 2});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.decide({{"", 0, "fast", "fast-1"}, {"", 2, "fast", "fast-0"}});
  ASSERT_TRUE(w.run_until(JobPhase::kMigrating)) << w.trace;
  EXPECT_FALSE(w.decided) << "stored, so that nobody decides twice";
  ASSERT_TRUE(w.job.status.last_decision);
  EXPECT_THAT(w.job.status.last_decision->moves, SizeIs(2));
  EXPECT_TRUE(w.told("Rescheduled") && w.told("Migrating"));
  EXPECT_EQ(w.job.status.migrations.active, 2u);
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;

  EXPECT_EQ(w.wave_phase(), Phase::kSucceeded) << w.trace;
  EXPECT_EQ(w.job.status.epoch->epoch, 2u);
  EXPECT_EQ(w.job.status.ranks.at(0).node, "fast-1");
  EXPECT_EQ(w.job.status.ranks.at(0).pod, "job-r0-g1");
  EXPECT_EQ(w.job.status.ranks.at(0).set, "fast");
  EXPECT_EQ(w.job.status.ranks.at(1).pod, "job-r1-g0");
  EXPECT_EQ(w.job.status.ranks.at(2).node, "fast-0");
  expect_goes_on(w);
  EXPECT_EQ(w.job.status.migrations.succeeded, 2u);
  EXPECT_EQ(w.job.status.migrations.active, 0u);
  EXPECT_EQ(w.job.status.migrations.waves, 1u);

  ASSERT_THAT(w.migrations, SizeIs(2));
  const crds::RankMigration& m = w.migration("job-w1-r2");
  EXPECT_EQ(m.metadata.labels.at(std::string(names::kLabelJob)), "job");
  EXPECT_EQ(m.metadata.labels.at(std::string(names::kLabelRank)), "2");
  EXPECT_EQ(m.metadata.owner_references.at(0).at("uid"), "job-uid");
  EXPECT_EQ(m.spec.job, "job");
  EXPECT_EQ(m.spec.rank.value, 2u);
  EXPECT_EQ(m.spec.target_set, "fast");
  EXPECT_EQ(m.spec.wave, 1u);
  EXPECT_EQ(m.spec.predicted_gain_seconds, 2.5) << "people read it: rounded";
  EXPECT_EQ(m.status.predicted_gain_seconds, 2.5);
  EXPECT_EQ(m.status.phase, Phase::kSucceeded);
  EXPECT_THAT(phases_of(m), ElementsAre("Pending", "Preparing", "Pausing", "Checkpointing", "Transferring", "Restoring",
                                        "Resuming", "Succeeded"));
  EXPECT_EQ(m.status.start_time, m.status.phase_times.front().time);
  EXPECT_EQ(m.status.completion_time, m.status.phase_times.back().time);
  EXPECT_EQ(m.status.from_epoch, 1u);
  EXPECT_EQ(m.status.to_epoch, 2u);
  EXPECT_EQ(m.status.source_set, "slow");
  EXPECT_EQ(m.status.source_node, "slow-2");
  EXPECT_EQ(m.status.source_pod, "job-r2-g0");
  EXPECT_EQ(m.status.target_pod, "job-r2-g1");
  EXPECT_EQ(m.status.target_set, "fast");
  EXPECT_EQ(m.status.target_node, "fast-0");
  EXPECT_EQ(m.status.bytes, 50'000'000u);
  EXPECT_GT(m.status.pause.total_ms, 0);
  EXPECT_EQ(m.status.pause.dump_ms, 80) << "rounded too";
  EXPECT_DOUBLE_EQ(m.status.pause.restore_ms, 60);
  EXPECT_GT(m.status.superstep.value, 0u);
}

TEST(Waves, TheTargetIsMadeForItsMigrationAndTheSourceGoesLast) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.decide({{"", 1, "fast", "fast-0"}});
  ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 3; })) << w.trace;
  const PodRequest& target = w.created.back();
  EXPECT_TRUE(target.target);
  EXPECT_EQ(target.migration, "job-w1-r1");
  EXPECT_EQ(target.set, "fast");
  EXPECT_EQ(target.generation, 1u);
  while (!crds::is_finished(w.wave_phase()) && w.violation.empty()) {
    ASSERT_TRUE(w.pods.contains("job-r1-g0")) << "gone before the target computes\n" << w.trace;
    w.tick();
  }
  expect_goes_on(w);
  EXPECT_FALSE(w.pods.contains("job-r1-g0"));
}

TEST(Waves, RanksStandStillFromTheGateToTheNextEpoch) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until(Phase::kPausing)) << w.trace;
  EXPECT_FALSE(stands_still(w.observe()));
  ASSERT_TRUE(w.run_until(Phase::kRestoring)) << w.trace;
  EXPECT_TRUE(stands_still(w.observe()));
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
  EXPECT_FALSE(stands_still(w.observe()));
}

TEST(Waves, ASourceThatForgotWhereToGoIsToldAgain) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until([&] { return w.pods.contains("job-r0-g0") && w.pods.at("job-r0-g0").order.is_object(); }))
      << w.trace;
  w.restart_sidecar("job-r0-g0");
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
  EXPECT_EQ(w.wave_phase(), Phase::kSucceeded) << w.trace;
  EXPECT_NE(w.trace.find("job-r0-g0 is asked to send"), std::string::npos) << w.trace;
  expect_goes_on(w);
}

TEST(Waves, RanksMoveBackAndForth) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  for (std::uint32_t i = 1; i <= 4; ++i) {
    w.migrate_by_hand(std::format("m{}", i), 0, i % 2 ? "fast" : "slow");
    ASSERT_TRUE(w.run_until([&] { return w.job.status.wave == i && wave_over(w); })) << w.trace;
    EXPECT_EQ(w.job.status.ranks.at(0).set, i % 2 ? "fast" : "slow");
    EXPECT_EQ(w.job.status.ranks.at(0).pod, std::format("job-r0-g{}", i));
    expect_goes_on(w);
  }
  EXPECT_EQ(w.job.status.migrations.waves, 4u);
  EXPECT_EQ(w.job.status.migrations.succeeded, 4u);
}

TEST(Waves, AMoveToANodeByName) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("m", 1, "", "fast-1");
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
  EXPECT_EQ(w.job.status.ranks.at(1).node, "fast-1");
  EXPECT_EQ(w.migration("m").status.phase, Phase::kSucceeded);
  EXPECT_EQ(w.migration("m").status.target_set, "fast");
  EXPECT_FALSE(w.migration("m").status.predicted_gain_seconds) << "nobody predicted anything";
}

// --- Goes back -------------------------------------------------------------------------------------------------
struct Trouble {
  const char* name;
  Phase phase;  // in which it happens
  void (*happens)(World&);
  const char* reason;
};
void PrintTo(const Trouble& t, std::ostream* out) { *out << t.name; }

void lose_target(World& w) { w.lose_pod("job-r0-g1"); }
void delete_target(World& w) { w.delete_pod("job-r0-g1"); }
void silence_target(World& w) { w.silence("job-r0-g1", 10'000); }
void restart_target(World& w) { w.restart_sidecar("job-r0-g1"); }
void silence_staying(World& w) { w.silence("job-r1-g0", 30); }

const Trouble kTroubles[] = {
    {"TargetLostPreparing", Phase::kPreparing,
     [](World& w) {
       w.slow_start = 1000;
       w.run_until([&] { return w.pods.size() == 3; });
       w.find("job-r0-g1")->stuck = {{"reason", "ErrImagePull"}, {"message", "no such image"}};
     },
     "TargetLost"},
    {"TargetLostPausing", Phase::kPausing, lose_target, "TargetLost"},
    {"TargetLostCheckpointing", Phase::kCheckpointing, lose_target, "TargetLost"},
    {"TargetLostRestoring", Phase::kRestoring, lose_target, "TargetLost"},
    {"TargetDeletedTransferring", Phase::kTransferring, delete_target, "CheckpointFailed"},
    {"TargetSilentPausing", Phase::kPausing, silence_target, "CheckpointFailed"},
    {"TargetSilentCheckpointing", Phase::kCheckpointing, silence_target, "CheckpointFailed"},
    {"TargetSilentRestoring", Phase::kRestoring, silence_target, "TargetLost"},
    {"TargetSidecarRestartedCheckpointing", Phase::kCheckpointing, restart_target, "CheckpointFailed"},
    {"TargetSidecarRestartedRestoring", Phase::kRestoring, restart_target, "TargetLost"},
    {"StayingSidecarSilentRestoring", Phase::kRestoring, silence_staying, "SidecarUnreachable"},
};

class WaveRollsBack : public testing::TestWithParam<Trouble> {};

TEST_P(WaveRollsBack, AndTheJobGoesOnWhereItWas) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until(GetParam().phase)) << w.trace;
  GetParam().happens(w);
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
  w.slow_start = 1;
  EXPECT_EQ(w.wave_phase(), Phase::kRolledBack) << w.trace;
  EXPECT_EQ(w.job.status.ranks.at(0).pod, "job-r0-g0");
  EXPECT_EQ(w.job.status.ranks.at(0).set, "slow");
  EXPECT_EQ(w.job.status.attempt, 0u);
  expect_goes_on(w);
  EXPECT_EQ(w.job.status.migrations.rolled_back, 1u);
  EXPECT_EQ(w.job.status.migrations.active, 0u);
  const crds::RankMigrationStatus& s = w.migration("m").status;
  EXPECT_EQ(s.phase, Phase::kRolledBack);
  EXPECT_EQ(s.reason, GetParam().reason);
  EXPECT_NE(s.message, "");
  EXPECT_TRUE(w.told("WaveRollingBack"));
  EXPECT_EQ(s.to_epoch, w.job.status.epoch->epoch == 1 ? 2u : 3u) << "the rollback's epoch, if it took one";

  // The same rank can be asked for again, and gets a pod of another name.
  w.migrate_by_hand("again", 0, "fast");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.wave == 2 && wave_over(w); })) << w.trace;
  EXPECT_EQ(w.migration("again").status.phase, Phase::kSucceeded) << w.trace;
  EXPECT_EQ(w.job.status.ranks.at(0).pod, "job-r0-g2");
  expect_goes_on(w);
}
INSTANTIATE_TEST_SUITE_P(When, WaveRollsBack, testing::ValuesIn(kTroubles), [](const auto& p) { return p.param.name; });

TEST(Waves, ASilentRankForAFreshOperatorEndsTheWave) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.never_migratable = true;
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until(Phase::kPausing));
  w.silence("job-r1-g0", 40);
  w.restart_operator();
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); }, 200)) << w.trace;
  EXPECT_EQ(w.migration("m").status.phase, Phase::kRolledBack);
  expect_goes_on(w);
}

TEST(Waves, AGateThatIsPostponedTooLongIsGivenUp) {
  World w;
  w.limits.postponed = std::chrono::seconds(20);
  w.never_migratable = true;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until([&] { return !w.job.status.ranks.at(0).blocked_reason.empty(); })) << w.trace;
  EXPECT_EQ(w.job.status.ranks[0].blocked_reason, "not migratable now: an open file");
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
  EXPECT_EQ(w.migration("m").status.reason, "Postponed");
  EXPECT_THAT(w.migration("m").status.message, HasSubstr("rank 0: not migratable now: an open file"));
  expect_goes_on(w);
}

TEST(Waves, AGateThatNobodyRemembersIsTakenBack) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  for (int i = 0; i < 5; ++i) w.tick();
  w.pod_of(1)->gate = simulated::Gate::kArmed;
  w.pod_of(1)->status.gate_superstep = w.pod_of(1)->status.completed + 1;
  expect_goes_on(w);
}

TEST(Waves, AProgramThatEndsWhileTargetsComeUpDoesNotWaitForThem) {
  World w({.supersteps = 20});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.slow_start = 1000;
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded, 50)) << w.trace;
  EXPECT_EQ(w.migration("m").status.phase, Phase::kRolledBack);
  EXPECT_EQ(w.migration("m").status.message, "the program is ending");
}

// --- Is lost ---------------------------------------------------------------------------------------------------
TEST(Waves, ARankThatDiesInAWaveFailsItAndTheJobRestarts) {
  for (const auto phase : {Phase::kPausing, Phase::kCheckpointing, Phase::kResuming}) {
    World w({.supersteps = 60});
    ASSERT_TRUE(w.run_until(JobPhase::kRunning));
    w.migrate_by_hand("m", 0, "fast");
    ASSERT_TRUE(w.run_until(phase)) << w.trace;
    w.end_program(1, 0, 9);
    ASSERT_TRUE(w.run_until([&] { return w.job.status.phase == JobPhase::kRunning && w.job.status.attempt == 1; }))
        << w.trace;
    EXPECT_EQ(w.migration("m").status.phase, Phase::kFailed) << w.trace;
    EXPECT_EQ(w.migration("m").status.reason, "RankLost");
    EXPECT_EQ(w.migration("m").status.message, "rank 1 was ended by signal 9");
    EXPECT_EQ(w.job.status.migrations.failed, 1u);
    EXPECT_EQ(w.job.status.migrations.active, 0u);
    ASSERT_THAT(w.job.status.restarts, SizeIs(1));
    EXPECT_EQ(w.job.status.restarts[0].rank->value, 1u);
    EXPECT_EQ(w.shown_logs_of, "job-r1-g0");
    ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
  }
}

TEST(Waves, TheLastWordOfAMigrationIsWrittenBeforeItsWaveIsForgotten) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.decide({{"", 0, "fast", "fast-0"}});
  ASSERT_TRUE(w.run_until(Phase::kCheckpointing));
  w.end_program(0, 0, 9);
  w.lose_pod("job-r0-g1");
  ASSERT_TRUE(w.run_until(JobPhase::kRestarting));
  const crds::RankMigration unwritten = [&] {
    auto m = w.migration("job-w1-r0");
    m.status.phase = Phase::kCheckpointing;
    return m;
  }();
  w.pods.clear();
  w.migrations["job-w1-r0"] = unwritten;  // the write that told of the failure was lost
  const Step out = w.reconcile();
  EXPECT_EQ(status_of(out).phase, JobPhase::kRestarting);
  ASSERT_THAT(notices_of(out).migrations, SizeIs(1));
  EXPECT_EQ(notices_of(out).migrations[0].status.phase, Phase::kFailed);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_EQ(w.migration("job-w1-r0").status.reason, "RankLost");
}

// --- Aborted by deleting its object ------------------------------------------------------------------------------
class Aborted : public testing::TestWithParam<Phase> {};
INSTANTIATE_TEST_SUITE_P(While, Aborted,
                         testing::Values(Phase::kPreparing, Phase::kPausing, Phase::kCheckpointing,
                                         Phase::kTransferring, Phase::kRestoring, Phase::kResuming),
                         [](const auto& p) { return std::string(crds::to_string(p.param)); });

TEST_P(Aborted, TheRanksGoOnWhereTheyWereUnlessItIsTooLate) {
  World w({.ranks = 2, .slow = 2, .fast = 2});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.decide({{"", 0, "fast", "fast-0"}, {"", 1, "fast", "fast-1"}});
  ASSERT_TRUE(w.run_until([&] { return w.wave_phase() == GetParam() && w.pods.size() == 4; })) << w.trace;
  w.delete_migration("job-w1-r0");
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
  EXPECT_FALSE(w.migrations.contains("job-w1-r0")) << "it is not made again";
  const bool late = GetParam() == Phase::kResuming;
  EXPECT_EQ(w.job.status.ranks.at(0).set, late ? "fast" : "slow");
  EXPECT_EQ(w.job.status.ranks.at(1).set, late ? "fast" : "slow");
  const crds::RankMigrationStatus& other = w.migration("job-w1-r1").status;
  EXPECT_EQ(other.phase, late ? Phase::kSucceeded : Phase::kRolledBack);
  EXPECT_EQ(other.message, late ? "" : "RankMigration job-w1-r0 was deleted");
  EXPECT_EQ(other.reason, late ? "" : "Cancelled");
  expect_goes_on(w);
}

TEST(Waves, AMigrationMadeByHandIsAbortedTheSameWay) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.never_migratable = true;
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until(Phase::kPausing)) << w.trace;
  w.delete_migration("m");
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
  EXPECT_EQ(w.wave_phase(), Phase::kRolledBack);
  EXPECT_TRUE(w.told("WaveRollingBack"));
  expect_goes_on(w);
}

// Its first write was lost with its operator: that is no deletion.
TEST(Waves, AMigrationThatWasNeverWrittenIsWrittenAndNotTakenForDeleted) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.die_after_stores = 0;
  w.decide({{"", 0, "fast", "fast-0"}});
  w.tick();
  ASSERT_EQ(w.wave_phase(), Phase::kPreparing) << w.trace;
  ASSERT_FALSE(w.migrations.contains("job-w1-r0"));
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
  EXPECT_EQ(w.migration("job-w1-r0").status.phase, Phase::kSucceeded);
}

// --- Asked for wrongly -------------------------------------------------------------------------------------------
struct Wrong {
  const char* name;
  std::uint32_t rank;
  const char* set;
  const char* node;
  const char* reason;
  const char* message;
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }
const Wrong kWrong[] = {
    {"UnknownRank", 2, "fast", "", "NoSuchRank", "spec.rank: 2 is not a rank of this job, which has ranks 0 to 1"},
    {"UnknownSet", 0, "gpu", "", "NoSuchTarget", "there is no Set gpu; the Sets of this job are slow, fast"},
    {"UnknownNode", 0, "", "fast-9", "NoSuchTarget", "there is no node fast-9; the Sets of this job are slow, fast"},
    {"InTheSetAlready", 0, "slow", "", "AlreadyThere", "rank 0 is in Set slow already"},
    {"OnTheNodeAlready", 1, "", "slow-1", "AlreadyThere", "rank 1 is in node slow-1 already"},
    {"SetLeftOut", 0, "other", "", "NoSuchTarget", "Set other is left out by spec.sets.names"},
    {"NodeOfASetLeftOut", 0, "", "other-0", "NoSuchTarget",
     "node other-0 belongs to Set other, which spec.sets.names leaves out"},
    {"NodeTaken", 0, "", "slow-1", "NoCapacity", "node slow-1 has no free slot"},
    {"NodeCordoned", 0, "", "fast-1", "NoCapacity", "node fast-1 has no free slot"},
};

class WrongRequest : public testing::TestWithParam<Wrong> {};
TEST_P(WrongRequest, IsRefusedWithTheReasonAndHarmsNobody) {
  const Wrong& wrong = GetParam();
  World w;
  w.nodes.push_back({.name = "other-0", .set = "other"});
  w.nodes.at(1).cordoned = true;  // fast-1
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("m", wrong.rank, wrong.set, wrong.node);
  w.tick();
  const crds::RankMigrationStatus& s = w.migration("m").status;
  EXPECT_EQ(s.phase, Phase::kFailed);
  EXPECT_EQ(s.reason, wrong.reason);
  EXPECT_EQ(s.message, wrong.message);
  EXPECT_EQ(s.completion_time, w.now);
  EXPECT_EQ(s.observed_generation, 1);
  EXPECT_TRUE(w.told(wrong.reason));
  EXPECT_EQ(w.job.status.phase, JobPhase::kRunning);
  EXPECT_EQ(w.job.status.wave, 0u) << "no number was used";
  expect_goes_on(w);
}
INSTANTIATE_TEST_SUITE_P(By, WrongRequest, testing::ValuesIn(kWrong), [](const auto& p) { return p.param.name; });

TEST(Waves, OfTwoRequestsForOneRankTheFirstCounts) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("a", 0, "", "fast-0");
  w.migrate_by_hand("b", 0, "", "fast-1");
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
  EXPECT_EQ(w.migration("a").status.phase, Phase::kSucceeded);
  EXPECT_EQ(w.migration("b").status.phase, Phase::kFailed);
  EXPECT_EQ(w.migration("b").status.reason, "Superseded");
  EXPECT_EQ(w.job.status.ranks.at(0).node, "fast-0");
  expect_goes_on(w);
}

TEST(Waves, TwoRequestsForOneSlotGetOne) {
  World w({.ranks = 2, .slow = 2, .fast = 1});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("a", 0, "fast");
  w.migrate_by_hand("b", 1, "fast");
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
  EXPECT_EQ(w.migration("a").status.phase, Phase::kSucceeded);
  EXPECT_EQ(w.migration("b").status.reason, "NoCapacity");
  expect_goes_on(w);
}

TEST(Waves, ASlotThatAnotherJobHoldsIsNotFree) {
  World w;
  for (auto& node : w.nodes)
    if (node.set == "fast") node.taken = 1;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("m", 0, "fast");
  w.tick();
  EXPECT_EQ(w.migration("m").status.reason, "NoCapacity");
}

TEST(Waves, AWaveNumberIsNotForPeopleToGive) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("m", 0, "fast");
  w.migrations["m"].spec.wave = 7;
  w.tick();
  EXPECT_EQ(w.migration("m").status.phase, Phase::kFailed);
  EXPECT_EQ(w.migration("m").status.reason, "NoSuchWave");
  expect_goes_on(w);
}

TEST(Waves, ARequestWaitsUntilTheJobRunsAndForTheWaveBefore) {
  World w;
  w.migrate_by_hand("early", 0, "fast");
  ASSERT_TRUE(w.run_until(JobPhase::kStarting));
  EXPECT_EQ(w.migration("early").status.phase, Phase::kPending);
  ASSERT_TRUE(w.run_until(Phase::kPreparing)) << w.trace;
  w.migrate_by_hand("next", 1, "fast");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.wave == 2; })) << w.trace;
  EXPECT_TRUE(!w.pods.contains("job-r0-g0") || w.pods.at("job-r0-g0").gone_at >= 0) << "nobody would remove it\n"
                                                                                    << w.trace;
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
  EXPECT_EQ(w.migration("early").status.wave, 1u);
  EXPECT_EQ(w.migration("early").status.phase, Phase::kSucceeded);
  EXPECT_EQ(w.migration("next").status.wave, 2u);
  EXPECT_EQ(w.migration("next").status.phase, Phase::kSucceeded);
}

TEST(Waves, ARequestThatIsBeingDeletedIsNoneAnyMore) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("m", 0, "fast");
  w.migrations["m"].metadata.deletion_timestamp = w.now;
  for (int i = 0; i < 5; ++i) w.tick();
  EXPECT_EQ(w.job.status.wave, 0u);
}

TEST(Waves, AnEndingJobRefusesRequests) {
  World w({.ranks = 1});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  Observed o = w.observe();
  o.job.spec.ranks = 2;
  o.job.status.ranks.push_back(o.job.status.ranks[0]);  // a second rank, which is still there
  o.job.status.ranks[1].rank = {1};
  o.job.status.ranks[1].pod = "job-r1-g0";
  o.pods["job-r1-g0"] = o.pods["job-r0-g0"];
  o.sidecars["job-r1-g0"] = o.sidecars["job-r0-g0"];
  o.sidecars["job-r0-g0"].status->phase = wire::RankPhase::kExited;
  o.sidecars["job-r0-g0"].status->exit_code = 0;
  w.migrate_by_hand("m", 1, "fast");
  o.migrations.push_back(w.migration("m"));
  const Step out = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
  ASSERT_THAT(notices_of(out).migrations, SizeIs(1));
  EXPECT_EQ(notices_of(out).migrations[0].status.reason, "ProgramFinished");
  EXPECT_EQ(status_of(out).phase, JobPhase::kRunning);
}

TEST(Waves, RequestsLeftAtTheEndAreRefused) {
  World w({.supersteps = 3});
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded));
  w.migrate_by_hand("m", 0, "fast");
  w.migrate_by_hand("odd", 0, "fast");
  w.migrations["odd"].spec.wave = 3;
  for (int i = 0; i < 5; ++i) w.tick();
  EXPECT_EQ(w.migration("m").status.reason, "JobFinished");
  EXPECT_EQ(w.migration("odd").status.reason, "NoSuchWave");
  EXPECT_EQ(w.unrest(), "");
}

TEST(Waves, AnUnreadableWaveFailsTheJobWithItsField) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.job.status.wave_state = {{"number", 1}, {"phase", "Odd"}};
  ASSERT_TRUE(w.run_until(JobPhase::kFailed)) << w.trace;
  EXPECT_EQ(w.job.status.reason, "Internal");
  EXPECT_THAT(w.job.status.message, HasSubstr("status.waveState"));
}

}  // namespace
}  // namespace bsp::reconcile::sim
