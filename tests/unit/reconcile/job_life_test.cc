// The drawing in job.h, walked along each of its arrows in a simulated cluster: start, end, restart, suspension,
// deletion, deadlines, and an operator that is killed at every step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <limits>

#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using migrate::Phase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

bool is_true(const World& w, const char* condition) {
  const crds::Condition* c = crds::find_condition(w.job.status.conditions, condition);
  return c && c->status == crds::ConditionStatus::kTrue;
}

// The job is over (or suspended): nothing runs, nothing more is to be done.
void expect_quiet(World& w) {
  for (int i = 0; i < 15; ++i) w.tick();
  EXPECT_EQ(w.violation, "") << w.trace;
  EXPECT_TRUE(w.all_ended()) << w.trace;
  EXPECT_EQ(w.unrest(), "") << w.trace;
}

std::vector<std::string> pods_of(const World& w) {
  std::vector<std::string> names;
  for (const auto& [name, pod] : w.pods) names.push_back(name);
  return names;
}

// --- Start and end -------------------------------------------------------------------------------------------
TEST(JobLife, StartsRunsAndSucceeds) {
  World w({.ranks = 3, .slow = 2, .fast = 2, .supersteps = 20});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_THAT(pods_of(w), ElementsAre("job-r0-g0", "job-r1-g0", "job-r2-g0"));
  EXPECT_EQ(w.pods.at("job-r1-g0").node, "slow-1") << "Contiguous fills the first Set first";
  EXPECT_EQ(w.pods.at("job-r2-g0").node, "fast-0");
  ASSERT_TRUE(w.job.status.epoch);
  EXPECT_EQ(w.job.status.epoch->epoch, 1u);
  EXPECT_EQ(w.job.status.epoch->pmix_namespace, "job-uid-e1");
  EXPECT_THAT(w.job.status.epoch->sets, ElementsAre("slow", "fast"));
  EXPECT_EQ(w.job.status.epoch->members.at(2).set, 1u);
  EXPECT_EQ(w.job.status.epoch->members.at(2).pod_uid, w.pods.at("job-r2-g0").uid);
  EXPECT_TRUE(is_true(w, "Running"));
  EXPECT_FALSE(is_true(w, "Complete"));
  for (int i = 0; i < 5; ++i) w.tick();
  EXPECT_EQ(w.unrest(), "");
  const Time started = w.job.status.start_time;

  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
  EXPECT_EQ(w.job.status.reason, "Completed");
  EXPECT_EQ(w.job.status.superstep.value, 20u);
  EXPECT_EQ(w.job.status.attempt, 0u);
  EXPECT_EQ(w.job.status.start_time, started);
  EXPECT_EQ(w.job.status.completion_time, w.now);
  EXPECT_TRUE(is_true(w, "Complete"));
  EXPECT_FALSE(is_true(w, "Running"));
  EXPECT_TRUE(w.told("Mapped") && w.told("Running") && w.told("Completed"));
  expect_quiet(w);
}

TEST(JobLife, ProgramsOfOneSuperstepAreSeenToEndWell) {
  World w({.supersteps = 0});
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded, 100)) << w.trace;
}

TEST(JobLife, TheEpochIsStoredBeforeAnySidecarHearsOfIt) {
  World w;
  ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 2; }));
  ASSERT_FALSE(w.job.status.epoch);
  for (int i = 0; i < 10; ++i) {
    w.conflicts = 1;  // nothing gets stored
    w.tick();
    ASSERT_FALSE(w.job.status.epoch);
    for (const auto& [name, pod] : w.pods) EXPECT_EQ(pod.status.prepared_epoch, 0u) << name;
  }
  const Step out = w.reconcile();
  EXPECT_TRUE(out.change() && status_of(out).epoch);
}

TEST(JobLife, NoPodIsMadeBeforeItsPlaceIsStored) {
  World w;
  const Step out = w.reconcile();
  EXPECT_TRUE(out.change());
  EXPECT_EQ(status_of(out).phase, JobPhase::kStarting);
}

