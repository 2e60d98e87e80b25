// Checkpoint sets that a person asks for, and those that can't be made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/kernel/checkpoints/checkpoints.h"
#include "tests/unit/reconcile/expectations.h"
#include "tests/unit/reconcile/sets.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using ::testing::HasSubstr;

void ask(World& w, const std::string& value) {
  w.job.metadata.annotations[std::string(names::kAnnotationCheckpoint)] = value;
}
std::size_t count(const World& w, const std::string& reason) {
  return static_cast<std::size_t>(std::ranges::count(w.events, reason, &Event::reason));
}
void tick(World& w, int ticks) {
  for (int i = 0; i < ticks; ++i) w.tick();
}

TEST(WantedSets, EachNewValueMakesOne) {
  World w({.ranks = 2});
  stores_sets(w, "1h");
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  ask(w, "2026-11-28T21:00:00Z");
  ASSERT_TRUE(has_stored(w, 1)) << w.trace;
  tick(w, 100);
  EXPECT_EQ(w.job.status.checkpoint->ids_used, 1u) << "the same value asks once";
  ask(w, "2026-11-28T21:00:01Z");
  ASSERT_TRUE(has_stored(w, 2)) << w.trace;
  w.restart_operator();
  tick(w, 100);
  EXPECT_EQ(w.job.status.checkpoint->ids_used, 2u);
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST(WantedSets, OneThatFailsIsNotTriedAgain) {
  World w({.ranks = 2});
  stores_sets(w, "1h");
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  for (auto& [name, pod] : w.pods) pod.storage_fails = true;
  ask(w, "now");
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kCheckpointFailed); }, 500)) << w.trace;
  tick(w, 200);
  EXPECT_EQ(w.job.status.checkpoint->ids_used, 1u);
}

TEST(WantedSets, WhileOneIsStoredTheNextWaits) {
  World w({.ranks = 2});
  stores_sets(w, "1h");
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  for (auto& [name, pod] : w.pods) pod.storage_hangs = true;
  ask(w, "one");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.checkpoint && w.job.status.checkpoint->pending; }, 500)) << w.trace;
  ask(w, "two");
  tick(w, 100);
  EXPECT_EQ(w.job.status.checkpoint->ids_used, 1u);
  EXPECT_EQ(w.job.status.checkpoint->asked, "one");
}

TEST(WantedSets, AJobWithoutStorageSaysSoOnce) {
  World w({.ranks = 2});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  ask(w, "now");
  tick(w, 100);
  EXPECT_EQ(count(w, kCheckpointFailed), 1u);
  EXPECT_EQ(w.job.status.wave, 0u);
  expect_goes_on(w);
  // Nor does it get more attempts by that.
  w.job.spec.run_policy.backoff_limit = 1;
  w.end_program(0, 0, 9);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.attempt == 1 && w.job.status.phase == JobPhase::kRunning; }, 2000));
  ask(w, "again");
  tick(w, 10);
  w.end_program(0, 0, 9);
  ASSERT_TRUE(w.run_until(JobPhase::kFailed, 200)) << w.trace;
}

