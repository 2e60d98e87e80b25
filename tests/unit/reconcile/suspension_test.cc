// A job that is suspended makes a checkpoint set before its pods go: in each phase of a set, with a storage that fails or hangs,
// with ranks and operators that are lost meanwhile.
#include "operator/reconcile/kernel/checkpoints/suspension.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>

#include "operator/reconcile/kernel/checkpoints/checkpoints.h"
#include "tests/unit/reconcile/expectations.h"
#include "tests/unit/reconcile/sets.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using migrate::Phase;
using ::testing::HasSubstr;
using ::testing::Not;

// Where a set is when the job is suspended.
enum class SetPhase { kNone, kPausing, kCheckpointing, kResuming, kRollingBack, kStoring, kStored };
constexpr SetPhase kAnySetPhase[] = {SetPhase::kNone,     SetPhase::kPausing,     SetPhase::kCheckpointing,
                                     SetPhase::kResuming, SetPhase::kRollingBack, SetPhase::kStoring,
                                     SetPhase::kStored};
constexpr const char* kNames[] = {"None", "Pausing", "Checkpointing", "Resuming", "RollingBack", "Storing", "Stored"};

void hold(World& w, bool on = true) { w.job.spec.run_policy.suspend = on; }
bool has_pending(const World& w) { return w.job.status.checkpoint && w.job.status.checkpoint->pending; }

// What is written while it hangs is written once it goes on.
void storage_hangs(World& w, bool on) {
  for (auto& [name, pod] : w.pods) {
    pod.storage_hangs = on;
    if (pod.status.save && pod.status.save->phase == wire::SavePhase::kDumped) pod.save_at = on ? -1 : 0;
  }
}

// The storage hangs afterwards where the set is being stored.
void bring_to(World& w, SetPhase phase) {
  ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > 3; })) << w.trace;
  if (phase == SetPhase::kNone) return;
  w.job.spec.checkpoint.interval = "1s";
  const auto reached = [&] {
    switch (phase) {
      case SetPhase::kNone:
        return true;
      case SetPhase::kPausing:
        return w.wave_phase() == Phase::kPausing;
      case SetPhase::kCheckpointing:
        return w.wave_phase() == Phase::kCheckpointing;
      case SetPhase::kResuming:
        return w.wave_phase() == Phase::kResuming;
      case SetPhase::kRollingBack:
        return w.wave_phase() == Phase::kRollingBack;
      case SetPhase::kStoring:
        return has_pending(w);
      case SetPhase::kStored:
        return sets_of(w) > 0;
    }
    return false;
  };
  for (auto& [name, pod] : w.pods) pod.criu_fails = phase == SetPhase::kRollingBack;
  storage_hangs(w, phase == SetPhase::kStoring);
  ASSERT_TRUE(w.run_until(reached, 500)) << w.trace;
  for (auto& [name, pod] : w.pods) pod.criu_fails = false;
  w.job.spec.checkpoint.interval = "1h";
}

class Suspension : public testing::TestWithParam<SetPhase> {};
INSTANTIATE_TEST_SUITE_P(Set, Suspension, testing::ValuesIn(kAnySetPhase),
                         [](const auto& p) { return kNames[static_cast<int>(p.param)]; });

World storing(std::uint64_t supersteps = 1'000'000) {
  World w({.ranks = 3, .slow = 3, .fast = 3, .supersteps = supersteps});
  stores_sets(w, "1h");
  return w;
}