TEST(JobLife, EpochIsOpenedOnlyWhenAllHavePreparedIt) {
  World w;
  ASSERT_TRUE(w.run_until([&] { return w.job.status.epoch.has_value(); }));
  Observed o = w.observe();
  o.sidecars["job-r0-g0"].status->prepared_epoch = o.sidecars["job-r0-g0"].status->epoch = 0;
  o.sidecars["job-r1-g0"].status->prepared_epoch = 1;
  o.sidecars["job-r1-g0"].status->epoch = 0;
  const Step out = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
  ASSERT_EQ(out.work().actions.size(), 1u);
  EXPECT_EQ(to_string(out.work().actions[0].kind), wire::kPrepareEpoch);
  EXPECT_EQ(out.work().actions[0].pod, "job-r0-g0");
}

TEST(JobLife, WhatDoesNotFitFailsAtOnceAndSaysWhy) {
  World none({.ranks = 5});
  ASSERT_TRUE(none.run_until(JobPhase::kFailed, 5));
  EXPECT_EQ(none.job.status.reason, "NoCapacity");
  EXPECT_THAT(none.job.status.message, HasSubstr("5"));
  expect_quiet(none);

  World unknown;
  unknown.job.spec.sets.names = {"slow", "gpu"};
  ASSERT_TRUE(unknown.run_until(JobPhase::kFailed, 5));
  EXPECT_EQ(unknown.job.status.reason, "NoSuchSet");
  EXPECT_EQ(unknown.job.status.message, "spec.sets.names: no node belongs to Set gpu (label migbsp.io/set)");
}

TEST(JobLife, SetsAreFoundByThemselvesAndTheLastNodeOfOneMayLeave) {
  World w({.ranks = 3, .slow = 1, .fast = 2});
  w.job.spec.sets.names.clear();
  ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 3; }));
  std::erase_if(w.nodes, [](const auto& node) { return node.set == "slow"; });
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_THAT(w.job.status.epoch->sets, ElementsAre("fast", "slow"));
  EXPECT_EQ(w.job.status.epoch->members.at(2).set, 1u);
}

// --- Failures and restarts -------------------------------------------------------------------------------------
struct Fall {
  const char* name;
  void (*happens)(World&);
  const char* reason;
  const char* message;
  bool final;  // no second attempt would do better
};
void PrintTo(const Fall& fall, std::ostream* out) { *out << fall.name; }

