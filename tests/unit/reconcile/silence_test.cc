// An operator that does not hear its sidecars, does not run, or has a wrong clock costs a job nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <format>

#include "operator/reconcile/kernel/status.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using migrate::Phase;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr int kMinute = 60'000 / 200;  // ticks

std::string message_of(const World& w, const char* condition) {
  const crds::Condition* c = crds::find_condition(w.job.status.conditions, condition);
  return c && c->status == crds::ConditionStatus::kTrue ? c->message : "";
}
auto events_of(const World& w, const char* reason) { return std::ranges::count(w.events, reason, &Event::reason); }

void pass(World& w, int ticks) {
  for (int i = 0; i < ticks; ++i) w.tick();
}

void expect_goes_on(World& w) {
  pass(w, 60);
  const std::uint64_t before = w.job.status.superstep.value;
  pass(w, 10);
  EXPECT_EQ(w.violation, "") << w.trace;
  EXPECT_EQ(w.job.status.phase, JobPhase::kRunning) << w.trace;
  EXPECT_GT(w.job.status.superstep.value, before + 5) << w.trace;
  EXPECT_EQ(w.job.status.attempt, 0u) << w.trace;
  EXPECT_TRUE(w.job.status.restarts.empty());
  EXPECT_EQ(message_of(w, kOperatorCutOff), "");
  EXPECT_EQ(message_of(w, kSidecarSilent), "");
  EXPECT_EQ(w.unrest(), "") << w.trace;
}

constexpr Phase kAnyWave[] = {Phase::kPending,      Phase::kPreparing, Phase::kPausing,  Phase::kCheckpointing,
                              Phase::kTransferring, Phase::kRestoring, Phase::kResuming, Phase::kRollingBack};

// A running job of three ranks, in this phase of a wave that moves rank 0; kPending: no wave.
class InPhase : public testing::TestWithParam<Phase> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
    if (GetParam() == Phase::kPending) return pass(w, 5);
    w.migrate_by_hand("m", 0, "fast");
    if (GetParam() == Phase::kRollingBack) {
      ASSERT_TRUE(w.run_until(Phase::kCheckpointing)) << w.trace;
      w.lose_pod("job-r0-g1");
    }
    ASSERT_TRUE(w.run_until(GetParam())) << w.trace;
  }
  // The wave is over; a fault that only delays it must not have changed how it ends.
  void expect_ended_well(bool as_if_nothing_had_happened) {
    if (GetParam() == Phase::kPending) return;
    ASSERT_TRUE(w.run_until([&] { return crds::is_finished(w.migration("m").status.phase); }, 10 * kMinute)) << w.trace;
    const Phase ended = w.migration("m").status.phase;
    EXPECT_NE(ended, Phase::kFailed) << w.trace;
    if (as_if_nothing_had_happened) {
      EXPECT_EQ(ended, GetParam() == Phase::kRollingBack ? Phase::kRolledBack : Phase::kSucceeded) << w.trace;
    }
  }
  World w{{.ranks = 3, .slow = 3, .fast = 2}};
};
INSTANTIATE_TEST_SUITE_P(Wave, InPhase, testing::ValuesIn(kAnyWave), [](const auto& p) {
  return p.param == Phase::kPending ? "None" : std::string(crds::to_string(p.param));
});

// --- Silence ---------------------------------------------------------------------------------------------------
TEST_P(InPhase, AnOperatorThatIsCutOffSuspectsItselfAndWaits) {
  w.silence_all(5 * kMinute);
  pass(w, 4 * kMinute);
  EXPECT_EQ(w.violation, "") << w.trace;
  EXPECT_TRUE(w.job.status.restarts.empty()) << w.trace;
  EXPECT_THAT(message_of(w, kOperatorCutOff),
              HasSubstr("3 of the 3 sidecars of this job do not answer: the operator suspects"));
  EXPECT_EQ(events_of(w, kOperatorCutOff), 1);
  EXPECT_EQ(message_of(w, kSidecarSilent), "");
  EXPECT_FALSE(w.reconcile().change()) << "it waits in peace";
  pass(w, kMinute + 10);
  expect_ended_well(false);
  expect_goes_on(w);
}

