// Single steps of the migration machine after the commit.
#include <nlohmann/json.hpp>

#include "steps.h"

namespace bsp::migrate {
namespace {

using testing::Contains;
using testing::ElementsAre;

// Rank 0 was moved from a to b in epoch 4, which is committed; no rank has been let into it.
class Committed : public Steps {
 protected:
  Committed() {
    all_stopped();
    view.epoch = next_plan(wave, view.epoch);
    view.seats[{"a"}].status->prepared_epoch = 3;
    view.seats[{"b"}].status->phase = RankPhase::kStopped;
    transfer("a", TransferPhase::kSent);
    transfer("b", TransferPhase::kRestored);
    enter(Phase::kResuming);
  }
  void enter(Phase phase) {
    wave.phase = phase;
    wave.times.push_back({phase, now});
  }
  void met(std::chrono::seconds ago) {
    for (const auto& t : wave.times) view.since[t.phase] = view.now - ago;
  }
  void end_well(const char* pod) {
    wire::RankStatus& status = view.seats[{pod}].status.emplace();
    status.phase = RankPhase::kExited;
    status.exit_code = 0;
  }
  void kill(const char* pod) {
    view.seats[{pod}].status->phase = RankPhase::kExited;
    view.seats[{pod}].status->exit_signal = 9;
  }
};

TEST_F(Committed, ALeaderThatComesLateGoesForward) {
  wave.times.back().time = now - std::chrono::hours(1);
  met(std::chrono::seconds(0));
  EXPECT_THAT(step().actions, ElementsAre(Asked{ActionKind::kOpenEpoch, "b", 4, std::nullopt}));
  wave.times.back().time = now + std::chrono::hours(1);
  EXPECT_THAT(step().actions, ElementsAre(Asked{ActionKind::kOpenEpoch, "b", 4, std::nullopt}));
}

TEST_F(Committed, TheCopyGoesFirst) {
  view.seats[{"b"}].status->phase = RankPhase::kOpening;
  view.seats[{"b"}].status->admitted_epoch = 4;
  EXPECT_THAT(step().actions, ElementsAre(Asked{ActionKind::kOpenEpoch, "b", 4, std::nullopt}))
      << "it was sent SIGCONT, and has said nothing yet";
  view.seats[{"b"}].status->epoch = 4;
  EXPECT_THAT(step().actions, ElementsAre(Asked{ActionKind::kOpenEpoch, "b", 4, std::nullopt},
                                          Asked{ActionKind::kOpenEpoch, "c", 4, std::nullopt}));
}

TEST_F(Committed, ACopyThatDiesBeforeItSaysThatItIsInTheEpochGivesTheRankBack) {
  view.seats[{"b"}].status->phase = RankPhase::kOpening;
  view.seats[{"b"}].status->admitted_epoch = 4;
  met(std::chrono::hours(1));
  EXPECT_THAT(step().wave.delay, testing::HasSubstr("rank 0 (b) was continued, but has not come to open epoch 4"));
  kill("b");
  EXPECT_EQ(step().wave.phase, Phase::kRollingBack);
}

TEST_F(Committed, ASlowOpeningFailsNothingAndIsReportedOnce) {
  for (const Phase phase : {Phase::kResuming, Phase::kRollingBack}) {
    if (phase == Phase::kRollingBack) {
      view.epoch = rollback_plan(wave, view.epoch);
      wave.rollback_committed = true;
      wave.delay.clear();
      for (const char* pod : {"a", "c"}) view.seats[{pod}].status->prepared_epoch = 5;
      enter(phase);
    }
    view.seats[{"c"}].unreachable_since = view.now - std::chrono::hours(1);
    met(std::chrono::hours(1));
    const Answer next = step();
    EXPECT_TRUE(next.changed);
    EXPECT_EQ(next.wave.phase, phase);
    EXPECT_THAT(next.wave.delay, testing::HasSubstr(std::format("rank 0 ({}) is Stopped, rank 1 (c) is not heard",
                                                                phase == Phase::kResuming ? "b" : "a")));
    wave = next.wave;
    EXPECT_FALSE(step().changed);
    EXPECT_THAT(step().actions, testing::Not(testing::IsEmpty())) << "it goes on trying";
    EXPECT_EQ(wave_from_json(to_json(wave)).value().delay, wave.delay);
    view.job_ends = true;
    view.cancelled = "the job is being suspended";
    EXPECT_EQ(step().wave.phase, Phase::kFailed);
    EXPECT_EQ(step().wave.reason, "Cancelled");
    met(std::chrono::seconds(1));
    EXPECT_EQ(step().wave.phase, phase) << "a job that is to end ends well where that is soon";
    view.job_ends = false;
  }
}

TEST_F(Committed, ACopyThatDiesFirstGivesTheRankBackToItsSource) {
  kill("b");
  wave = step().wave;
  ASSERT_EQ(wave.phase, Phase::kRollingBack);
  EXPECT_EQ(wave.reason, "TargetLost");
  EXPECT_FALSE(wave.rollback_committed);
  // Nothing is committed before all have promised to leave epoch 4 alone.
  EXPECT_THAT(step().actions, ElementsAre(Asked{ActionKind::kPrepareEpoch, "a", 5, std::nullopt},
                                          Asked{ActionKind::kPrepareEpoch, "c", 5, std::nullopt}));
  view.seats[{"a"}].status->prepared_epoch = view.seats[{"c"}].status->prepared_epoch = 5;
  const Answer s = step();
  ASSERT_TRUE(s.commit);
  EXPECT_TRUE(s.wave.rollback_committed);
  EXPECT_EQ(s.commit->epoch, 5u);
  EXPECT_EQ(s.commit->pmix_namespace, "uid-e5");
  EXPECT_EQ(s.commit->members[0].pod, "a");
  EXPECT_EQ(s.commit->members[0].pod_uid, "uid-a");
  EXPECT_EQ(s.commit->members[0].address, "a:1");
  EXPECT_EQ(s.commit->members[0].set, 0u);
  EXPECT_EQ(s.commit->members[1].pod, "c");
}

TEST_F(Committed, ButNotOnceAnotherRankWasAdmitted) {
  kill("b");
  view.seats[{"c"}].status->admitted_epoch = 4;
  EXPECT_EQ(step().wave.phase, Phase::kFailed);
  EXPECT_EQ(step().wave.lost_rank, 0u);
  // A sidecar too old to say may have let it in.
  view.seats[{"c"}].status->admitted_epoch = ~0ull;
  EXPECT_EQ(step().wave.phase, Phase::kFailed);
}

// What the program loses, whoever was first at the edge and first to leave it.
TEST_F(Committed, ThePauseLastsFromTheLastArrivalToTheLastReturn) {
  constexpr std::uint64_t kMs = 1'000'000, kBegin = 1'000'000'000'000'000'000;
  const auto at = [](std::uint64_t ms) { return kBegin + ms * kMs; };
  wire::RankStatus &source = *view.seats[{"a"}].status, &target = *view.seats[{"b"}].status,
                   &stays = *view.seats[{"c"}].status;
  source.gate_reached_ns = at(164), source.close_ns = 112 * kMs, source.stopped_ns = at(290);
  stays.gate_reached_ns = at(100), stays.close_ns = 90 * kMs, stays.stopped_ns = at(280);
  for (const char* pod : {"b", "c"})
    view.seats[{pod}].status->phase = RankPhase::kRunning, view.seats[{pod}].status->epoch = 4;
  target.open_ns = 30 * kMs, target.opened_ns = at(440), target.first_compute_ns = at(441);
  stays.open_ns = 50 * kMs, stays.opened_ns = at(460), stays.first_compute_ns = at(461);
  Answer s = step();
  ASSERT_EQ(s.wave.phase, Phase::kSucceeded);
  EXPECT_DOUBLE_EQ(s.wave.pause.total_ms, 461 - 164);
  EXPECT_DOUBLE_EQ(s.wave.pause.gate_ms, 290 - 164);
  EXPECT_DOUBLE_EQ(s.wave.pause.close_ms, 112);
  EXPECT_LE(s.wave.pause.close_ms, s.wave.pause.gate_ms) << "each part lies within the pause";
  // Its shim has opened the epoch, and not yet written when it returned from the edge: that time is the last epoch's.
  stays.first_compute_ns = at(20);
  EXPECT_DOUBLE_EQ(step().wave.pause.total_ms, 460 - 164);
  // The source ended before anybody asked when it came to the edge.
  view.seats[{"a"}].status.reset();
  EXPECT_DOUBLE_EQ(step().wave.pause.total_ms, 460 - 100);
}

// Their sidecars ended with their pods, so a later leader knows nothing else of them. A stopped rank ends well only once it
// has gone on.
TEST_F(Committed, RanksThatEndedWellHaveGoneOn) {
  end_well("c");
  EXPECT_EQ(step().wave.phase, Phase::kResuming) << "b is stopped";
  view.seats[{"b"}].status->phase = RankPhase::kFinalized;
  view.seats[{"b"}].status->epoch = 4;
  EXPECT_EQ(step().wave.phase, Phase::kSucceeded);
  end_well("b");
  EXPECT_EQ(step().wave.phase, Phase::kSucceeded);
  view.epoch = rollback_plan(wave, view.epoch);
  wave.rollback_committed = true;
  enter(Phase::kRollingBack);
  EXPECT_EQ(step().wave.phase, Phase::kRollingBack) << "a is stopped";
  end_well("a");
  EXPECT_EQ(step().wave.phase, Phase::kRolledBack);
}

TEST_F(Committed, TheOthersFollowACopyThatEndedWell) {
  end_well("b");
  EXPECT_THAT(step().actions, Contains(Asked{ActionKind::kOpenEpoch, "c", 4, std::nullopt}));
}

TEST_F(Committed, ARankThatEndedWellWasAdmitted) {
  end_well("c");
  kill("b");
  EXPECT_EQ(step().wave.phase, Phase::kFailed);
  EXPECT_EQ(step().wave.lost_rank, 0u);
}

TEST_F(Committed, AnOpenEpochThatWasUnderWayIsSeenBeforeTheSourceIsNamed) {
  kill("b");
  wave = step().wave;
  ASSERT_EQ(wave.phase, Phase::kRollingBack);
  view.seats[{"a"}].status->prepared_epoch = view.seats[{"c"}].status->prepared_epoch = 5;
  view.seats[{"c"}].status->admitted_epoch = 4;
  const Answer s = step();
  EXPECT_FALSE(s.commit);
  EXPECT_EQ(s.wave.phase, Phase::kFailed);
  EXPECT_THAT(s.wave.message, testing::HasSubstr("rank 1 was let into epoch 4"));
}

TEST_F(Committed, ACopyWhoseEndIsNotCertainIsWaitedForOrGivenUp) {
  view.seats[{"b"}].deleting = true;
  EXPECT_FALSE(step().changed);
  EXPECT_THAT(step().actions, testing::IsEmpty()) << "no rank is admitted meanwhile";
  view.seats[{"b"}].uncertain = true;
  EXPECT_EQ(step().wave.phase, Phase::kFailed) << "its node does not answer, so nothing will ever report it";
  view.seats[{"b"}].deleting = view.seats[{"b"}].uncertain = false;
  view.seats[{"b"}].gone = "no sidecar hears it";
  EXPECT_EQ(step().wave.phase, Phase::kFailed);
  view.seats[{"b"}].gone = "";
  view.seats[{"b"}].unreachable_since = view.now - std::chrono::hours(1);
  EXPECT_EQ(step().wave.phase, Phase::kResuming) << "silence is no loss";
  view.seats[{"b"}].exists = false;
  EXPECT_EQ(step().wave.phase, Phase::kRollingBack);
  view.seats[{"a"}].deleting = true;
  EXPECT_EQ(step().wave.phase, Phase::kFailed) << "the source goes, too";
}

TEST_F(Committed, TheOtherCopiesOfTheWaveEndBeforeTheirSourcesGoOn) {
  view.seats[{"c2"}] = view.seats[{"b"}];
  view.seats[{"c2"}].uid = "uid-c2";
  view.seats[{"c2"}].status->transfer.migration = "m2";
  wave.moves.push_back(move("m2", 1, "c", "c2"));
  view.epoch.members[1] = {1, "c2", "uid-c2", "c2:1", 1};
  view.seats[{"c2"}].status->admitted_epoch = 4;  // it was let in, and waits for rank 0
  view.seats[{"c2"}].status->phase = RankPhase::kOpening;
  kill("b");
  wave = step().wave;
  ASSERT_EQ(wave.phase, Phase::kRollingBack);
  view.seats[{"a"}].status->prepared_epoch = view.seats[{"c"}].status->prepared_epoch = 5;
  met(std::chrono::hours(1));
  wave = step().wave;  // its delay is next
  EXPECT_FALSE(step().commit) << "however long it takes";
  EXPECT_THAT(step().actions, Contains(Asked{ActionKind::kDeletePod, "c2", 0, 1}));
  view.seats[{"c2"}].deleting = true;
  EXPECT_FALSE(step().commit);
  view.seats[{"c2"}].ended = true;
  EXPECT_TRUE(step().commit);
}

// --- What is stored may be of another time, or changed by hand ----------------------------------------------
TEST_F(Committed, AWaveThatIsNotOneOfTheJobIsRefusedByItsField) {
  auto refused = [&](auto change) {
    Wave w = wave;
    change(w);
    const auto checked = check_wave(w, view.epoch);
    return checked ? std::string("taken") : checked.error().message;
  };
  using testing::HasSubstr;
  EXPECT_EQ(refused([](Wave&) {}), "taken");
  EXPECT_THAT(refused([](Wave& w) { w.moves.clear(); }), HasSubstr("status.waveState.moves: empty"));
  EXPECT_THAT(refused([](Wave& w) { w.moves[0].rank = 2; }), HasSubstr("moves[0].rank: 2, the job has 2 ranks"));
  EXPECT_THAT(refused([](Wave& w) { w.moves.push_back(w.moves[0]); }), HasSubstr("moves[1].rank: 0 moves twice"));
  EXPECT_THAT(refused([](Wave& w) { w.moves[0].target_set = 7; }), HasSubstr("moves[0].targetSet: 7"));
  EXPECT_THAT(refused([](Wave& w) { w.moves[0].source_set = 7; }), HasSubstr("moves[0].sourceSet: 7"));
  EXPECT_THAT(refused([](Wave& w) { w.moves[0].target_pod = "a"; }), HasSubstr("moves[0].sourcePod"));
  EXPECT_THAT(refused([](Wave& w) { w.moves[0].target_pod = "x"; }), HasSubstr("moves: rank 0 is in x"));
  EXPECT_THAT(refused([](Wave& w) {
                w.moves.push_back(w.moves[0]);
                w.moves[1].rank = 1;
              }),
              HasSubstr("moves: two ranks move to seat b"));
  EXPECT_THAT(refused([](Wave& w) {
                w.phase = Phase::kPausing;
                w.base_epoch = 4, w.next_epoch = 5, w.rollback_epoch = 6;
                std::swap(w.moves[0].source_pod, w.moves[0].target_pod);
                w.moves[0].target_pod = "c";
                w.moves[0].into_free_seat = true;
              }),
              HasSubstr("moves: rank 1 has seat c, to which another is to move"));
  EXPECT_THAT(refused([](Wave& w) { w.next_epoch = 3; }), HasSubstr("nextEpoch"));
  EXPECT_THAT(refused([](Wave& w) { w.rollback_epoch = 4; }), HasSubstr("nextEpoch"));
  EXPECT_THAT(refused([](Wave& w) { w.phase = Phase::kPausing; }), HasSubstr("baseEpoch: a wave from epoch 3 to 4"));
  EXPECT_THAT(refused([](Wave& w) { w.rollback_committed = true; }), HasSubstr("rollbackCommitted"));
  EXPECT_THAT(refused([](Wave& w) { w.next_epoch = 40, w.rollback_epoch = 41; }), HasSubstr("baseEpoch"));
  EXPECT_EQ(refused([](Wave& w) { w.phase = Phase::kSucceeded, w.base_epoch = 1, w.next_epoch = 2; }), "taken")
      << "it is over, and the epochs have gone on";
}

TEST_F(Committed, AWaveOfAnOlderOperatorIsReadAndItsSourceIsNotNamedAgain) {
  nlohmann::json stored = to_json(wave);
  for (const char* field : {"sourceUid", "sourceAddress", "sourceSet"}) stored["moves"][0].erase(field);
  stored.erase("delay");
  stored.erase("lateSeconds");
  wave = wave_from_json(stored).value();
  kill("b");
  EXPECT_EQ(step().wave.phase, Phase::kFailed);
}

}  // namespace
}  // namespace bsp::migrate