const Fall kFalls[] = {
    {"Exit", [](World& w) { w.end_program(1, 3, 0); }, "RankExited", "rank 1 exited with code 3", false},
    {"ExitToldByTheNodeOnly", [](World& w) { w.end_program(1, 3, 0, false); }, "RankExited",
     "rank 1 exited with code 3", false},
    {"Signal", [](World& w) { w.end_program(1, 0, 11); }, "RankKilled", "rank 1 was ended by SIGSEGV", false},
    {"ExitAfterAllHadFinalized",
     [](World& w) {
       for (auto& [name, pod] : w.pods) pod.status.mpi_finalized = true;
       w.end_program(1, 3, 0);
     },
     "RankExited", "rank 1 exited with code 3; every rank had passed MPI_Finalize, so the job is not started again",
     true},
    {"SignalAfterAllHadFinalized",
     [](World& w) {
       for (auto& [name, pod] : w.pods) pod.status.mpi_finalized = true;
       w.end_program(1, 0, 13);
     },
     "RankKilled", "rank 1 was ended by SIGPIPE; every rank had passed MPI_Finalize", true},
    {"SignalAfterTheOthersHadFinalized",
     [](World& w) {
       for (auto& [name, pod] : w.pods) pod.status.mpi_finalized = pod.rank != 1;
       w.end_program(1, 0, 13);
     },
     "RankKilled", "rank 1 was ended by SIGPIPE", false},
    {"Kill", [](World& w) { w.end_program(1, 0, 9); }, "RankKilled",
     "rank 1 was ended by SIGKILL (killed from outside, or out of memory)", false},
    {"SignalToldByTheNodeOnly", [](World& w) { w.end_program(1, 0, 9, false); }, "RankKilled",
     "rank 1 was ended by SIGKILL", false},
    {"PodLost", [](World& w) { w.lose_pod("job-r1-g0"); }, "PodLost", "pod job-r1-g0 of rank 1 is gone", false},
    {"PodDeleted", [](World& w) { w.delete_pod("job-r1-g0"); }, "PodLost", "pod job-r1-g0 of rank 1 is being deleted",
     false},
    {"Evicted", [](World& w) { w.evict("job-r1-g0"); }, "PodLost",
     "the node ended pod job-r1-g0 of rank 1: the node was low on memory", false},
    {"NobodyHearsIt", [](World& w) { w.cut_off("job-r1-g0", 10'000); }, "SidecarLost",
     "the sidecar of rank 1 (job-r1-g0) does not answer the operator and was not heard by rank 0 for 60 s", false},
    {"NobodyHearsItAndItsNodeIsNotReady",
     [](World& w) {
       w.cut_off("job-r1-g0", 10'000);
       w.node_troubles["slow-1"] = "is not ready";
     },
     "SidecarLost",
     "(job-r1-g0) does not answer the operator and was not heard by rank 0 for 10 s; it was on node slow-1, which is "
     "not ready",
     false},
    {"NobodyHearsItAndTheOperatorIsFresh",
     [](World& w) {
       w.cut_off("job-r1-g0", 10'000);
       w.restart_operator();
     },
     "SidecarLost", "was not heard by rank 0 for 60 s", false},
    {"CannotRun",
     [](World& w) {
       w.end_program(1, 127, 0);
       w.find("job-r1-g0")->status.mpi_initialized = false;
       w.find("job-r1-g0")->status.exit_message = "program: not found";
     },
     "CannotRun", "rank 1: program: not found", true},
};

class JobFalls : public testing::TestWithParam<Fall> {};

TEST_P(JobFalls, RestartsOrFailsAndSaysWhy) {
  const Fall& fall = GetParam();
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  for (int i = 0; i < 5; ++i) w.tick();
  fall.happens(w);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.phase != JobPhase::kRunning; })) << w.trace;
  ASSERT_EQ(w.job.status.restarts.size(), 1u);
  const crds::RestartRecord& record = w.job.status.restarts[0];
  EXPECT_EQ(record.reason, fall.reason);
  EXPECT_THAT(record.message, HasSubstr(fall.message));
  EXPECT_EQ(record.attempt, 0u);
  ASSERT_TRUE(record.rank);
  EXPECT_EQ(record.rank->value, 1u);
  EXPECT_EQ(w.shown_logs_of, "job-r1-g0");
  EXPECT_TRUE(w.told(fall.reason));
  if (fall.final) {
    EXPECT_EQ(w.job.status.phase, JobPhase::kFailed);
    EXPECT_TRUE(is_true(w, "Failed"));
    return expect_quiet(w);
  }
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_EQ(w.job.status.attempt, 1u);
  EXPECT_THAT(pods_of(w), ElementsAre("job-r0-g1", "job-r1-g1"));
  EXPECT_EQ(w.job.status.epoch->epoch, 2u) << "an epoch's number is never used twice";
  EXPECT_EQ(w.created.back().attempt, 1u);
}
INSTANTIATE_TEST_SUITE_P(Of, JobFalls, testing::ValuesIn(kFalls), [](const auto& p) { return p.param.name; });

TEST(JobLife, ReadsTheLastLinesOnlyAfterTheContainerHasEnded) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.end_program(1, 3, 0);
  ASSERT_TRUE(w.run_until([&] { return !w.shown_logs_of.empty(); })) << w.trace;
  EXPECT_TRUE(w.shown_logs_complete) << w.trace;
}

