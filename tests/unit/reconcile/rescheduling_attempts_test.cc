// What a job's attempt takes over from the one before, and what it knows of its own moves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <memory>

#include "operator/reconcile/kernel/job.h"
#include "operator/reconcile/kernel/rescheduling/advisor.h"
#include "operator/reconcile/kernel/rescheduling/failed_moves.h"
#include "tests/unit/reconcile/rescheduling_fixture.h"

namespace bsp::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class Attempts : public Rescheduling {
 protected:
  Attempts() { o.job.spec.rescheduling.heuristic = crds::Heuristic::kAuto; }
  // The next one begins; its ranks are where those of the last one were.
  void begin_attempt() {
    Observed pending = o;
    pending.job.status.phase = crds::JobPhase::kPending;
    pending.pods.clear();
    pending.sidecars.clear();
    const Step step = reconcile_job(pending, unadvised(pending), {}, {});
    ASSERT_EQ(status_of(step).phase, crds::JobPhase::kStarting) << status_of(step).message;
    o.job.status.rescheduler = status_of(step).rescheduler;
    o.job.status.wave_state = status_of(step).wave_state;
    ++o.job.status.attempt;
  }
  void run_twelve_supersteps() {
    Rescheduler r = rescheduler();
    for (std::uint64_t t = 1; t <= 12; ++t) feed(r, t);
    store(r);
  }
  // The first call that moves ranks; `t`: the superstep after it.
  std::optional<Decided> next_moves(Rescheduler& r, std::uint64_t& t) const {
    std::optional<Decided> decided;
    for (const std::uint64_t last = t + 60; t < last && (!decided || decided->moves.empty()); ++t) decided = feed(r, t);
    return decided;
  }
  // A wave of ranks 0 and 1 to fast, where they turn out to need 3 s instead of 1.
  migrate::Wave make_a_bad_wave(Rescheduler& r, std::uint64_t& t) {
    moved_ns = 3'000'000'000;
    const auto decided = next_moves(r, t);
    check(decided && decided->moves.size() == 2, "both move");
    const migrate::Wave wave = begin(*decided);
    store(r);
    end(wave, migrate::Phase::kSucceeded, t);
    feed(r, t++);
    store(r);
    return wave;
  }
  void expect_taken_back(Rescheduler& r, std::uint64_t& t, const crds::RankPlaces& before) {
    const auto back = next_moves(r, t);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->decision.outcome, crds::kTakingBack) << back->decision.message;
    ASSERT_THAT(back->moves, SizeIs(2));
    for (const MoveRequest& move : back->moves) EXPECT_EQ(move.node, before[move.rank].node) << "rank " << move.rank;
  }
};

// Rank 2 moved at superstep 5,000 of the last attempt, before the job began again.
TEST_F(Attempts, MovesOfAnEarlierOneAreNotTakenBack) {
  Rescheduler r = rescheduler();
  crds::RankMigration earlier;
  earlier.metadata.name = "job-w0-r2";
  earlier.spec.rank = {2};
  earlier.status.phase = migrate::Phase::kSucceeded;
  earlier.status.superstep = {5000};
  earlier.status.source_node = "slow-0";
  o.migrations.push_back(earlier);
  const crds::RankPlaces before = o.job.status.ranks;
  std::uint64_t t = 1;
  make_a_bad_wave(r, t);
  expect_taken_back(r, t, before);
}

// Somebody deletes all RankMigrations that have ended.
TEST_F(Attempts, KnowTheirMovesWithoutRankMigrations) {
  for (const bool restarted : {false, true}) {
    const Observed before = o;
    auto r = std::make_unique<Rescheduler>(rescheduler());
    std::uint64_t t = 1;
    make_a_bad_wave(*r, t);
    o.migrations.clear();
    if (restarted) r = std::make_unique<Rescheduler>(rescheduler());
    expect_taken_back(*r, t, before.job.status.ranks);
    o = before;
  }
}

// Where CPU time is made work by the benchmark: what was learned of a Set's speed is in that unit.
TEST_F(Attempts, KeepTheUnitOfWork) {
  o.job.spec.rescheduling.mode = crds::ReschedulingMode::kAdvise;
  time_and_benchmark();
  for (int attempt = 0; attempt < 5; ++attempt) {
    run_twelve_supersteps();
    EXPECT_NEAR(calibrated("cpu", "slow")->value, 5e8, 1e3) << "attempt " << attempt;
    EXPECT_NEAR(calibrated("cpu", "fast")->value, 2e9, 1e3) << "attempt " << attempt;
    begin_attempt();
  }
  const SchedulerState next = scheduler_state_from_json(o.job.status.rescheduler, 3, 2);
  EXPECT_EQ(next.window.cadence, decide::Cadence{}) << "the rest begins anew";
  EXPECT_EQ(next.wave_seen, 0u);
}

TEST_F(Attempts, KeepWhatARanksInstructionsAreWorth) {
  const auto stored = nlohmann::json::parse(R"([[1, 0.693]])");
  counted_of_rank_1 = 500'000'000;
  o.job.spec.rescheduling.mode = crds::ReschedulingMode::kAdvise;
  o.job.status.rescheduler = {{"rankFactors", stored}};
  for (int attempt = 0; attempt < 3; ++attempt) {
    run_twelve_supersteps();
    begin_attempt();
    EXPECT_EQ(o.job.status.rescheduler["rankFactors"], stored);
  }
}

