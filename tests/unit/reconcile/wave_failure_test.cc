// Waves that are rolled back, lost, or aborted by deleting their RankMigration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>

#include "crds/names.h"
#include "tests/unit/reconcile/expectations.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using migrate::Phase;
using ::testing::HasSubstr;
using ::testing::SizeIs;

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
    {"TargetLostCheckpointing", Phase::kCheckpointing, lose_target, "CheckpointFailed"},
    {"TargetLostRestoring", Phase::kRestoring, lose_target, "TargetLost"},
    {"TargetDeletedTransferring", Phase::kTransferring, delete_target, "CheckpointFailed"},
    {"TargetSilentPausing", Phase::kPausing, silence_target, "CheckpointFailed"},
    {"TargetSilentCheckpointing", Phase::kCheckpointing, silence_target, "CheckpointFailed"},
    {"TargetSilentRestoring", Phase::kRestoring, silence_target, "TargetLost"},
    {"TargetSidecarRestartedCheckpointing", Phase::kCheckpointing, restart_target, "CheckpointFailed"},
    {"StayingSidecarSilentRestoring", Phase::kRestoring, silence_staying, "SidecarUnreachable"},
};

class WaveRollsBack : public testing::TestWithParam<Trouble> {};

TEST_P(WaveRollsBack, AndTheJobContinuesInPlace) {
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
  EXPECT_TRUE(w.has_event("WaveRollingBack"));
  EXPECT_EQ(s.to_epoch, w.job.status.epoch->epoch == 1 ? 2u : 3u) << "the rollback's epoch, if it took one";

  // The same rank can be requested again, and gets a pod of another name.
  w.migrate_by_hand("again", 0, "fast");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.wave == 2 && wave_over(w); })) << w.trace;
  EXPECT_EQ(w.migration("again").status.phase, Phase::kSucceeded) << w.trace;
  EXPECT_EQ(w.job.status.ranks.at(0).pod, "job-r0-g2");
  expect_goes_on(w);
}
INSTANTIATE_TEST_SUITE_P(When, WaveRollsBack, testing::ValuesIn(kTroubles), [](const auto& p) { return p.param.name; });

// The kubelet tries again, and the ranks compute meanwhile.
TEST(Waves, ATargetWhoseContainerIsCreatedLateIsWaitedFor) {
  for (const char* reason : {"CreateContainerError", "CreateContainerConfigError"}) {
    World w;
    ASSERT_TRUE(w.run_until(JobPhase::kRunning));
    w.slow_start = 5;
    w.migrate_by_hand("m", 0, "fast");
    ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 3; })) << w.trace;
    w.find("job-r0-g1")->stuck = {{"reason", reason}, {"message", "context deadline exceeded"}};
    for (int i = 0; i < 25; ++i) w.tick();
    ASSERT_EQ(w.wave_phase(), Phase::kPreparing) << reason << "\n" << w.trace;
    w.find("job-r0-g1")->stuck = nullptr;
    ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
    EXPECT_EQ(w.migration("m").status.phase, Phase::kSucceeded) << w.trace;
  }
}

TEST(Waves, ATargetWhoseContainerIsNeverCreatedEndsTheWaveWithTheReason) {
  World w;
  w.limits.prepare = std::chrono::seconds(10);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.slow_start = 5;
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 3; })) << w.trace;
  w.find("job-r0-g1")->stuck = {{"reason", "CreateContainerError"}, {"message", "name is reserved"}};
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
  EXPECT_EQ(w.migration("m").status.phase, Phase::kRolledBack);
  EXPECT_EQ(w.migration("m").status.reason, "PrepareTimeout");
  EXPECT_THAT(w.migration("m").status.message,
              HasSubstr("container app waits: CreateContainerError: name is reserved"));
  EXPECT_EQ(w.job.status.attempt, 0u);
  expect_goes_on(w);
}

TEST(Waves, ASidecarThatIsCreatedAgainLosesNoRank) {
  for (const char* pod : {"job-r0-g0", "job-r1-g0"}) {
    World w;
    ASSERT_TRUE(w.run_until(JobPhase::kRunning));
    w.never_migratable = true;
    w.migrate_by_hand("m", 0, "fast");
    ASSERT_TRUE(w.run_until(Phase::kPausing)) << w.trace;
    w.find(pod)->again = {{"reason", "ErrImagePull"}, {"message", "the registry is busy"}};
    w.silence(pod, 40);
    ASSERT_TRUE(w.run_until([&] { return wave_over(w); }, 200)) << w.trace;
    EXPECT_EQ(w.migration("m").status.phase, Phase::kRolledBack);
    EXPECT_EQ(w.migration("m").status.reason, "SidecarUnreachable");
    w.find(pod)->again = nullptr;
    EXPECT_EQ(w.job.status.attempt, 0u) << pod;
    expect_goes_on(w);
  }
}