TEST(JobLife, FailsARankWhoseNodeNeverReportsTheContainersEnd) {
  World w;
  w.node_reports_ends = false;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.end_program(1, 3, 0);
  ASSERT_TRUE(w.run_until([&] { return !w.job.status.restarts.empty(); })) << w.trace;
  EXPECT_EQ(w.job.status.restarts[0].reason, "RankExited");
  EXPECT_FALSE(w.shown_logs_complete);
}

TEST(JobLife, ALostRankIsToldWithItsNodeAndWhatIsWrongWithThat) {
  for (const auto& [trouble, told] : {std::pair{"", "; it was on node slow-1"},
                                      {"is not ready", "; it was on node slow-1, which is not ready"},
                                      {"is gone", "; it was on node slow-1, which is gone"}}) {
    World w;
    ASSERT_TRUE(w.run_until(JobPhase::kRunning));
    if (*trouble) w.node_troubles["slow-1"] = trouble;
    w.lose_pod("job-r1-g0");
    ASSERT_TRUE(w.run_until([&] { return !w.job.status.restarts.empty(); })) << w.trace;
    EXPECT_EQ(w.job.status.restarts[0].message, std::string("pod job-r1-g0 of rank 1 is gone") + told);
  }
}

TEST(JobLife, AShortSilenceOfASidecarIsForgiven) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.silence("job-r0-g0", 40);  // 8 s
  for (int i = 0; i < 80; ++i) w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kRunning);
  EXPECT_TRUE(w.job.status.restarts.empty());
}

TEST(JobLife, BackoffLimitBoundsTheAttempts) {
  for (const std::uint32_t limit : {0u, 2u}) {
    World w;
    w.job.spec.run_policy.backoff_limit = limit;
    for (std::uint32_t attempt = 0; attempt <= limit; ++attempt) {
      ASSERT_TRUE(w.run_until([&] {
        return w.job.status.phase == JobPhase::kRunning && w.job.status.attempt == attempt;
      })) << w.trace;
      w.end_program(0, 7, 0);
      w.tick();
    }
    ASSERT_TRUE(w.run_until(JobPhase::kFailed)) << w.trace;
    EXPECT_EQ(w.job.status.restarts.size(), limit + 1);
    EXPECT_EQ(w.job.status.message,
              limit == 0 ? "rank 0 exited with code 7" : "rank 0 exited with code 7 (attempt 3 of 3)");
    expect_quiet(w);
  }
}

TEST(JobLife, TheNextAttemptWaitsUntilThePodsOfTheLastAreGone) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.end_program(0, 1, 0);
  ASSERT_TRUE(w.run_until(JobPhase::kRestarting));
  w.pods.at("job-r1-g0").gone_at = 1 << 30;  // its node does not answer: who knows what runs there
  for (int i = 0; i < 300; ++i) w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kRestarting);
  EXPECT_EQ(w.created.size(), 2u);
  w.lose_pod("job-r1-g0");
  EXPECT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
}

TEST(JobLife, TheFirstToFallIsTheCause) {
  World w({.ranks = 3});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.restart_operator(5);
  w.end_program(2, 5, 0);
  Observed o = w.observe();
  o.sidecars["job-r2-g0"].phase_since = w.steady - 2s;
  o.sidecars["job-r1-g0"].status->phase = wire::RankPhase::kExited;
  o.sidecars["job-r1-g0"].status->exit_signal = 6;
  o.sidecars["job-r1-g0"].phase_since = w.steady - 1s;
  const auto failure = find_failure(o, w.job_limits);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 2u);
  EXPECT_EQ(failure->pod, "job-r2-g0");
}

TEST(JobLife, AProgramThatNeverCallsMpiInitIsNoMpiProgram) {
  for (const bool sidecar_tells : {true, false}) {
    World w;
    ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 2; }));
    w.conflicts = 5;  // it ends before the epoch is there
    ASSERT_TRUE(w.run_until([&] { return w.pod_of(0)->process == Process::kStarting; }));
    w.end_program(0, 0, 0, sidecar_tells);
    ASSERT_TRUE(w.run_until(JobPhase::kFailed)) << w.trace;
    EXPECT_EQ(w.job.status.reason, "NotMpi");
    EXPECT_THAT(w.job.status.message, HasSubstr("rank 0 ended without calling MPI_Init"));
    expect_quiet(w);
  }
}