TEST_P(Suspension, ALastSetIsStoredAndGoneOnFrom) {
  World w = storing();
  bring_to(w, GetParam());
  const std::uint64_t before = w.job.status.superstep.value;
  const std::uint64_t used = w.job.status.epochs_used;
  hold(w);
  storage_hangs(w, false);
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended, 400)) << w.trace;
  ASSERT_GT(sets_of(w), 0u) << w.trace;
  EXPECT_TRUE(w.has_event(kSuspending));
  const std::uint64_t id = newest(w).id, superstep = newest(w).superstep.value;
  EXPECT_GE(superstep + 1, before) << "what was computed before the suspension is in the set";
  EXPECT_THAT(w.job.status.message, HasSubstr(std::format("goes on from checkpoint set {}, which was made after "
                                                          "superstep {}",
                                                          id, superstep)));
  EXPECT_EQ(crds::find_condition(w.job.status.conditions, "Suspended")->message, w.job.status.message);
  expect_quiet(w);
  EXPECT_TRUE(w.pods.empty());
  EXPECT_FALSE(w.job.status.checkpoint->suspending);
  EXPECT_EQ(w.job.status.attempt, 0u) << "a suspension costs no attempt";
  hold(w, false);
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kResumedFrom); }, 2000)) << w.trace;
  EXPECT_EQ(w.job.status.checkpoint->restored, id);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > superstep + 3; }, 500)) << w.trace;
  EXPECT_GE(w.job.status.epoch->epoch, used);
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST_P(Suspension, ThatIsTakenBackLeavesThePods) {
  World w = storing();
  bring_to(w, GetParam());
  const auto pods = pods_of(w);
  storage_hangs(w, true);
  hold(w);
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kSuspending); }, 50)) << w.trace;
  for (int i = 0; i < 10; ++i) w.tick();
  hold(w, false);
  storage_hangs(w, false);
  for (int i = 0; i < 30; ++i) w.tick();
  EXPECT_EQ(pods_of(w), pods) << w.trace;
  EXPECT_EQ(w.job.status.attempt, 0u);
  EXPECT_FALSE(w.job.status.checkpoint->suspending);
  expect_goes_on(w);
  // What was left of the first one doesn't count for a second.
  const std::uint64_t before = w.job.status.superstep.value;
  hold(w);
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended, 3000)) << w.trace;
  EXPECT_GE(newest(w).superstep.value + 1, before);
}

TEST_P(Suspension, AHangingStorageHoldsItUpForNoLongerThanTheGrace) {
  World w = storing();
  w.job.spec.checkpoint.grace = "20s";
  bring_to(w, GetParam());
  storage_hangs(w, true);
  hold(w);
  const SteadyTime since = w.steady;
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended, 400)) << w.trace;
  EXPECT_LT(to_seconds(w.steady - since), 30.0) << w.trace;
  expect_quiet(w);
  if (sets_of(w) == 0) {
    EXPECT_THAT(w.job.status.message, HasSubstr("so it starts from its beginning"));
  }
  hold(w, false);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning, 2000)) << w.trace;
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST_P(Suspension, ALostRankDoesNotKeepThePods) {
  World w = storing();
  bring_to(w, GetParam());
  hold(w);
  w.tick();
  storage_hangs(w, false);
  w.end_program(1, 0, 9);
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended, 2000)) << w.trace;
  expect_quiet(w);
  EXPECT_TRUE(w.pods.empty());
  hold(w, false);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning, 2000)) << w.trace;
  expect_goes_on(w);
}

// Each write of the status is the last thing that one operator does.
TEST_P(Suspension, AnOperatorThatDiesAfterAnyWriteLosesNothing) {
  int writes = 0;
  for (bool died = true; died; ++writes) {
    World w = storing();
    bring_to(w, GetParam());
    const std::uint64_t before = w.job.status.superstep.value;
    w.die_after_stores = writes;
    hold(w);
    storage_hangs(w, false);
    ASSERT_TRUE(w.run_until(JobPhase::kSuspended, 2000)) << writes << '\n' << w.trace;
    ASSERT_GT(sets_of(w), 0u) << writes << '\n' << w.trace;
    EXPECT_GE(newest(w).superstep.value + 1, before) << writes << '\n' << w.trace;
    EXPECT_EQ(w.job.status.attempt, 0u);
    died = w.die_after_stores < 0;
    w.die_after_stores = -1;
    expect_quiet(w);
  }
  EXPECT_GT(writes, 3);
}

TEST_P(Suspension, AfterTheDeadlineTheJobFailsAsEver) {
  World w = storing();
  bring_to(w, GetParam());
  storage_hangs(w, true);
  hold(w);
  for (int i = 0; i < 5; ++i) w.tick();
  ASSERT_NE(w.job.status.phase, JobPhase::kSuspended) << w.trace;
  w.job.spec.run_policy.active_deadline_seconds = 1;
  ASSERT_TRUE(w.run_until(JobPhase::kFailed, 500)) << w.trace;
  EXPECT_EQ(w.job.status.reason, "DeadlineExceeded");
}