TEST_P(InPhase, AnOperatorThatStartsCutOffSuspectsItselfAndWaits) {
  w.silence_all(3 * kMinute);
  w.restart_operator(10);
  pass(w, 2 * kMinute);
  EXPECT_NE(message_of(w, kOperatorCutOff), "");
  EXPECT_TRUE(w.job.status.restarts.empty()) << w.trace;
  pass(w, kMinute + 10);
  expect_ended_well(false);
  expect_goes_on(w);
}

TEST_P(InPhase, ARankThatOthersHearIsLeftAlone) {
  w.silence("job-r2-g0", 10 * kMinute);
  pass(w, 9 * kMinute);
  EXPECT_EQ(w.violation, "") << w.trace;
  EXPECT_EQ(
      message_of(w, kSidecarSilent),
      with_remedy(kSidecarSilent,
                  "the sidecar of rank 2 (job-r2-g0) does not answer the operator; rank 0 hears it, so the job is left "
                  "alone"));
  EXPECT_EQ(events_of(w, kSidecarSilent), 1);
  EXPECT_EQ(message_of(w, kOperatorCutOff), "");
  pass(w, kMinute + 10);
  expect_ended_well(false);
  expect_goes_on(w);
}

// While the ranks are stopped the fence ends nothing and no kubelet reports: the only evidence is that the others
// do not hear it.
TEST_P(InPhase, ARankThatNoOtherHearsIsFinallyLost) {
  w.cut_off("job-r2-g0", 100 * kMinute);
  pass(w, 30'000 / 200);
  EXPECT_TRUE(w.job.status.restarts.empty()) << w.trace;
  EXPECT_EQ(
      message_of(w, kSidecarSilent).substr(0, 96),
      std::string("the sidecar of rank 2 (job-r2-g0) does not answer the operator, and rank 0 does not hear it either")
          .substr(0, 96));
  ASSERT_TRUE(w.run_until([&] { return !w.job.status.restarts.empty(); }, kMinute)) << w.trace;
  EXPECT_EQ(w.job.status.restarts[0].rank->value, 2u);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.phase == JobPhase::kRunning && w.job.status.attempt == 1; }))
      << w.trace;
}