TEST(JobLife, WhatCannotBeStartedIsNotTriedAgain) {
  for (const auto& [reason, told] : {std::pair{"ErrImagePull", "ImageNotFound"},
                                     {"ImagePullBackOff", "ImageNotFound"},
                                     {"CreateContainerError", "CannotStart"}}) {
    World w;
    ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 2; }));
    w.pod_of(1)->stuck = {{"reason", reason}, {"message", "no such thing"}};
    ASSERT_TRUE(w.run_until(JobPhase::kFailed)) << w.trace;
    EXPECT_EQ(w.job.status.reason, told);
    EXPECT_EQ(w.job.status.message, "pod job-r1-g0: no such thing");
    expect_quiet(w);
  }
}

TEST(JobLife, PodsThatNeverGetReadyCostAnAttemptEach) {
  World w;
  w.job.spec.run_policy.backoff_limit = 1;
  w.job_limits.start = 20s;
  w.slow_start = 10'000;
  ASSERT_TRUE(w.run_until(JobPhase::kFailed, 400)) << w.trace;
  EXPECT_EQ(w.job.status.reason, "StartTimeout");
  EXPECT_THAT(w.job.status.message,
              HasSubstr("not every rank's pod was ready after 20 s: job-r0-g1 of rank 0 has no address"));
  EXPECT_EQ(w.job.status.restarts.size(), 2u);
  expect_quiet(w);
}

// --- Deadlines, time to live, pods that stay --------------------------------------------------------------------
TEST(JobLife, TheDeadlineEndsAJobWhateverItDoes) {
  for (const bool starts : {true, false}) {
    World w;
    w.job.spec.run_policy.active_deadline_seconds = 30;
    if (starts) w.slow_start = 10'000;
    ASSERT_TRUE(w.run_until(JobPhase::kFailed, 200)) << w.trace;
    EXPECT_EQ(w.job.status.reason, "DeadlineExceeded");
    EXPECT_GT(w.now - w.job.status.start_time, 30s);
    EXPECT_LT(w.now - w.job.status.start_time, 31s);
    expect_quiet(w);
  }
}

TEST(JobLife, TheDeadlineDoesNotWaitForAGateThatIsPostponed) {
  World w;
  w.job.spec.run_policy.active_deadline_seconds = 30;
  w.never_migratable = true;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until(Phase::kPausing));
  ASSERT_TRUE(w.run_until(JobPhase::kFailed, 200)) << w.trace;
  EXPECT_EQ(w.job.status.reason, "DeadlineExceeded");
  EXPECT_EQ(w.migration("m").status.phase, Phase::kRolledBack);
  expect_quiet(w);
}

TEST(JobLife, TheTimeToLiveRemovesAFinishedJob) {
  World w({.supersteps = 3});
  w.job.spec.run_policy.ttl_seconds_after_finished = 60;
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded));
  for (int i = 0; i < 290; ++i) w.tick();
  EXPECT_FALSE(w.removed);
  EXPECT_TRUE(w.run_until([&] { return w.removed; }, 30)) << w.trace;
}

TEST(JobLife, LimitsOfMoreThanATimestampHoldsNeverCome) {
  World w({.supersteps = 3});
  w.job.spec.run_policy.active_deadline_seconds = 99'999'999'999;
  w.job.spec.run_policy.ttl_seconds_after_finished = std::numeric_limits<std::int64_t>::max();
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
  for (int i = 0; i < 20; ++i) w.tick();
  EXPECT_FALSE(w.removed);
}

