// Pods whose objects go before anybody has said that their programs have ended, as by kubectl delete pod --force. The simulated
// cluster counts copies of each rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crds/fencing.h"
#include "operator/reconcile/kernel/pods/lost_pods.h"
#include "operator/reconcile/kernel/status.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using crds::JobPhase;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

// A kubelet gives containers 30 s.
constexpr int kGraceTicks = 150;

std::string how(const sim::World& w) { return w.violation + "\n" + w.trace; }

TEST(VanishedPod, OfARankThatRunsOnIsWaitedForBeforeTheNextAttempt) {
  for (const bool leader_changes : {false, true}) {
    sim::World w({.ranks = 2});
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << how(w);
    w.vanish("job-r1-g0", kGraceTicks);
    ASSERT_TRUE(w.run_until(JobPhase::kRestarting)) << how(w);
    ASSERT_EQ(w.job.status.vanished.size(), 1u);
    const crds::VanishedPod& stored = w.job.status.vanished[0];
    EXPECT_EQ(stored.pod, "job-r1-g0");
    EXPECT_EQ(stored.node, w.job.status.ranks[1].node);
    EXPECT_FALSE(stored.uid.empty());
    EXPECT_EQ(stored.grace_seconds, 30u);
    if (leader_changes) w.restart_operator();
    ASSERT_TRUE(
        w.run_until([&] { return w.job.status.attempt == 1 && w.job.status.phase == JobPhase::kRunning; }, 1000))
        << how(w);
    EXPECT_THAT(w.job.status.restarts.at(0).message, HasSubstr("pod job-r1-g0 of rank 1 is gone"));
    EXPECT_EQ(w.job.status.vanished.size(), 0u);
  }
}

// As every pod that a scheduler places.
TEST(VanishedPod, FirstSeenWithoutANodeIsWaitedForAllTheSame) {
  for (const bool placed : {true, false}) {
    VanishedPods vanished;
    const auto nobody_exited = [](const std::string&) { return false; };
    std::map<std::string, PodFacts> pods;
    pods["pod"].uid = "uid";
    pods["pod"].apps.resize(1);
    vanished.add({}, nobody_exited, {}, pods);
    if (placed) pods["pod"].node = "slow-0";
    vanished.add({}, nobody_exited, {}, pods);
    pods.clear();
    vanished.add({}, nobody_exited, {}, pods);
    EXPECT_EQ(pods.contains("pod"), placed);
  }
}

// Its Node is shown as ready all the time: the kubelet hangs for 39 s, asks the program to end, and gives it 30 s.
TEST(VanishedPod, OfAKubeletThatHangsIsWaitedForAllTheSame) {
  sim::World w({.ranks = 2});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << how(w);
  w.vanish("job-r1-g0", kGraceTicks + 39 * 5);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.attempt == 1 && w.job.status.phase == JobPhase::kRunning; }, 1000))
      << how(w);
}

TEST(VanishedPod, IsMissedByALeaderThatNeverSawIt) {
  for (const JobPhase phase : {JobPhase::kRunning, JobPhase::kRestarting}) {
    sim::World w({.ranks = 2});
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << how(w);
    if (phase == JobPhase::kRestarting) {
      w.end_program(0, 3, 0);
      ASSERT_TRUE(w.run_until(phase)) << how(w);
    }
    w.restart_operator(20);
    w.vanish("job-r1-g0", kGraceTicks);
    ASSERT_TRUE(
        w.run_until([&] { return w.job.status.attempt == 1 && w.job.status.phase == JobPhase::kRunning; }, 1000))
        << how(w);
  }
}

TEST(VanishedPod, OfAWaveIsWaitedForInEachPhase) {
  for (const bool target : {false, true})
    for (const migrate::Phase phase :
         {migrate::Phase::kPreparing, migrate::Phase::kPausing, migrate::Phase::kCheckpointing,
          migrate::Phase::kRestoring, migrate::Phase::kResuming}) {
      sim::World w({.ranks = 2, .slow = 2, .fast = 2});
      ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << how(w);
      w.migrate_by_hand("by-hand", 0, "fast");
      ASSERT_TRUE(w.run_until(phase)) << how(w);
      w.vanish(target ? "job-r0-g1" : "job-r0-g0", kGraceTicks);
      w.run_until([&] { return !w.violation.empty(); }, 1000);
      EXPECT_EQ(w.violation, "") << crds::to_string(phase) << (target ? " target" : " source") << '\n' << w.trace;
      EXPECT_EQ(w.job.status.phase, JobPhase::kRunning) << w.trace;
    }
}