TEST(Silence, IsShorterOnANodeThatIsNotReadyUnlessOthersHearTheRank) {
  for (const bool heard : {true, false}) {
    World w({.ranks = 3, .slow = 3});
    ASSERT_TRUE(w.run_until(JobPhase::kRunning));
    w.node_troubles["slow-2"] = "is not ready";
    if (heard)
      w.silence("job-r2-g0", 100 * kMinute);
    else
      w.cut_off("job-r2-g0", 100 * kMinute);
    pass(w, 15'000 / 200);
    EXPECT_EQ(w.job.status.restarts.empty(), heard) << w.trace;
    pass(w, 5 * kMinute);
    EXPECT_EQ(w.job.status.attempt, heard ? 0u : 1u) << w.trace;
  }
}

TEST(Silence, OfMostSidecarsOfAllJobsIsTheOperatorsOwnFault) {
  World w({.ranks = 3, .slow = 3});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.everywhere = Hearing{.heard = 40, .silent = 60};
  w.cut_off("job-r2-g0", 100 * kMinute);
  pass(w, 10 * kMinute);
  EXPECT_TRUE(w.job.status.restarts.empty()) << w.trace;
  EXPECT_THAT(message_of(w, kOperatorCutOff), HasSubstr("60 of the 100 sidecars of all jobs"));
  w.everywhere = Hearing{.heard = 99, .silent = 1};
  EXPECT_TRUE(w.run_until([&] { return !w.job.status.restarts.empty(); }, 5)) << "it hears again, and others do not";
  EXPECT_EQ(w.job.status.restarts[0].reason, "SidecarLost");
}

TEST(Silence, OfASingleRankEndsNothingUntilItsKubeletReports) {
  for (const char* trouble : {"", "is not ready"}) {
    World w({.ranks = 1});
    ASSERT_TRUE(w.run_until(JobPhase::kRunning));
    if (*trouble) w.node_troubles["slow-0"] = trouble;
    w.silence("job-r0-g0", 20 * kMinute);
    pass(w, 15 * kMinute);
    EXPECT_EQ(w.job.status.phase, JobPhase::kRunning) << w.trace;
    EXPECT_NE(message_of(w, *trouble ? kSidecarSilent : kOperatorCutOff), "");
    w.evict("job-r0-g0");
    ASSERT_TRUE(w.run_until([&] { return !w.job.status.restarts.empty(); }, 5)) << w.trace;
    EXPECT_EQ(w.job.status.restarts[0].reason, "PodLost");
  }
}

TEST(Silence, ASilentRanksEndIsNoLossIfTheNodeReportsIt) {
  World w({.ranks = 3, .slow = 3, .supersteps = 20});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.silence("job-r2-g0", 100 * kMinute);
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
  EXPECT_EQ(w.job.status.attempt, 0u);
}

TEST(Silence, AMoveWaitsUntilAllAreHeard) {
  World w({.ranks = 3, .slow = 3});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.silence("job-r2-g0", kMinute);
  pass(w, kMinute / 3);
  w.migrate_by_hand("m", 0, "fast");
  pass(w, kMinute / 3);
  EXPECT_EQ(w.job.status.wave, 0u) << w.trace;
  ASSERT_TRUE(w.run_until([&] { return crds::is_finished(w.migration("m").status.phase); })) << w.trace;
  EXPECT_EQ(w.migration("m").status.phase, Phase::kSucceeded);
}

TEST(Vouchers, KeepRecentReportsAndForgetOldOnes) {
  const SteadyTime t{1000s};
  Vouchers v;
  v.note(false, "rank 0", t);
  v.note(false, "rank 1", t + 10s);
  EXPECT_EQ(v.denied_since, t);
  EXPECT_EQ(v.by, "rank 1");
  v.note(true, "rank 0", t + 11s);
  EXPECT_EQ(v.denied_since, SteadyTime{});
  EXPECT_EQ(v.heard, t + 11s);
  v.note(false, "rank 0", t + 12s);
  v.note(false, "rank 0", t + 60s);
  EXPECT_EQ(v.denied_since, t + 60s) << "meanwhile no other could be asked";
}

// --- Leaders that come late, API servers that pause, clocks that are wrong -----------------------------------------
TEST_P(InPhase, ALeaderThatComesAMinuteLaterContinues) {
  for (const auto skew : {0min, 5min, -5min}) {
    World fresh({.ranks = 3, .slow = 3, .fast = 2});
    std::swap(w, fresh);
    SetUp();
    w.restart_operator(kMinute);
    w.now += skew;
    pass(w, kMinute + 1);
    expect_ended_well(true);
    expect_goes_on(w);
  }
}

TEST_P(InPhase, APausedApiServerCostsOnlyTime) {
  w.pause_api(45'000 / 200);
  pass(w, 45'000 / 200 + 1);
  expect_ended_well(true);
  expect_goes_on(w);
}

TEST_P(InPhase, AClockAdjustmentChangesNothing) {
  for (const auto step : {1h, -1h}) {
    World fresh({.ranks = 3, .slow = 3, .fast = 2});
    std::swap(w, fresh);
    w.job.spec.run_policy.active_deadline_seconds = 1800;
    w.job.spec.run_policy.ttl_seconds_after_finished = 1800;
    SetUp();
    w.now += step;
    expect_ended_well(true);
    expect_goes_on(w);
  }
}

TEST(Clocks, LimitsOfAJobCountOnAMonotonicClock) {
  for (const auto step : {0h, 1h, -1h}) {
    World w;
    w.job.spec.run_policy.active_deadline_seconds = 600;
    w.job.spec.run_policy.ttl_seconds_after_finished = 600;
    ASSERT_TRUE(w.run_until(JobPhase::kRunning));
    w.now += step;
    pass(w, 9 * kMinute);
    EXPECT_EQ(w.job.status.phase, JobPhase::kRunning);
    ASSERT_TRUE(w.run_until(JobPhase::kFailed, 2 * kMinute));
    EXPECT_EQ(w.job.status.reason, "DeadlineExceeded");
    w.now += step;
    pass(w, 9 * kMinute);
    EXPECT_FALSE(w.removed);
    EXPECT_TRUE(w.run_until([&] { return w.removed; }, 2 * kMinute));
  }
}

TEST(Clocks, ALeaderWhoseClockIsFiveMinutesAheadEndsAJobFiveMinutesEarly) {
  World w;
  w.job.spec.run_policy.active_deadline_seconds = 1200;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.now += 5min;
  w.restart_operator();
  pass(w, 14 * kMinute);
  EXPECT_EQ(w.job.status.phase, JobPhase::kRunning);
  EXPECT_TRUE(w.run_until(JobPhase::kFailed, 2 * kMinute)) << "as Kubernetes does it with a Job";
}

TEST(Clocks, ALeaderWhoseClockIsAheadGivesPodsTheirTimeToStart) {
  World w;
  w.slow_start = 2 * kMinute;
  ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 2; }));
  pass(w, kMinute);
  w.now += 10min;
  w.restart_operator();
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_EQ(w.job.status.attempt, 0u);
}

