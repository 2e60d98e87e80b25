// Waves from a decision or made by hand, shown in RankMigrations, that end well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>

#include "crds/names.h"
#include "operator/reconcile/kernel/waves.h"
#include "tests/unit/reconcile/expectations.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using migrate::Phase;
using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(Waves, TheEndNamesTheNodesOfBothPods) {
  Observed o;
  o.job.status.epoch.emplace().sets = {"slow", "fast"};
  o.job.status.ranks.resize(1);
  o.job.status.ranks[0].node = "fast-1";  // the commit has placed it, and the source's pod is gone
  migrate::Wave wave;
  wave.phase = Phase::kSucceeded;
  migrate::Move& move = wave.moves.emplace_back();
  move.source_node = "slow-0";
  move.target_set = 1;
  move.target_node = "fast-1";
  wave.pause.total_ms = 232;
  const auto events = wave_events(wave, o);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].message, "Rank 0 moved slow→fast (node slow-0→fast-1) in 232 ms");
}

TEST(Waves, OneThatIsTakenBackWarns) {
  World w({.ranks = 2, .slow = 2, .fast = 2});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.decide({{"", 0, "fast", "fast-1"}});
  w.decided->decision.outcome = crds::kTakingBack;
  w.decided->decision.message = "supersteps are longer than before the last wave";
  ASSERT_TRUE(w.run_until(JobPhase::kMigrating)) << w.trace;
  EXPECT_TRUE(w.has_event("WaveTakenBack"));
  EXPECT_FALSE(w.has_event("Rescheduled"));
}

// --- Ends well -------------------------------------------------------------------------------------------------
TEST(Waves, ADecisionMovesItsRanksInOnePause) {
  World w({.ranks = 3, .slow = 3, .fast = 2});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.decide({{"", 0, "fast", "fast-1"}, {"", 2, "fast", "fast-0"}});
  ASSERT_TRUE(w.run_until(JobPhase::kMigrating)) << w.trace;
  EXPECT_FALSE(w.decided) << "stored, so that it is not decided twice";
  ASSERT_TRUE(w.job.status.last_decision);
  EXPECT_THAT(w.job.status.last_decision->moves, SizeIs(2));
  EXPECT_TRUE(w.has_event("Rescheduled") && w.has_event("Migrating"));
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

TEST(Waves, TheTargetIsCreatedFirstAndTheSourceDeletedLast) {
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

TEST(Waves, RanksAreStoppedFromTheGateToTheNextEpoch) {
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

TEST(Waves, ARestartedSourceReceivesItsTargetAgain) {
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
  EXPECT_FALSE(w.migration("m").status.predicted_gain_seconds) << "nothing was predicted";
}

}  // namespace
}  // namespace bsp::reconcile::sim
