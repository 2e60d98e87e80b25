// Attempts that fail: why, whether another one follows, and what the status says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <format>

#include "operator/reconcile/kernel/status.h"
#include "tests/unit/reconcile/expectations.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

// --- Failures and restarts -------------------------------------------------------------------------------------
struct Fall {
  const char* name;
  void (*happens)(World&);
  const char* reason;
  const char* message;
  bool final;  // a second attempt would fail alike
};
void PrintTo(const Fall& fall, std::ostream* out) { *out << fall.name; }

// As its kubelet shows it: with the container that ended with it, or before.
void end_pod_with_its_program(World& w, const char* reason, const char* message, bool reports, int code = 0) {
  w.end_program(1, code, code == 0 ? SIGKILL : 0, reports);
  const nlohmann::json ended = {{"exitCode", code == 0 ? 128 + SIGKILL : code}, {"reason", "Error"}};
  w.find("job-r1-g0")->evicted = {{"reason", reason},
                                  {"message", message},
                                  {"containerStatuses", {{{"name", "app"}, {"state", {{"terminated", ended}}}}}}};
}

void abort_program(World& w, bool reports, std::uint32_t rank = 1) {
  w.find(std::format("job-r{}-g0", rank))->status.exit_message = "bsp: rank 1: the program called MPI_Abort(3)";
  w.end_program(rank, 3, 0, reports);
}