// Its sidecar answers, so only the program could know that something is wrong: no timeout ends that.
TEST(Waves, ARankThatHangsInMpiInitIsNamedInACondition) {
  World w({.ranks = 3, .slow = 3, .fast = 2});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until(Phase::kRestoring)) << w.trace;
  w.pod_of(2)->hangs_in_opening = true;
  ASSERT_TRUE(w.run_until(Phase::kResuming)) << w.trace;
  EXPECT_EQ(message_of(w, kWaveDelayed), "");
  pass(w, 2 * kMinute);
  EXPECT_EQ(w.job.status.phase, JobPhase::kMigrating);
  EXPECT_THAT(
      message_of(w, kWaveDelayed),
      HasSubstr("not every rank has continued after 30 s: rank 2 (job-r2-g0) is Opening; the other ranks wait"));
  EXPECT_EQ(events_of(w, "WaveDelayed"), 1);
  w.pod_of(2)->hangs_in_opening = false;
  w.pod_of(2)->status.phase = wire::RankPhase::kRunning;
  ASSERT_TRUE(w.run_until(Phase::kSucceeded)) << w.trace;
  EXPECT_EQ(message_of(w, kWaveDelayed), "");
}

// --- Waves that nothing but people can end -------------------------------------------------------------------------
TEST(Waves, AWaveThatWaitsForSilentRanksEndsWithItsJob) {
  for (const bool deadline : {true, false})
    for (const Phase phase : {Phase::kResuming, Phase::kRollingBack}) {
      World w({.ranks = 3, .slow = 3, .fast = 2});
      ASSERT_TRUE(w.run_until(JobPhase::kRunning));
      w.migrate_by_hand("m", 0, "fast");
      ASSERT_TRUE(w.run_until(phase == Phase::kResuming ? phase : Phase::kRestoring)) << w.trace;
      w.silence_all(100 * kMinute);
      ASSERT_TRUE(w.run_until(phase)) << w.trace;
      pass(w, kMinute);
      EXPECT_THAT(w.migration("m").status.message, HasSubstr("not every rank has continued after"));
      EXPECT_EQ(events_of(w, "WaveDelayed"), 1);
      EXPECT_THAT(message_of(w, kWaveDelayed), HasSubstr("rank 0 ("));
      if (deadline)
        w.job.spec.run_policy.active_deadline_seconds = 60;
      else
        w.job.spec.run_policy.suspend = true;
      ASSERT_TRUE(w.run_until(deadline ? JobPhase::kFailed : JobPhase::kSuspended, kMinute)) << w.trace;
      pass(w, 2);
      EXPECT_EQ(w.job.status.reason, deadline ? "DeadlineExceeded" : "Suspended");
      EXPECT_EQ(w.migration("m").status.phase, Phase::kFailed);
      EXPECT_EQ(w.job.status.attempt, 0u);
      EXPECT_EQ(w.job.status.migrations.active, 0u);
    }
}