// bsp-init continues the restore, and reports it to the new sidecar.
TEST(Waves, ATargetWhoseSidecarRestartsDuringTheRestoreIsNotLost) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until(Phase::kRestoring)) << w.trace;
  restart_target(w);
  ASSERT_TRUE(w.run_until([&] { return crds::is_finished(w.migration("m").status.phase); })) << w.trace;
  EXPECT_EQ(w.migration("m").status.phase, Phase::kSucceeded) << w.trace;
  expect_goes_on(w);
}

TEST(Waves, ASilentRankEndsTheWaveOfANewOperator) {
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

TEST(Waves, AGatePostponedTooLongIsAbandoned) {
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

TEST(Waves, AnUnknownGateIsWithdrawn) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  for (int i = 0; i < 5; ++i) w.tick();
  w.pod_of(1)->gate = simulated::Gate::kArmed;
  w.pod_of(1)->status.gate_superstep = w.pod_of(1)->status.completed + 1;
  expect_goes_on(w);
}

TEST(Waves, AProgramThatEndsDoesNotWaitForStartingTargets) {
  World w({.supersteps = 20});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.slow_start = 1000;
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded, 50)) << w.trace;
  EXPECT_EQ(w.migration("m").status.phase, Phase::kRolledBack);
  EXPECT_EQ(w.migration("m").status.message, "the program is ending");
}

// The API server was away meanwhile, say. The sidecars have ended with their pods, so only the nodes say how the ranks ended.
TEST(Waves, AProgramThatEndsWellWithoutAnOperatorSucceeds) {
  for (const Phase phase : {Phase::kPreparing, Phase::kResuming, Phase::kRollingBack}) {
    SCOPED_TRACE(crds::to_string(phase));
    World w({.supersteps = 60});
    ASSERT_TRUE(w.run_until(JobPhase::kRunning));
    w.migrate_by_hand("m", 0, "fast");
    if (phase == Phase::kPreparing) w.slow_start = 1000;
    ASSERT_TRUE(w.run_until(phase == Phase::kRollingBack ? Phase::kRestoring : phase)) << w.trace;
    if (phase == Phase::kRollingBack) w.lose_pod("job-r0-g1");
    ASSERT_TRUE(w.run_until([&] {
      return w.wave_phase() == phase && std::ranges::all_of(w.job.status.epoch->members, [&](const wire::Member& m) {
               return w.find(m.pod)->computes();
             });
    })) << w.trace;
    w.restart_operator(1000);
    ASSERT_TRUE(w.run_until([&] { return w.all_ended(); }, 200)) << w.trace;
    for (int i = 0; i < 10; ++i) w.tick();
    w.restart_operator();
    ASSERT_TRUE(w.run_until(JobPhase::kSucceeded, 300)) << w.trace;
    EXPECT_EQ(w.job.status.attempt, 0u);
    EXPECT_EQ(w.migration("m").status.phase, phase == Phase::kResuming ? Phase::kSucceeded : Phase::kRolledBack);
    expect_quiet(w);
  }
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
    EXPECT_EQ(w.shown_logs_of.pod, "job-r1-g0");
    ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
  }
}

TEST(Waves, AMigrationsResultIsStoredBeforeItsWaveIsDropped) {
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
  w.migrations["job-w1-r0"] = unwritten;  // the write that reported the failure was lost
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

TEST_P(Aborted, TheRanksContinueInPlaceUnlessItIsTooLate) {
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

TEST(Waves, AUsersMigrationIsAbortedTheSameWay) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.never_migratable = true;
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until(Phase::kPausing)) << w.trace;
  w.delete_migration("m");
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
  EXPECT_EQ(w.wave_phase(), Phase::kRolledBack);
  EXPECT_TRUE(w.has_event("WaveRollingBack"));
  expect_goes_on(w);
}

// Its first write was lost with its operator, which is not a deletion.
TEST(Waves, AnUnwrittenMigrationIsWrittenAndNotMistakenForDeleted) {
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

}  // namespace
}  // namespace bsp::reconcile::sim