TEST(JobLife, CleanPodPolicySaysWhichPodsStay) {
  using enum crds::CleanPodPolicy;
  for (const auto policy : {kAll, kRunning, kNone}) {
    World w;
    w.job.spec.run_policy.clean_pod_policy = policy;
    w.job.spec.run_policy.backoff_limit = 0;
    ASSERT_TRUE(w.run_until(JobPhase::kRunning));
    w.end_program(0, 1, 0);
    ASSERT_TRUE(w.run_until(JobPhase::kFailed));
    for (int i = 0; i < 10; ++i) w.tick();
    if (policy == kAll) {
      EXPECT_TRUE(w.pods.empty());
    }
    if (policy == kRunning) {
      EXPECT_THAT(pods_of(w), ElementsAre("job-r0-g0")) << "whose log tells why it failed";
    }
    if (policy == kNone) {
      EXPECT_EQ(w.pods.size(), 2u);
    }
    EXPECT_EQ(w.unrest(), "");
  }
}

TEST(JobLife, APodOfWhichAnotherContainerNeverEndsIsARunningOne) {
  using enum crds::CleanPodPolicy;
  for (const auto policy : {kRunning, kNone}) {
    World w({.supersteps = 3});
    w.job.spec.run_policy.clean_pod_policy = policy;
    ASSERT_TRUE(w.run_until(JobPhase::kStarting));
    ASSERT_TRUE(w.run_until([&] { return w.pods.contains("job-r0-g0"); }));
    w.pods.at("job-r0-g0").helper = true;
    ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << "the program's end is what counts\n" << w.trace;
    for (int i = 0; i < 10; ++i) w.tick();
    EXPECT_THAT(pods_of(w), ElementsAre("job-r0-g0", "job-r1-g0")) << "it may yet end by itself";
    w.steady += std::chrono::seconds(30);
    for (int i = 0; i < 10; ++i) w.tick();
    if (policy == kRunning)
      EXPECT_THAT(pods_of(w), ElementsAre("job-r1-g0"));
    else
      EXPECT_EQ(w.pods.size(), 2u);
    EXPECT_EQ(w.unrest(), "");
  }
}

// --- Suspension, deletion, the operator's death, in each phase ---------------------------------------------------
constexpr Phase kAnyWave[] = {Phase::kPending,      Phase::kPreparing, Phase::kPausing,  Phase::kCheckpointing,
                              Phase::kTransferring, Phase::kRestoring, Phase::kResuming, Phase::kRollingBack};

// A running job, in this phase of a wave that moves rank 0; kPending: no wave.
void bring_to(World& w, Phase phase) {
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  if (phase == Phase::kPending) return;
  w.migrate_by_hand("m", 0, "fast");
  if (phase == Phase::kRollingBack) {
    ASSERT_TRUE(w.run_until(Phase::kCheckpointing)) << w.trace;
    w.lose_pod("job-r0-g1");
  }
  ASSERT_TRUE(w.run_until(phase)) << w.trace;
}

class JobInPhase : public testing::TestWithParam<Phase> {};
INSTANTIATE_TEST_SUITE_P(Wave, JobInPhase, testing::ValuesIn(kAnyWave), [](const auto& p) {
  return p.param == Phase::kPending ? "None" : std::string(crds::to_string(p.param));
});

TEST_P(JobInPhase, SuspendedItRestsAndResumesInNewPods) {
  World w({.supersteps = 60});
  bring_to(w, GetParam());
  w.job.spec.run_policy.suspend = true;
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended)) << w.trace;
  for (int i = 0; i < 10; ++i) w.tick();
  EXPECT_TRUE(w.pods.empty()) << w.trace;
  EXPECT_EQ(w.unrest(), "");
  EXPECT_EQ(w.job.status.attempt, 0u) << "a suspension costs no attempt";
  if (GetParam() != Phase::kPending) {
    const bool committed = GetParam() == Phase::kResuming;
    EXPECT_EQ(w.migration("m").status.phase, committed ? Phase::kSucceeded : Phase::kRolledBack) << w.trace;
    EXPECT_EQ(w.job.status.migrations.active, 0u);
  }
  w.job.spec.run_policy.suspend = false;
  const std::uint64_t used = w.job.status.epochs_used;
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
  EXPECT_GE(w.job.status.epoch->epoch, used);
  expect_quiet(w);
}