const Fall kFalls[] = {
    {"Exit", [](World& w) { w.end_program(1, 3, 0); }, "RankExited", "rank 1 exited with code 3", false},
    {"ExitReportedByTheNodeOnly", [](World& w) { w.end_program(1, 3, 0, false); }, "RankExited",
     "rank 1 exited with code 3", false},
    {"Signal", [](World& w) { w.end_program(1, 0, 11); }, "RankKilled", "rank 1 was ended by SIGSEGV", false},
    {"ExitAfterAllHadFinalized",
     [](World& w) {
       for (auto& [name, pod] : w.pods) pod.status.mpi_finalized = true;
       w.end_program(1, 3, 0);
     },
     "RankExited", "rank 1 exited with code 3; every rank had passed MPI_Finalize, so the job is not restarted", true},
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
    {"Abort", [](World& w) { abort_program(w, true); }, "RankExited",
     "rank 1 exited with code 3, since the program called MPI_Abort; so the job is not restarted", true},
    {"AbortReportedByTheNodeOnly", [](World& w) { abort_program(w, false); }, "RankExited",
     "rank 1 exited with code 3, since the program called MPI_Abort; so the job is not restarted", true},
    {"AbortAfterAnotherRanksPodWasLost",
     [](World& w) {
       abort_program(w, true, 0);
       w.evict("job-r1-g0");
     },
     "PodLost", "the node ended pod job-r1-g0 of rank 1", false},
    {"Kill", [](World& w) { w.end_program(1, 0, 9); }, "RankKilled",
     "rank 1 was ended by SIGKILL (killed from outside, or out of memory)", false},
    {"SignalReportedByTheNodeOnly", [](World& w) { w.end_program(1, 0, 9, false); }, "RankKilled",
     "rank 1 was ended by SIGKILL", false},
    {"PodLost", [](World& w) { w.lose_pod("job-r1-g0"); }, "PodLost", "pod job-r1-g0 of rank 1 is gone", false},
    {"PodDeleted", [](World& w) { w.delete_pod("job-r1-g0"); }, "PodLost", "pod job-r1-g0 of rank 1 is being deleted",
     false},
    {"Evicted", [](World& w) { w.evict("job-r1-g0"); }, "PodLost",
     "the node ended pod job-r1-g0 of rank 1: the node was low on memory", false},
    {"EvictedWithItsProgram",
     [](World& w) { end_pod_with_its_program(w, "Evicted", "the node was low on memory", true); }, "PodLost",
     "the node ended pod job-r1-g0 of rank 1: the node was low on memory; it was on node slow-1", false},
    {"EvictedWithItsProgramUnheard",
     [](World& w) { end_pod_with_its_program(w, "Evicted", "the node was low on memory", false); }, "PodLost",
     "the node ended pod job-r1-g0 of rank 1: the node was low on memory", false},
    {"PodsDeadline",
     [](World& w) { end_pod_with_its_program(w, "DeadlineExceeded", "Pod was active on the node longer", true); },
     "DeadlineExceeded", "spec.template.spec.activeDeadlineSeconds has passed", true},
    {"ExitOfAPodThatIsThenEvicted",
     [](World& w) { end_pod_with_its_program(w, "Evicted", "the node was low on memory", true, 3); }, "RankExited",
     "rank 1 exited with code 3", false},
    {"Unheard", [](World& w) { w.cut_off("job-r1-g0", 10'000); }, "SidecarLost",
     "the sidecar of rank 1 (job-r1-g0) does not answer the operator and was not heard by rank 0 for 60 s", false},
    {"UnheardOnANodeThatIsNotReady",
     [](World& w) {
       w.cut_off("job-r1-g0", 10'000);
       w.node_troubles["slow-1"] = "is not ready";
     },
     "SidecarLost",
     "(job-r1-g0) does not answer the operator and was not heard by rank 0 for 10 s; it was on node slow-1, which is "
     "not ready",
     false},
    {"UnheardByANewOperator",
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

class JobFailure : public testing::TestWithParam<Fall> {};

TEST_P(JobFailure, RestartsOrFailsAndSaysWhy) {
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
  EXPECT_EQ(w.shown_logs_of.pod, "job-r1-g0");
  EXPECT_TRUE(w.has_event(fall.reason));
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
INSTANTIATE_TEST_SUITE_P(Of, JobFailure, testing::ValuesIn(kFalls), [](const auto& p) { return p.param.name; });

TEST(JobLife, ReadsTheLastLinesOnlyAfterTheContainerHasEnded) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.end_program(1, 3, 0);
  ASSERT_TRUE(w.run_until([&] { return !w.shown_logs_of.pod.empty(); })) << w.trace;
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

TEST(JobLife, ALostRankIsReportedWithItsNodeAndTheNodesState) {
  for (const auto& [trouble, text] : {std::pair{"", "; it was on node slow-1"},
                                      {"is not ready", "; it was on node slow-1, which is not ready"},
                                      {"is gone", "; it was on node slow-1, which is gone"}}) {
    World w;
    ASSERT_TRUE(w.run_until(JobPhase::kRunning));
    if (*trouble) w.node_troubles["slow-1"] = trouble;
    w.lose_pod("job-r1-g0");
    ASSERT_TRUE(w.run_until([&] { return !w.job.status.restarts.empty(); })) << w.trace;
    EXPECT_EQ(w.job.status.restarts[0].message, std::string("pod job-r1-g0 of rank 1 is gone") + text);
  }
}

TEST(JobLife, AShortSilenceOfASidecarIsTolerated) {
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

TEST(JobLife, TheNextAttemptWaitsUntilThePreviousPodsAreGone) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.end_program(0, 1, 0);
  ASSERT_TRUE(w.run_until(JobPhase::kRestarting));
  w.pods.at("job-r1-g0").gone_at = 1 << 30;  // its node does not answer, so it may still run there
  for (int i = 0; i < 300; ++i) w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kRestarting);
  EXPECT_EQ(w.created.size(), 2u);
  w.lose_pod("job-r1-g0");
  EXPECT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
}

TEST(JobLife, TheFirstRankToFailIsTheCause) {
  World w({.ranks = 3});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.restart_operator(5);
  w.end_program(2, 5, 0);
  Observed o = w.observe();
  o.sidecars[Seat{"job-r2-g0"}].phase_since = w.steady - 2s;
  o.sidecars[Seat{"job-r1-g0"}].status->phase = wire::RankPhase::kExited;
  o.sidecars[Seat{"job-r1-g0"}].status->exit_signal = 6;
  o.sidecars[Seat{"job-r1-g0"}].phase_since = w.steady - 1s;
  const auto failure = find_failure(o, w.job_limits);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 2u);
  EXPECT_EQ(failure->seat, Seat{"job-r2-g0"});
}

// The node kills it with its pod, of which bsp-init knows nothing.
TEST(JobLife, WhyTheNodeEndedAPodCountsUnlessItsProgramEndedByItself) {
  struct {
    int code, signal;
    const char* message;
    const char* reason;
  } const ends[] = {{-1, SIGKILL, "killed by SIGKILL", "PodLost"},
                    {-1, SIGTERM, "killed by SIGTERM", "PodLost"},
                    {-1, SIGKILL, "killed by SIGKILL: it ran out of memory", "RankKilled"},
                    {-1, SIGSEGV, "killed by SIGSEGV", "RankKilled"},
                    {3, 0, "", "RankExited"}};
  for (const auto& end : ends) {
    World w;
    ASSERT_TRUE(w.run_until(JobPhase::kRunning));
    Observed o = w.observe();
    AppFacts& pod = o.pods.at("job-r1-g0").apps[0];
    pod.ended = pod.pod_ended = true;
    pod.exit_code = end.signal ? 128 + end.signal : end.code;
    pod.reason = "Evicted";
    wire::RankStatus& status = *o.sidecars.at(Seat{"job-r1-g0"}).status;
    status.phase = wire::RankPhase::kExited;
    status.exit_code = end.code;
    status.exit_signal = end.signal;
    status.exit_message = end.message;
    const auto failure = find_failure(o, w.job_limits);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->reason, end.reason) << end.code << " " << end.message;
  }
}

TEST(JobLife, AProgramThatNeverCallsMpiInitIsNoMpiProgram) {
  for (const bool sidecar_tells : {true, false}) {
    World w;
    ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 2; }));
    w.conflicts = 5;  // it ends before the first epoch
    ASSERT_TRUE(w.run_until([&] { return w.pod_of(0)->process == Process::kStarting; }));
    w.end_program(0, 0, 0, sidecar_tells);
    ASSERT_TRUE(w.run_until(JobPhase::kFailed)) << w.trace;
    EXPECT_EQ(w.job.status.reason, "NotMpi");
    EXPECT_THAT(w.job.status.message, HasSubstr("rank 0 ended without calling MPI_Init"));
    expect_quiet(w);
  }
}