// The target dies after the commit, while its source still exists.
TEST(Waves, ATargetThatDiesEarlyReturnsTheRankToItsSource) {
  for (const bool with_operator : {false, true}) {
    World w({.ranks = 3, .slow = 3, .fast = 2});
    ASSERT_TRUE(w.run_until(JobPhase::kRunning));
    w.migrate_by_hand("m", 0, "fast");
    if (with_operator) w.die_after_stores = 100;
    ASSERT_TRUE(w.run_until(Phase::kResuming)) << w.trace;
    w.die_after_stores = -1;
    if (with_operator) w.restart_operator(kMinute);
    w.lose_pod("job-r0-g1");
    ASSERT_TRUE(w.run_until([&] { return crds::is_finished(w.migration("m").status.phase); })) << w.trace;
    EXPECT_EQ(w.migration("m").status.phase, Phase::kRolledBack) << w.trace;
    EXPECT_EQ(w.migration("m").status.reason, "TargetLost");
    EXPECT_EQ(w.job.status.ranks.at(0).pod, "job-r0-g0");
    EXPECT_EQ(w.job.status.ranks.at(0).set, "slow");
    EXPECT_EQ(w.job.status.ranks.at(0).node, "slow-0");
    EXPECT_EQ(w.job.status.epoch->epoch, 3u);
    expect_goes_on(w);
    EXPECT_EQ(w.job.status.migrations.rolled_back, 1u);
    w.migrate_by_hand("again", 0, "fast");
    ASSERT_TRUE(w.run_until([&] { return crds::is_finished(w.migration("again").status.phase); })) << w.trace;
    EXPECT_EQ(w.migration("again").status.phase, Phase::kSucceeded);
    expect_goes_on(w);
  }
}

TEST(Waves, AWaveOfAnotherJobIsRefusedByItsField) {
  for (const auto& [field, value, text] :
       {std::tuple{"/moves/0/rank", nlohmann::json(9), "status.waveState.moves[0].rank: 9, the job has 3 ranks"},
        {"/moves/0/targetSet", nlohmann::json(9), "status.waveState.moves[0].targetSet: 9, the epoch has 2 Sets"},
        {"/moves/0/sourcePod", nlohmann::json("job-r7-g7"),
         "rank 0 is in job-r7-g7, but status.epoch has it in job-r0-g0"},
        {"/baseEpoch", nlohmann::json(0), "a wave from epoch 0 to 2 is Pausing while status.epoch is 1"}}) {
    World w({.ranks = 3, .slow = 3, .fast = 2});
    w.never_migratable = true;
    ASSERT_TRUE(w.run_until(JobPhase::kRunning));
    w.migrate_by_hand("m", 0, "fast");
    ASSERT_TRUE(w.run_until(Phase::kPausing)) << w.trace;
    w.job.status.wave_state[nlohmann::json::json_pointer(field)] = value;
    ASSERT_TRUE(w.run_until(JobPhase::kFailed)) << w.trace;
    EXPECT_EQ(w.job.status.reason, "Internal");
    EXPECT_THAT(w.job.status.message, HasSubstr(text));
  }
}

}  // namespace
}  // namespace bsp::reconcile::sim