TEST(Suspensions, WithoutStorageThePodsGoAtOnceAndItSaysWhatIsLost) {
  World w({.ranks = 2});
  ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > 3; })) << w.trace;
  hold(w);
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended, 3)) << w.trace;
  EXPECT_FALSE(w.has_event(kSuspending));
  EXPECT_THAT(w.job.status.message, HasSubstr("spec.runPolicy.suspend is set; it has no spec.checkpoint.storage"));
  EXPECT_THAT(w.job.status.message, HasSubstr("supersteps are lost"));
  const std::string said = w.job.status.message;
  expect_quiet(w);
  EXPECT_EQ(w.job.status.message, said);
}

TEST(Suspensions, WithoutGraceThePodsGoAtOnce) {
  World w = storing();
  w.job.spec.checkpoint.grace = "0s";
  ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > 3; })) << w.trace;
  hold(w);
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended, 3)) << w.trace;
  EXPECT_EQ(w.job.status.checkpoint->ids_used, 0u);
}

TEST(Suspensions, BeforeThereAreRanksNothingIsSaidToBeLost) {
  World w = storing();
  hold(w);
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended, 3));
  EXPECT_EQ(w.job.status.message, "spec.runPolicy.suspend is set");
}

TEST(Suspensions, AStorageThatFailsIsTriedTwice) {
  World w = storing();
  ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > 3; })) << w.trace;
  for (auto& [name, pod] : w.pods) pod.storage_fails = true;
  hold(w);
  const SteadyTime since = w.steady;
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended, 600)) << w.trace;
  EXPECT_LT(to_seconds(w.steady - since), 60.0) << "the grace is two minutes";
  EXPECT_EQ(w.job.status.checkpoint->ids_used, kLastTries);
  EXPECT_THAT(w.job.status.message, HasSubstr("is full"));
  EXPECT_THAT(w.job.status.message, HasSubstr("are lost"));
}

TEST(Suspensions, AProgramThatEndsMeanwhileHasSucceeded) {
  World w = storing(20);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > 3; })) << w.trace;
  storage_hangs(w, true);
  hold(w);
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded, 500)) << w.trace;
  expect_quiet(w);
}

TEST(Suspensions, AMoveUnderWayIsRolledBackFirst) {
  World w = storing();
  ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > 3; })) << w.trace;
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until(Phase::kTransferring)) << w.trace;
  hold(w);
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended, 600)) << w.trace;
  EXPECT_EQ(w.migration("m").status.phase, Phase::kRolledBack);
  EXPECT_EQ(sets_of(w), 1u) << w.trace;
  expect_quiet(w);
}

TEST(Suspensions, KueuesEvictionMakesASetToo) {
  World w = storing();
  w.queued = Queued{"team", {}};
  const auto set_condition = [&](const char* type, bool on) {
    auto& all = w.queued->workload["status"]["conditions"];
    if (!all.is_array()) all = nlohmann::json::array();
    std::erase_if(all.get_ref<nlohmann::json::array_t&>(), [&](const auto& c) { return c["type"] == type; });
    all.push_back(
        {{"type", type}, {"status", on ? "True" : "False"}, {"reason", "Preempted"}, {"message", "by another"}});
  };
  ASSERT_TRUE(w.run_until([&] { return !w.queued->workload.is_null(); })) << w.trace;
  const auto admit = [&] {
    w.queued->workload["status"]["admission"] = {{"clusterQueue", "all"}};
    set_condition("QuotaReserved", true);
    set_condition("Admitted", true);
    set_condition("Evicted", false);
  };
  admit();
  ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > 3; })) << w.trace;
  set_condition("Evicted", true);
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended, 400)) << w.trace;
  EXPECT_EQ(sets_of(w), 1u);
  EXPECT_THAT(w.job.status.message, HasSubstr("Kueue evicted the job: by another; it goes on from checkpoint set 1"));
  ASSERT_TRUE(w.run_until([&] { return w.pods.empty(); }));
  for (int i = 0; i < 5; ++i) w.tick();
  EXPECT_THAT(w.job.status.message,
              HasSubstr("waits in LocalQueue team: by another; it goes on from checkpoint set 1"));
  EXPECT_EQ(w.unrest(), "");
  admit();
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kResumedFrom); }, 2000)) << w.trace;
  EXPECT_EQ(w.violation, "") << w.trace;
}

}  // namespace
}  // namespace bsp::reconcile::sim