// The operator was away while the program called MPI_Init, computed and ended with its sidecar.
TEST(JobLife, WhatASidecarSaidBeforeTheEndIsNoEvidence) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  Observed o = w.observe();
  wire::RankStatus& status = *o.sidecars.at(Seat{"job-r1-g0"}).status;
  status.phase = wire::RankPhase::kStarting;
  status.mpi_initialized = false;
  o.pods.at("job-r1-g0").apps[0].ended = true;
  EXPECT_FALSE(find_failure(o, w.job_limits));
  status.phase = wire::RankPhase::kExited;
  status.exit_code = 0;
  const auto failure = find_failure(o, w.job_limits);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->reason, "NotMpi");
}

TEST(JobLife, WhatCannotStartIsNotRetried) {
  for (const auto& [reason, reported] :
       {std::pair{"ErrImageNeverPull", "ImageNotFound"}, {"InvalidImageName", "CannotStart"}}) {
    World w;
    ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 2; }));
    w.pod_of(1)->stuck = {{"reason", reason}, {"message", "no such thing"}};
    ASSERT_TRUE(w.run_until(JobPhase::kFailed)) << w.trace;
    EXPECT_EQ(w.job.status.reason, reported);
    EXPECT_EQ(w.job.status.message, "pod job-r1-g0: no such thing");
    expect_quiet(w);
  }
}

// A Secret that isn't there yet, a node that starts too many containers at once.
TEST(JobLife, WhatMayPassIsWaitedFor) {
  for (const auto& [reason, message] : {std::pair{"CreateContainerConfigError", "secret \"s\" not found"},
                                        {"CreateContainerError", "context deadline exceeded"},
                                        {"RunContainerError", "context deadline exceeded"}}) {
    World w;
    ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 2; }));
    w.pod_of(1)->stuck = {{"reason", reason}, {"message", message}};
    const auto delay = [&] { return crds::find_condition(w.job.status.conditions, kStartDelayed); };
    ASSERT_TRUE(w.run_until([&] { return delay() != nullptr; })) << w.trace;
    EXPECT_EQ(delay()->message,
              with_remedy(kStartDelayed, std::format("pod job-r1-g0: container app waits: {}: {}", reason, message)));
    EXPECT_EQ(w.job.status.phase, JobPhase::kStarting);
    w.pod_of(1)->stuck = nullptr;
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
    EXPECT_EQ(delay(), nullptr);
    EXPECT_EQ(w.job.status.attempt, 0u);
  }
}