// No rank runs in fast any more, so nothing measures its speed again.
TEST_F(Attempts, KeepTheSpeedOfASetWithoutRanks) {
  o.job.spec.rescheduling.mode = crds::ReschedulingMode::kAdvise;
  time_and_benchmark();
  for (int attempt = 0; attempt < 5; ++attempt) {
    run_twelve_supersteps();
    EXPECT_NEAR(calibrated("cpu", "fast")->value, 2e9, 1e3) << "attempt " << attempt;
    begin_attempt();
    for (crds::RankPlace& place : o.job.status.ranks) place.set = "slow";
  }
}

// However often a rank moves, what is kept of it is bounded: where it began, and the last nodes.
// A spec that is changed while the job runs.
TEST_F(Rescheduling, FollowsItsSpecAtOnce) {
  Advisor advisor({.calls = {}, .records = false});
  advisor.begin(o.job);
  const auto decide = [&](std::uint64_t superstep) {
    for (std::uint32_t rank = 0; rank < 3; ++rank) advisor.add(report(rank, superstep));
    return advisor.advance(o).call;
  };
  auto& spec = o.job.spec.rescheduling;
  spec.mode = crds::ReschedulingMode::kAdvise;
  std::optional<Decided> call;
  std::uint64_t superstep = 1;
  while (superstep <= 20 && !call) call = decide(superstep++);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->decision.outcome, "Advised");
  EXPECT_TRUE(call->moves.empty());
  spec.mode = crds::ReschedulingMode::kMigrate;
  for (call.reset(); superstep <= 60 && (!call || call->moves.empty()); call = decide(superstep++))
    if (call) advisor.stored();
  ASSERT_TRUE(call);
  EXPECT_EQ(call->moves.size(), 2u);
  // It was decided, but isn't stored yet.
  spec.mode = crds::ReschedulingMode::kOff;
  const auto after = advisor.advance(o).call;
  EXPECT_TRUE(!after || after->moves.empty()) << "nothing moves any more";
}

// A plan made for another objective isn't carried out: Advisor drops it when follow() says that something differs.
TEST_F(Rescheduling, FollowsItsObjectiveAtOnce) {
  Rescheduler r = rescheduler();
  crds::BspJobSpec spec = o.job.spec;
  EXPECT_FALSE(r.follow(spec));
  spec.rescheduling.expected_supersteps = 1000;
  spec.objective.deadline = "2h";
  EXPECT_TRUE(r.follow(spec));
  EXPECT_FALSE(r.follow(spec));
  spec.objective.deadline = "3h";
  EXPECT_TRUE(r.follow(spec)) << "the same type, another deadline";
  spec.objective = {};
  spec.objective.type = crds::ObjectiveType::kPrice;
  EXPECT_TRUE(r.follow(spec));
  spec.objective.max_slowdown = 0.5;
  EXPECT_TRUE(r.follow(spec));
  EXPECT_FALSE(r.follow(spec));
}

// Each attempt would pause the whole job again.
TEST(FailedMoves, HoldARankBackWhereItsCopyCouldNotBeRestored) {
  const auto rolled_back = [](const char* reason, std::string message) {
    Observed o;
    o.now = Time{std::chrono::hours(1)};
    crds::RankMigration m;
    m.spec.rank = {3};
    m.status.phase = crds::MigrationPhase::kRolledBack;
    m.status.reason = reason;
    m.status.message = std::move(message);
    m.status.target_pod = "job-r3-g1";
    m.status.target_set = "fast";
    m.status.completion_time = o.now - std::chrono::minutes(1);
    o.migrations.push_back(m);
    return FailedMoves(o);
  };
  const FailedMoves failed = rolled_back("TransferFailed", "target job-r3-g1 of rank 3: criu: /lib/libm.so differs");
  EXPECT_THAT(failed.held_from(3), ElementsAre("fast"));
  ASSERT_TRUE(failed.of(3, "fast"));
  EXPECT_EQ(text_of(*failed.of(3, "fast"), "fast"),
            "its target in Set fast failed: target job-r3-g1 of rank 3: criu: /lib/libm.so differs");
  EXPECT_THAT(rolled_back("TransferFailed", "target job-r9-g1 of rank 9: criu").held_from(3), testing::IsEmpty())
      << "another rank's";
  EXPECT_THAT(rolled_back("CheckpointFailed", "rank 3: criu").held_from(3), testing::IsEmpty()) << "of its source";
}

TEST(Moves, AreBoundedAndStored) {
  SchedulerState state;
  migrate::Wave wave;
  wave.moves.resize(2);
  wave.moves[1].rank = 7;
  for (std::uint64_t t = 0; t < 100; ++t) {
    wave.gate.superstep = 10 * t;
    wave.moves[0].source_node = std::format("a-{}", t);
    wave.moves[1].source_node = t < 2 ? "b" : "c";
    note_moves(state.moves, wave, 8);
  }
  EXPECT_EQ(state.moves.at(0).last, 990u);
  EXPECT_THAT(state.moves.at(0).left, ElementsAre("a-0", "a-93", "a-94", "a-95", "a-96", "a-97", "a-98", "a-99"));
  EXPECT_EQ(scheduler_state_from_json(to_json(state), 8, 2).moves, state.moves);
  EXPECT_TRUE(scheduler_state_from_json(to_json(state), 7, 2).moves.empty()) << "of another job";
  note_moves(state.moves = {}, wave, 10'000);
  for (const char* node : {"a", "b", "c"}) {
    wave.moves[0].source_node = node;
    note_moves(state.moves, wave, 10'000);
  }
  EXPECT_THAT(state.moves.at(0).left, ElementsAre("a-99", "c"));
}

}  // namespace
}  // namespace bsp::reconcile
