// What a wave really gained, and what it teaches the next decision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/kernel/rescheduling/advisor.h"
#include "tests/unit/reconcile/rescheduling_fixture.h"

namespace bsp::reconcile {
namespace {

using migrate::Phase;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST_F(Rescheduling, RealisedGainsCompareBeforeAndAfterTheWave) {
  for (const bool restarted : {false, true}) {
    const Observed before = o;
    auto r = std::make_unique<Rescheduler>(rescheduler());
    const auto decided = feed(*r, 1, 4);
    ASSERT_TRUE(decided);
    const migrate::Wave wave = begin(*decided);
    EXPECT_FALSE(feed(*r, 5, 7)) << "nothing is decided while ranks move";
    store(*r);
    if (restarted) r = std::make_unique<Rescheduler>(rescheduler());
    end(wave, Phase::kSucceeded, 7);
    EXPECT_FALSE(feed(*r, 8)) << "the superstep that the pause cut belongs to neither mapping";
    store(*r);
    if (restarted) r = std::make_unique<Rescheduler>(rescheduler());
    feed(*r, 9, 17);
    EXPECT_THAT(r->realised(o.job.status, false), IsEmpty()) << "too few supersteps to compare";
    feed(*r, 18);
    const auto gains = r->realised(o.job.status, false);
    ASSERT_THAT(gains, SizeIs(2));
    for (const RealisedGain& gain : gains)
      EXPECT_EQ(gain.seconds, 4 * 1.0 - 0.5) << "over the 4 supersteps for which it was predicted; rounded";
    EXPECT_THAT((std::vector{gains[0].migration, gains[1].migration}), UnorderedElementsAre("job-w1-r0", "job-w1-r1"));
    EXPECT_THAT(r->realised(o.job.status, false), IsEmpty()) << "once";
    store(*r);
    ASSERT_TRUE(o.job.status.realised_gain_seconds);
    EXPECT_EQ(o.job.status.realised_gain_seconds, 3.5);
    bool bandwidth = false;
    for (const auto& f : o.job.status.calibration)
      if (f.name == "bandwidth")
        bandwidth = f.source == crds::CalibrationSource::kMeasured && f.value == 1e8 && f.samples == 1;
    EXPECT_TRUE(bandwidth) << "10 MB in 100 ms; of two such transfers one counts";
    o = before;
  }
}

// Two equal jobs; the machine of one is busy with others' work since the wave.
TEST_F(Rescheduling, AGainIsTheWavesAndNotTheMachines) {
  std::vector<double> told;  // of a superstep, in seconds of the machine as it was
  for (const std::uint64_t loaded : {std::uint64_t{~0ull}, std::uint64_t{8}}) {
    const Observed before = o;
    loaded_from = loaded;
    Rescheduler r = rescheduler();
    const auto gains = gains_of_a_wave(r);
    ASSERT_THAT(gains, SizeIs(2));
    ASSERT_TRUE(gains[0].control);
    EXPECT_NEAR(*gains[0].control, loaded == 8 ? 1.5 : 1, 1e-9);
    EXPECT_EQ(gains[0].is_noise, loaded == 8) << "only one rank stayed, and may be slower by itself";
    told.push_back((gains[0].seconds + 0.5) / 4 / *gains[0].control);
    EXPECT_NEAR(told.back(), 1, gains[0].error / 4);
    const std::string event = gain_event(gains, o.migrations).message;
    EXPECT_EQ(event.contains("; ranks that stayed compute 1.50 times as long"), loaded == 8) << event;
    o = before;
  }
  EXPECT_NEAR(told[0], told[1], 0.01);
}

// Ranks that leave a node, or that a person moves, don't go for a gain: the job's is that of decisions.
TEST_F(Rescheduling, TheGainOfAJobIsThatOfDecisions) {
  Rescheduler r = rescheduler();
  auto decided = feed(r, 1, 4);
  ASSERT_TRUE(decided);
  for (MoveRequest& move : decided->moves) move.predicted_gain_seconds = 0;
  const migrate::Wave wave = begin(*decided);
  feed(r, 5, 7);
  end(wave, Phase::kSucceeded, 7);
  feed(r, 8, 18);
  EXPECT_THAT(r.realised(o.job.status, false), SizeIs(2)) << "each move says what has become of its rank";
  store(r);
  EXPECT_FALSE(o.job.status.realised_gain_seconds);
}

// The ranks compute as long as before: all that the wave has brought is its pause.
TEST_F(Rescheduling, WhatCanNotBeToldFromNoiseIsNoGain) {
  moved_ns = 2'000'000'000;
  waits = true;
  Rescheduler r = rescheduler();
  const auto gains = gains_of_a_wave(r);
  ASSERT_THAT(gains, SizeIs(2));
  EXPECT_TRUE(gains[0].is_noise);
  EXPECT_GT(gains[0].error, 0);
  store(r);
  EXPECT_EQ(o.job.status.realised_gain_seconds, -0.5);
  EXPECT_GT(o.job.status.realised_gain_error_seconds.value_or(0), 0);
  EXPECT_THAT(gain_event(gains, o.migrations).message, HasSubstr("(gain noise, ± "));
}

// A rank of 4 GB goes beside one of 10 MB, at 1 GB/s and with 400 ms besides.
TEST_F(Rescheduling, ALargeRankTeachesNothingOfASmallOne) {
  for (const bool each_known : {true, false}) {
    const Observed before = o;
    Rescheduler r = rescheduler();
    const auto decided = feed(r, 1, 4);
    ASSERT_TRUE(decided);
    migrate::Wave wave = begin(*decided);
    ASSERT_THAT(wave.moves, SizeIs(2));
    feed(r, 5, 7);
    end(wave, Phase::kSucceeded, 7);
    wave = *stored_wave(o.job.status).value();
    wave.bytes = {10'000'000, 4'000'000'000};
    wave.pause = {.total_ms = 4400, .dump_ms = 4000, .transfer_ms = 4000, .restore_ms = 200};
    if (each_known) wave.transfer_ms = {10, 4000};
    o.job.status.wave_state = migrate::to_json(wave);
    feed(r, 8);
    store(r);
    for (const auto& entry : o.job.status.calibration) {
      if (entry.name == "bandwidth") {
        EXPECT_NEAR(entry.value, 1e9, 1);
      }
      if (entry.name == "migrationFixed") {
        EXPECT_NEAR(entry.value, 0.4, 1e-6);
      }
    }
    ASSERT_TRUE(std::ranges::contains(o.job.status.calibration, "migrationFixed", &crds::CalibrationEntry::name));
    o = before;
  }
}

// Auto's budget is a part of the job's time so far.
TEST_F(Rescheduling, SuperstepsOfAWaveCountAsElapsed) {
  Rescheduler r = rescheduler();
  const auto decided = feed(r, 1, 4);
  ASSERT_TRUE(decided);
  const migrate::Wave wave = begin(*decided);
  feed(r, 5, 7);
  end(wave, Phase::kSucceeded, 7);
  feed(r, 8);
  store(r);
  EXPECT_EQ(o.job.status.rescheduler["state"]["elapsed"], 16) << "eight supersteps of 2 s, four of them in the window";
}

TEST_F(Rescheduling, AnEndingJobUsesTheSuperstepsItHas) {
  Rescheduler r = rescheduler();
  const auto decided = feed(r, 1, 4);
  ASSERT_TRUE(decided);
  const migrate::Wave wave = begin(*decided);
  feed(r, 5);
  end(wave, Phase::kSucceeded, 5);
  feed(r, 6, 8);
  EXPECT_THAT(r.realised(o.job.status, false), IsEmpty());
  EXPECT_THAT(r.realised(o.job.status, true), SizeIs(2));
}

TEST_F(Rescheduling, TheNextWaveUsesTheSuperstepsSinceTheLast) {
  o.job.spec.rescheduling.heuristic = crds::Heuristic::kAuto;
  moved_ns = 3'000'000'000;  // so the scheduler takes the wave back
  for (const bool by_hand : {false, true}) {
    const Observed before = o;
    Advisor advisor({});
    advisor.begin(o.job);
    const auto feed = [&](std::uint64_t t) {
      for (std::uint32_t rank = 0; rank < 3; ++rank) advisor.add(report(rank, t));
      return advisor.advance(o);
    };
    const auto next_wave = [&](std::uint64_t t) {
      Advice advice;
      for (const std::uint64_t first = t; (!advice.call || advice.call->moves.empty()) && t < first + 60; ++t) {
        if (advice.call) advisor.stored();
        advice = feed(t);
        EXPECT_TRUE((advice.call && !advice.call->moves.empty()) || advice.gains.empty()) << "too few to compare";
      }
      return std::pair(advice, t);
    };
    const auto [advice, edge] = next_wave(1);
    ASSERT_TRUE(advice.call);
    const migrate::Wave wave = begin(*advice.call);
    advisor.stored();
    end(wave, Phase::kSucceeded, edge);
    for (std::uint64_t t = edge; t < edge + 4; ++t) EXPECT_THAT(feed(t).gains, IsEmpty());
    if (by_hand) {
      o.migrations.emplace_back().metadata.name = "by-hand";
      EXPECT_THAT(feed(edge + 4).gains, SizeIs(wave.moves.size()));
    } else {
      const auto [back, t] = next_wave(edge + 4);
      EXPECT_LT(t, edge + 10);
      EXPECT_THAT(back.gains, SizeIs(wave.moves.size()));
    }
    o = before;
  }
}

TEST_F(Rescheduling, ARolledBackWaveGainsNothingAndRestartsTheWindow) {
  Rescheduler r = rescheduler();
  const auto decided = feed(r, 1, 4);
  ASSERT_TRUE(decided);
  migrate::Wave wave = begin(*decided);
  feed(r, 5);
  wave.rollback_committed = true;
  end(wave, Phase::kRolledBack, 5);
  const std::uint64_t alpha = decided->decision.alpha_next;
  std::optional<Decided> next;
  std::uint64_t t = 6;
  while (!next && t < 100) next = feed(r, t++);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->decision.superstep.value, 7 + alpha - 1) << "from superstep 7 on, which the pause did not touch";
  EXPECT_THAT(r.realised(o.job.status, true), IsEmpty());
}

TEST_F(Rescheduling, AMoveAbandonedForItsSizeGivesTheNextMoreTime) {
  for (const auto phase : {Phase::kCheckpointing, Phase::kRestoring}) {
    const Observed before = o;
    Rescheduler r = rescheduler();
    const auto decided = feed(r, 1, 4);
    ASSERT_TRUE(decided);
    migrate::Wave wave = begin(*decided);
    EXPECT_NEAR(bandwidth_of(wave, o), 300e6, 1) << "assumed";
    feed(r, 5);
    o.job.status.ranks[wave.moves.back().rank].memory_bytes = 1'000'000'000;
    wave.reason = std::string(crds::to_string(phase)) + "Timeout";
    wave.late_seconds = 50;
    wave.rollback_committed = true;
    end(wave, Phase::kRolledBack, 5);
    feed(r, 6);
    store(r);
    EXPECT_NEAR(bandwidth_of(wave, o), 20e6, 1);
    o = before;
  }
}

// Ranks 0 and 1 need 3 s where they were to need 1 s, and 2 s where they were.
TEST_F(Rescheduling, AWaveThatMadeSuperstepsLongerIsTakenBackOnce) {
  o.job.spec.rescheduling.heuristic = crds::Heuristic::kAuto;
  moved_ns = 3'000'000'000;
  for (const bool restarted : {false, true}) {
    const Observed before = o;
    auto r = std::make_unique<Rescheduler>(rescheduler());
    std::optional<Decided> decided;
    std::uint64_t t = 1;
    while (!decided || decided->moves.empty()) {
      ASSERT_LT(t, 60u);
      decided = feed(*r, t++);
    }
    const migrate::Wave wave = begin(*decided);
    store(*r);
    end(wave, Phase::kSucceeded, t);
    feed(*r, t++);
    store(*r);
    if (restarted) r = std::make_unique<Rescheduler>(rescheduler());
    decided.reset();
    for (const std::uint64_t last = t + 60; t < last && (!decided || decided->moves.empty()); ++t)
      decided = feed(*r, t);
    ASSERT_TRUE(decided);
    EXPECT_EQ(decided->decision.outcome, crds::kTakingBack) << decided->decision.message;
    ASSERT_THAT(decided->moves, SizeIs(wave.moves.size()));
    for (const MoveRequest& move : decided->moves)
      EXPECT_EQ(move.node, before.job.status.ranks[move.rank].node) << "rank " << move.rank;
    const std::string first = decided->decision.message;
    EXPECT_NE(first.find("takes the last wave back, since which a superstep takes 3 s instead of 2 s"),
              std::string::npos)
        << first;
    for (auto& m : o.migrations) m.metadata.name += "-first";
    const migrate::Wave back = begin(*decided);
    store(*r);
    end(back, Phase::kSucceeded, t);
    for (std::size_t i = 0; i < back.moves.size(); ++i)
      o.migrations[o.migrations.size() - 1 - i].status.source_node = back.moves[back.moves.size() - 1 - i].source_node;
    // While what is known of the nodes counts.
    for (const auto last = t + static_cast<std::uint64_t>(observe::Calibration::kKept); t < last; ++t)
      if (const auto again = feed(*r, t)) {
        EXPECT_THAT(again->moves, IsEmpty()) << again->decision.message;
      }
    o = before;
  }
}

// The same where a node of each Set has all its slots: ranks 0 and 1 come from one node and go to one.
TEST_F(Rescheduling, RanksOfOneNodeAreTakenBackToIt) {
  o.job.spec.rescheduling.heuristic = crds::Heuristic::kAuto;
  moved_ns = 3'000'000'000;
  std::vector<observe::NodeFacts> merged;
  for (const char* set : {"slow", "fast"}) {
    merged.push_back(*std::ranges::find(o.nodes, set, &observe::NodeFacts::set));
    merged.back().slots = static_cast<std::uint32_t>(std::ranges::count(o.nodes, set, &observe::NodeFacts::set));
  }
  const auto node_of = [&](const std::string& set) {
    return std::ranges::find(merged, set, &observe::NodeFacts::set)->name;
  };
  o.nodes = merged;
  for (crds::RankPlace& place : o.job.status.ranks) place.node = node_of(place.set);
  for (auto& [name, pod] : o.pods) pod.node = node_of(pod.set);
  Rescheduler r = rescheduler();
  const auto next_moves = [&](std::uint64_t& t) {
    std::optional<Decided> decided;
    for (const std::uint64_t last = t + 60; t < last && (!decided || decided->moves.empty()); ++t) decided = feed(r, t);
    return decided;
  };
  std::uint64_t t = 1;
  const auto decided = next_moves(t);
  ASSERT_TRUE(decided);
  ASSERT_THAT(decided->moves, SizeIs(2));
  end(begin(*decided), Phase::kSucceeded, t);
  const auto back = next_moves(t);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->decision.outcome, crds::kTakingBack) << back->decision.message;
  ASSERT_THAT(back->moves, SizeIs(2));
  for (const MoveRequest& move : back->moves) EXPECT_EQ(move.node, node_of("slow"));
}

TEST_F(Rescheduling, AWaveThatDidNotHappenIsNotTakenBack) {
  o.job.spec.rescheduling.heuristic = crds::Heuristic::kAuto;
  Rescheduler r = rescheduler();
  std::optional<Decided> decided;
  std::uint64_t t = 1;
  while (!decided || decided->moves.empty()) {
    ASSERT_LT(t, 60u);
    decided = feed(r, t++);
  }
  migrate::Wave wave = begin(*decided);
  store(r);
  const nlohmann::json begun = o.job.status.rescheduler;
  const auto judged_after_it = [&](std::optional<std::uint64_t> since) {
    SchedulerState state = scheduler_state_from_json(begun, 3, 2);
    EXPECT_GT(state.window.cadence.wave.before, 0);
    if (since) state.window.cadence.wave.since = {*since};
    o.job.status.rescheduler = to_json(state);
    Rescheduler fresh = rescheduler();
    end(wave, Phase::kRolledBack, t);
    feed(fresh, t);
    store(fresh);
    return scheduler_state_from_json(o.job.status.rescheduler, 3, 2).window.cadence.wave;
  };
  EXPECT_EQ(judged_after_it({}), decide::Judged{});
  EXPECT_EQ(judged_after_it(1).since, Superstep{1}) << "of a wave before it, which did";
  EXPECT_EQ(judged_after_it(0), decide::Judged{}) << "an older operator didn't say of which";
}

}  // namespace
}  // namespace bsp::reconcile
