// Requests that can't be met, or not yet.
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

// Whoever may make them could fill the operator's memory.
TEST(WaveRequests, MoreThanSoManyDoNotWait) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  Observed o = w.observe();
  crds::RankMigration m;
  m.spec.job = "job";
  m.spec.target_set = "fast";
  for (std::size_t i = 0; i < kMostWaiting + 2; ++i) {
    m.metadata.name = std::format("by-hand-{:04}", i);
    o.migrations.push_back(m);
  }
  m.metadata.name = "a-drain's";
  m.metadata.owner_references = owner_reference(o.job);
  o.migrations.push_back(m);
  const auto refused = orphans(nullptr, o);
  ASSERT_THAT(refused, SizeIs(2));
  EXPECT_EQ(refused[0].migration, std::format("by-hand-{:04}", kMostWaiting));
  EXPECT_EQ(refused[1].reason, "TooManyWaiting");
  EXPECT_THAT(refused[1].message, HasSubstr("make it again when some of them have ended"));
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
TEST_P(WrongRequest, IsRefusedWithTheReasonAndChangesNothing) {
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
  EXPECT_TRUE(w.has_event(wrong.reason));
  EXPECT_EQ(w.job.status.phase, JobPhase::kRunning);
  EXPECT_EQ(w.job.status.wave, 0u) << "no number was used";
  expect_goes_on(w);
}
INSTANTIATE_TEST_SUITE_P(By, WrongRequest, testing::ValuesIn(kWrong), [](const auto& p) { return p.param.name; });

TEST(Waves, TheFirstOfTwoRequestsForOneRankCounts) {
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

TEST(Waves, OnlyOneOfTwoRequestsGetsTheLastSlot) {
  World w({.ranks = 2, .slow = 2, .fast = 1});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("a", 0, "fast");
  w.migrate_by_hand("b", 1, "fast");
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
  EXPECT_EQ(w.migration("a").status.phase, Phase::kSucceeded);
  EXPECT_EQ(w.migration("b").status.reason, "NoCapacity");
  expect_goes_on(w);
}

TEST(Waves, ASlotOfAnotherJobIsNotFree) {
  World w;
  for (auto& node : w.nodes)
    if (node.set == "fast") node.taken = 1;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("m", 0, "fast");
  w.tick();
  EXPECT_EQ(w.migration("m").status.reason, "NoCapacity");
}

TEST(Waves, AUserCannotSetTheWaveNumber) {
  World w;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("m", 0, "fast");
  w.migrations["m"].spec.wave = 7;
  w.tick();
  EXPECT_EQ(w.migration("m").status.phase, Phase::kFailed);
  EXPECT_EQ(w.migration("m").status.reason, "NoSuchWave");
  expect_goes_on(w);
}

TEST(Waves, ARequestWaitsForTheJobToRunAndForThePreviousWave) {
  World w;
  w.migrate_by_hand("early", 0, "fast");
  ASSERT_TRUE(w.run_until(JobPhase::kStarting));
  EXPECT_EQ(w.migration("early").status.phase, Phase::kPending);
  ASSERT_TRUE(w.run_until(Phase::kPreparing)) << w.trace;
  w.migrate_by_hand("next", 1, "fast");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.wave == 2; })) << w.trace;
  EXPECT_TRUE(!w.pods.contains("job-r0-g0") || w.pods.at("job-r0-g0").gone_at >= 0) << "it would never be removed\n"
                                                                                    << w.trace;
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
  EXPECT_EQ(w.migration("early").status.wave, 1u);
  EXPECT_EQ(w.migration("early").status.phase, Phase::kSucceeded);
  EXPECT_EQ(w.migration("next").status.wave, 2u);
  EXPECT_EQ(w.migration("next").status.phase, Phase::kSucceeded);
}

TEST(Waves, ARequestBeingDeletedIsIgnored) {
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
  o.sidecars[Seat{"job-r1-g0"}] = o.sidecars[Seat{"job-r0-g0"}];
  o.sidecars[Seat{"job-r0-g0"}].status->phase = wire::RankPhase::kExited;
  o.sidecars[Seat{"job-r0-g0"}].status->exit_code = 0;
  w.migrate_by_hand("m", 1, "fast");
  o.migrations.push_back(w.migration("m"));
  const Step out = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
  ASSERT_THAT(notices_of(out).migrations, SizeIs(1));
  EXPECT_EQ(notices_of(out).migrations[0].status.reason, "ProgramFinished");
  EXPECT_EQ(status_of(out).phase, JobPhase::kRunning);
}

TEST(Waves, RequestsPendingAtTheEndAreRefused) {
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