TEST_P(JobInPhase, DeletedItLeavesNothing) {
  World w;
  bring_to(w, GetParam());
  w.remove_job();
  ASSERT_TRUE(w.run_until([&] { return w.removed; }, 50)) << w.trace;
  EXPECT_TRUE(w.pods.empty());
}

TEST_P(JobInPhase, AFreshOperatorGoesOn) {
  World w({.supersteps = 60});
  bring_to(w, GetParam());
  w.restart_operator(5);
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
  EXPECT_EQ(w.job.status.attempt, 0u);
  if (GetParam() != Phase::kPending) {
    const bool fell = GetParam() == Phase::kRollingBack;
    EXPECT_EQ(w.migration("m").status.phase, fell ? Phase::kRolledBack : Phase::kSucceeded) << w.trace;
  }
  expect_quiet(w);
}

TEST(JobLife, SuspendedBeforeAndWhileItStarts) {
  World w({.supersteps = 5});
  w.job.spec.run_policy.suspend = true;
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended, 3));
  EXPECT_TRUE(w.created.empty());
  EXPECT_TRUE(is_true(w, "Suspended"));
  w.job.spec.run_policy.suspend = false;
  w.slow_start = 1000;
  ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 2; }));
  w.job.spec.run_policy.suspend = true;
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended, 5)) << w.trace;
  expect_quiet(w);
  EXPECT_TRUE(w.pods.empty());
  w.slow_start = 1;
  w.job.spec.run_policy.suspend = false;
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
}

TEST(JobLife, TheDeadlineCountsFromTheResumption) {
  World w;
  w.job.spec.run_policy.active_deadline_seconds = 30;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.job.spec.run_policy.suspend = true;
  for (int i = 0; i < 300; ++i) w.tick();
  w.job.spec.run_policy.suspend = false;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  for (int i = 0; i < 50; ++i) w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kRunning);
}

TEST(JobLife, DeletedWhileItStartsRestartsOrIsOver) {
  for (const auto phase : {JobPhase::kStarting, JobPhase::kRestarting, JobPhase::kFailed}) {
    World w;
    if (phase == JobPhase::kFailed) w.job.spec.run_policy.backoff_limit = 0;
    if (phase != JobPhase::kStarting) {
      ASSERT_TRUE(w.run_until(JobPhase::kRunning));
      w.end_program(0, 1, 0);
    }
    ASSERT_TRUE(w.run_until(phase));
    w.remove_job();
    ASSERT_TRUE(w.run_until([&] { return w.removed; }, 50)) << w.trace;
  }
}

// Each write of the status is the last thing that one operator does.
TEST(JobLife, AnOperatorThatDiesAfterAnyWriteLosesNothing) {
  int writes = 0;
  for (bool died = true; died; ++writes) {
    World w({.supersteps = 50});
    w.die_after_stores = writes;
    ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > 5; })) << w.trace;
    w.migrate_by_hand("m", 1, "fast");
    ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << writes << "\n" << w.trace;
    EXPECT_EQ(w.job.status.attempt, 0u) << writes << "\n" << w.trace;
    EXPECT_EQ(w.migration("m").status.phase, Phase::kSucceeded) << writes << "\n" << w.trace;
    expect_quiet(w);
    died = w.die_after_stores < 0;
  }
  EXPECT_GT(writes, 12) << "a life with one wave takes more writes than that";
}

TEST(JobLife, WritesThatConflictAreDecidedAgain) {
  World w({.supersteps = 80});
  for (int i = 0; w.job.status.phase != JobPhase::kSucceeded && i < 600; ++i) {
    w.conflicts = i % 3;
    if (i == 40) w.migrate_by_hand("m", 1, "fast");
    w.tick();
    ASSERT_EQ(w.violation, "") << w.trace;
  }
  EXPECT_EQ(w.job.status.phase, JobPhase::kSucceeded) << w.trace;
  EXPECT_EQ(w.migration("m").status.phase, Phase::kSucceeded);
}

}  // namespace
}  // namespace bsp::reconcile::sim