// The kubelet creates a sidecar that has ended again, and may take several attempts.
TEST(JobLife, ASidecarThatIsCreatedAgainEndsNoRank) {
  for (const char* reason : {"CreateContainerError", "ErrImagePull", "ErrImageNeverPull"}) {
    World w;
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
    w.pod_of(1)->again = {{"reason", reason}, {"message", "name is reserved"}};
    w.silence("job-r1-g0", 15);
    for (int i = 0; i < 15; ++i) w.tick();
    ASSERT_EQ(w.job.status.phase, JobPhase::kRunning) << reason << "\n" << w.trace;
    w.pod_of(1)->again = nullptr;
    for (int i = 0; i < 100; ++i) w.tick();
    EXPECT_EQ(w.job.status.phase, JobPhase::kRunning);
    EXPECT_EQ(w.job.status.attempt, 0u);
    EXPECT_EQ(w.unrest(), "");
  }
}

TEST(JobLife, WhatDoesNotPassInTimeFailsTheJobOnce) {
  World w;
  w.job_limits.start = 20s;
  ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 2; }));
  w.pod_of(1)->stuck = {{"reason", "ErrImagePull"}, {"message", "no such image"}};
  ASSERT_TRUE(w.run_until(JobPhase::kFailed)) << w.trace;
  EXPECT_EQ(w.job.status.reason, "ImageNotFound");
  EXPECT_EQ(w.job.status.message, "pod job-r1-g0: container app waits: ErrImagePull: no such image, for 20 s");
  EXPECT_EQ(w.job.status.restarts.size(), 1u);
  EXPECT_EQ(crds::find_condition(w.job.status.conditions, kStartDelayed), nullptr);
  expect_quiet(w);
}

TEST(JobLife, AContainerThatIsNeverCreatedFailsTheJobOnce) {
  World w;
  w.job_limits.start = 20s;
  ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 2; }));
  w.pod_of(1)->stuck = {{"reason", "CreateContainerError"}, {"message", "no command, and the Image names none"}};
  ASSERT_TRUE(w.run_until(JobPhase::kFailed)) << w.trace;
  EXPECT_EQ(w.job.status.reason, "CannotStart") << "its image is there";
  EXPECT_EQ(w.job.status.restarts.size(), 1u);
  expect_quiet(w);
}

TEST(JobLife, ASuspendedJobWaitsForNoContainer) {
  World w;
  ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 2; }));
  w.pod_of(1)->stuck = {{"reason", "ErrImagePull"}, {"message", "no such image"}};
  const auto delay = [&] { return crds::find_condition(w.job.status.conditions, kStartDelayed); };
  ASSERT_TRUE(w.run_until([&] { return delay() != nullptr; })) << w.trace;
  w.job.spec.run_policy.suspend = true;
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended)) << w.trace;
  EXPECT_EQ(delay(), nullptr);
}

TEST(JobLife, RestartsBackOff) {
  World w;
  w.job.spec.run_policy.backoff_limit = 2;
  w.job_limits.restart = 10s;
  std::vector<double> pauses;
  while (pauses.size() < 2) {
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
    w.end_program(0, 3, 0, true);
    ASSERT_TRUE(w.run_until(JobPhase::kRestarting)) << w.trace;
    const SteadyTime failed = w.steady;
    ASSERT_TRUE(w.run_until(JobPhase::kStarting)) << w.trace;
    pauses.push_back(to_seconds(w.steady - failed));
  }
  EXPECT_NEAR(pauses[0], 10, 2);
  EXPECT_NEAR(pauses[1], 20, 2);
}

TEST(JobLife, PodsThatNeverBecomeReadyCostAnAttempt) {
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

}  // namespace
}  // namespace bsp::reconcile::sim