TEST(WantedSets, AnyTextIsAValue) {
  World w({.ranks = 2});
  stores_sets(w, "1h");
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  ask(w, std::string(63, 'a') + "\xc3\xa4" + std::string(100'000, '\n'));
  ASSERT_TRUE(has_stored(w, 1)) << w.trace;
  tick(w, 50);
  EXPECT_EQ(w.job.status.checkpoint->ids_used, 1u);
  EXPECT_EQ(w.job.status.checkpoint->asked.size(), 64u);
}

// Its ranks have nowhere to go, so its pods are evicted after spec.runPolicy.drainTimeoutSeconds.
TEST(WantedSets, OneIsMadeBeforeADrainEvictsPods) {
  World w({.ranks = 4});
  stores_sets(w, "1h");
  w.job.spec.checkpoint.grace = "20s";
  w.job.spec.run_policy.drain_timeout_seconds = 60;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.cordon("slow-0");
  tick(w, 150);  // 30 s
  EXPECT_FALSE(w.job.status.checkpoint->ids_used) << "there is time yet";
  ASSERT_TRUE(w.run_until([&] { return sets_of(w) == 1; }, 100)) << w.trace;
  tick(w, 50);
  EXPECT_EQ(w.job.status.checkpoint->ids_used, 1u);
  w.cordon("slow-0", false);
  tick(w, 300);
  EXPECT_EQ(w.job.status.checkpoint->ids_used, 1u) << "the node stays";
}

// A rank that moves leaves its image behind.
TEST(WantedSets, AMoveThatCanWaitLetsASetBeStored) {
  World w({.ranks = 2});
  stores_sets(w, "1h");
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  for (auto& [name, pod] : w.pods) pod.storage_hangs = true;
  ask(w, "now");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.checkpoint && w.job.status.checkpoint->pending; }, 500)) << w.trace;
  w.migrate_by_hand("m", 0, "fast");
  tick(w, 100);
  EXPECT_TRUE(w.job.status.checkpoint->pending);
  for (auto& [name, pod] : w.pods) pod.storage_hangs = false, pod.save_at = 0;
  ASSERT_TRUE(w.run_until([&] { return w.migration("m").status.phase == migrate::Phase::kSucceeded; }, 500)) << w.trace;
  EXPECT_EQ(sets_of(w), 1u);
  EXPECT_FALSE(w.has_event(kCheckpointFailed));
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST(WantedSets, AMoveWaitsForNoStorageThatHangsAndNoDrainForAny) {
  for (const bool drains : {false, true}) {
    World w({.ranks = 2});
    stores_sets(w, "1h");
    ASSERT_TRUE(w.run_until(JobPhase::kRunning));
    for (auto& [name, pod] : w.pods) pod.storage_hangs = true;
    ask(w, "now");
    ASSERT_TRUE(w.run_until([&] { return w.job.status.checkpoint && w.job.status.checkpoint->pending; }, 500))
        << w.trace;
    const auto began = w.steady;
    const std::string node = w.job.status.ranks[0].node;
    if (drains)
      w.cordon(node);
    else
      w.migrate_by_hand("m", 0, "fast");
    ASSERT_TRUE(w.run_until([&] { return w.job.status.ranks[0].node != node; }, 1000)) << w.trace;
    EXPECT_EQ(w.steady - began < std::chrono::seconds(30), drains);
    EXPECT_TRUE(w.has_event(kCheckpointFailed)) << "its image went with the pod";
    EXPECT_EQ(w.violation, "") << w.trace;
  }
}

TEST(WantedSets, ARankThatCannotBeDumpedIsNamed) {
  World w({.ranks = 3});
  stores_sets(w, "5s");
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.pod_of(1)->criu_fails = true;
  ASSERT_TRUE(w.run_until([&] { return is_true(w, kNotCheckpointable); }, 300)) << w.trace;
  EXPECT_EQ(w.job.status.checkpoint->ids_used, 1u) << "at the first attempt";
  const crds::Condition* c = crds::find_condition(w.job.status.conditions, kNotCheckpointable);
  EXPECT_THAT(c->message, HasSubstr("rank 1: "));
  ASSERT_TRUE(w.run_until([&] { return count(w, kCheckpointFailed) >= 3; }, 2000)) << w.trace;
  EXPECT_EQ(count(w, kNotCheckpointable), 1u) << "each further one is only a set that fails";
  w.pod_of(1)->criu_fails = false;
  ASSERT_TRUE(w.run_until([&] { return sets_of(w) > 0; }, 500)) << w.trace;
  EXPECT_FALSE(is_true(w, kNotCheckpointable));
  EXPECT_EQ(w.job.status.attempt, 0u);
}

}  // namespace
}  // namespace bsp::reconcile::sim