TEST(VanishedPod, HoldsUpNeitherADeletionNorAnEndedProgram) {
  sim::World w({.ranks = 2});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << how(w);
  w.vanish("job-r1-g0", kGraceTicks);
  ASSERT_TRUE(w.run_until(JobPhase::kRestarting)) << how(w);
  w.remove_job();
  Observed o = w.observe();
  o.pods.erase("job-r0-g0");
  EXPECT_TRUE(reconcile_job(o, unadvised(o), w.limits, w.job_limits).work().remove_finalizer);
}

// --- What counts as an end ---------------------------------------------------------------------------------------------
struct Vanished : testing::Test {
  static PodFacts facts(const std::string& node = "a") {
    PodFacts pod;
    pod.uid = "u";
    pod.node = node;
    pod.grace_seconds = 10;
    return pod;
  }
  // After an observation of `pods`.
  std::map<std::string, PodFacts> after(std::map<std::string, PodFacts> pods, Duration at = {}) {
    vanished.add(status, [&](const std::string& pod) { return exited.contains(pod); }, start + at, pods);
    vanished.settle(pods, start + at);
    return pods;
  }
  VanishedPods vanished;
  crds::BspJobStatus status;
  std::set<std::string> exited;
  SteadyTime start{1h};
};

TEST_F(Vanished, IsShownAsOneThatIsBeingDeletedUntilItsGracePeriodIsLongOver) {
  EXPECT_FALSE(after({{"p", facts()}}).at("p").vanished);
  const PodFacts missed = after({}).at("p");
  EXPECT_TRUE(missed.vanished && missed.deleting && !missed.grace_over);
  EXPECT_EQ(missed.node, "a");
  const Duration waits = 10s + VanishedPods::kKubeletHangs + fencing::kMargin;
  EXPECT_FALSE(after({}, waits).at("p").grace_over);
  EXPECT_TRUE(after({}, waits + 1s).at("p").grace_over);
  std::map<std::string, PodFacts> ended = {{"p", facts()}};
  ended.at("p").vanished = ended.at("p").abandoned = true;
  vanished.settle(ended, start);
  EXPECT_TRUE(after({}).empty()) << "once it has ended it is missed no more";
  status.vanished = {{"p", "u", "a", 10}};
  EXPECT_TRUE(after({}).empty()) << "though it is still stored";
}

// Its kubelet asks the program to end only when it is back.
TEST_F(Vanished, IsWaitedForAnewWhenItsNodeAnswersAgain) {
  after({{"p", facts()}});
  auto silent = after({}, 1s);
  silent.at("p").lost = true;
  vanished.settle(silent, start + 10min);
  const Duration waits = 10s + VanishedPods::kKubeletHangs + fencing::kMargin;
  EXPECT_FALSE(after({}, 10min + waits).at("p").grace_over);
  EXPECT_TRUE(after({}, 10min + waits + 1s).at("p").grace_over);
}

TEST_F(Vanished, IsNoneWhoseEndSomebodyHasSaid) {
  PodFacts pod = facts();
  pod.apps[0].ended = true;
  after({{"terminated", pod}, {"exited", facts()}, {"never-placed", facts("")}});
  exited.insert("exited");
  EXPECT_TRUE(after({}).empty());
}

TEST_F(Vanished, EndsWhenItsSidecarSaysSo) {
  after({{"p", facts()}});
  EXPECT_TRUE(after({}).contains("p"));
  exited.insert("p");
  EXPECT_TRUE(after({}).empty());
  exited.clear();
  EXPECT_TRUE(after({}).empty());
}

TEST_F(Vanished, IsAnotherThanTheNextOfItsName) {
  after({{"p", facts()}});
  PodFacts next = facts();
  next.uid = "another";
  EXPECT_FALSE(after({{"p", next}}).at("p").vanished);
}

TEST_F(Vanished, AreStoredUpToALimit) {
  std::map<std::string, PodFacts> pods;
  for (int i = 0; i < 3000; ++i) {
    PodFacts& pod = pods[std::to_string(i)] = facts();
    pod.vanished = true;
    pod.abandoned = i < 1000;
  }
  EXPECT_EQ(vanished_in(pods).size(), crds::kMostVanished);
  pods.clear();
  pods["seen"] = facts();
  EXPECT_EQ(vanished_in(pods).size(), 0u);
}

}  // namespace
}  // namespace bsp::reconcile
