// Single steps of the migration machine, where the simulation can't see which step it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/migrate/contact.h"
#include "operator/migrate/step.h"

namespace bsp::migrate {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::Ne;
using testing::Pair;
using wire::RankPhase;
using wire::TransferPhase;

// An action without the fields of its verb, which follow from it.
struct Asked {
  ActionKind kind;
  std::string pod;
  std::uint64_t number;
  std::optional<std::size_t> move;
  bool operator==(const Asked&) const = default;
};

struct Answer {
  Wave wave;  // as it is after the step
  bool changed = false;
  std::optional<wire::EpochPlan> commit;
  std::vector<Asked> actions;
};

// Rank 0 of two moves from a to b in epoch 4.
class Steps : public testing::Test {
 protected:
  Steps() {
    view.epoch = {.epoch = 3,
                  .pmix_namespace = "uid-e3",
                  .sets = {"slow", "fast"},
                  .members = {{0, "a", "uid-a", "a:1", 0}, {1, "c", "uid-c", "c:1", 0}}};
    for (const char* name : {"a", "b", "c"}) {
      PodView& pod = view.pods[name];
      pod.exists = true;
      pod.uid = std::string("uid-") + name;
      pod.address = std::string(name) + ":1";
      pod.status.emplace();
      pod.status->pod = name;
      pod.status->init_connected = true;
      pod.status->phase = RankPhase::kRunning;
      pod.status->epoch = 3;
      pod.status->prepared_epoch = 4;
    }
    view.pods["b"].status->phase = RankPhase::kWaiting;
    view.pods["b"].status->epoch = 0;
    transfer("b", TransferPhase::kReceiving);
    view.now = SteadyTime{std::chrono::seconds(500)};
    wave.number = 1;
    wave.phase = Phase::kPausing;
    wave.times = {{Phase::kPreparing, now}, {Phase::kPausing, now}};
    wave.base_epoch = 3;
    wave.next_epoch = 4;
    wave.rollback_epoch = 5;
    wave.moves.push_back({.migration = "m",
                          .rank = 0,
                          .source_pod = "a",
                          .source_uid = "uid-a",
                          .source_address = "a:1",
                          .source_set = 0,
                          .target_pod = "b",
                          .target_uid = "uid-b",
                          .target_address = "b:1",
                          .target_set = 1,
                          .target_node = "fast-0"});
  }
  void transfer(const char* pod, TransferPhase phase) {
    view.pods[pod].status->transfer.migration = "m";
    view.pods[pod].status->transfer.phase = phase;
  }
  void all_stopped() {
    wave.gate = {GateState::kCommitted, 20, 1};
    for (const char* pod : {"a", "c"}) view.pods[pod].status->phase = RankPhase::kStopped;
  }
  Answer step() const {
    const Step step = migrate::step(wave, view, now, {});
    if (const WaveChange* change = step.change()) return {change->wave, true, change->commit, {}};
    Answer answer{.wave = wave, .commit = {}, .actions = {}};
    for (const Action& a : step.work()) answer.actions.push_back({a.kind, a.pod, a.number, a.move});
    return answer;
  }
  std::vector<Phase> entered(const Answer& s) const {
    std::vector<Phase> phases;
    for (std::size_t i = wave.times.size(); i < s.wave.times.size(); ++i) phases.push_back(s.wave.times[i].phase);
    return phases;
  }

  Time now{std::chrono::seconds(1000)};
  Wave wave;
  View view;
};

TEST_F(Steps, PhasesWhoseWorkIsDoneArePassedInOneWrite) {
  all_stopped();
  transfer("a", TransferPhase::kSent);
  transfer("b", TransferPhase::kRestored);
  view.pods["b"].status->phase = RankPhase::kStopped;
  const Answer s = step();
  EXPECT_THAT(entered(s),
              ElementsAre(Phase::kCheckpointing, Phase::kTransferring, Phase::kRestoring, Phase::kResuming));
  ASSERT_TRUE(s.commit);
  EXPECT_EQ(s.commit->epoch, 4u);
  EXPECT_EQ(s.commit->members[0].pod, "b");
  EXPECT_THAT(s.actions, testing::IsEmpty()) << "no sidecar hears of the epoch before it is stored";
}

TEST_F(Steps, OnlyWhatIsDoneIsPassed) {
  all_stopped();
  transfer("a", TransferPhase::kDumping);
  EXPECT_THAT(entered(step()), ElementsAre(Phase::kCheckpointing));
  view.pods["a"].status->transfer.dump_ns = 1;
  EXPECT_THAT(entered(step()), ElementsAre(Phase::kCheckpointing, Phase::kTransferring));
  transfer("b", TransferPhase::kRestoring);
  EXPECT_THAT(entered(step()), ElementsAre(Phase::kCheckpointing, Phase::kTransferring, Phase::kRestoring));
  // A rank that has not stopped holds up all of it, however far the moved one has come.
  view.pods["c"].status->phase = RankPhase::kClosing;
  view.pods["c"].phase_since = view.pods["a"].phase_since = view.now;
  EXPECT_FALSE(step().changed);
}

TEST_F(Steps, TheVerdictNamesTheTargetToARankThatMoves) {
  wave.gate = {GateState::kCommitted, 20, 1};
  EXPECT_THAT(step().actions, testing::UnorderedElementsAre(Asked{ActionKind::kCommitGate, "a", 20, 0},
                                                            Asked{ActionKind::kCommitGate, "c", 20, std::nullopt}));
  // A gate is committed everywhere before it is dropped, but no rank sends its checkpoint any more.
  wave.phase = Phase::kRollingBack;
  wave.times.push_back({Phase::kRollingBack, now});
  wave.gate.state = GateState::kDropping;
  const Answer s = step();
  EXPECT_THAT(s.actions, Contains(Asked{ActionKind::kCommitGate, "a", 20, std::nullopt}));
  EXPECT_THAT(s.actions, Contains(Asked{ActionKind::kCommitGate, "c", 20, std::nullopt}));
}

TEST_F(Steps, TheReasonForABrokenConnectionIsAddedWhenItsNodeReportsIt) {
  wave.gate = {GateState::kCommitted, 20, 1};
  wave.phase = Phase::kRollingBack;
  wave.times.push_back({Phase::kRollingBack, now});
  wave.message = "rank 0: the peer closed the connection";
  EXPECT_EQ(step().wave.message, wave.message);
  view.pods["c"].sidecar_failure = "the sidecar of c was killed";
  EXPECT_EQ(step().wave.message, wave.message) << "c takes no part in a move";
  view.pods["b"].sidecar_failure = "the sidecar of b was killed";
  const Answer next = step();
  EXPECT_TRUE(next.changed);
  EXPECT_EQ(next.wave.message, "rank 0: the peer closed the connection; the sidecar of b was killed");
  wave = next.wave;
  EXPECT_EQ(step().wave.message, next.wave.message) << "once";
}

TEST_F(Steps, RestartedSidecarsAreAskedAgain) {
  all_stopped();
  wave.phase = Phase::kCheckpointing;
  wave.times.push_back({Phase::kCheckpointing, now});
  EXPECT_THAT(step().actions, ElementsAre(Asked{ActionKind::kSend, "a", 0, 0}));
  transfer("a", TransferPhase::kDumping);
  EXPECT_THAT(step().actions, testing::IsEmpty());
  transfer("b", TransferPhase::kReceived);
  wave.phase = Phase::kRestoring;
  wave.times.push_back({Phase::kTransferring, now});
  wave.times.push_back({Phase::kRestoring, now});
  EXPECT_THAT(step().actions, ElementsAre(Asked{ActionKind::kRestore, "b", 0, 0}));
}

TEST_F(Steps, ATargetThatHasReceivedEarlyIsNotAskedToReceiveAgain) {
  wave.gate = {GateState::kCommitted, 20, 1};
  transfer("a", TransferPhase::kSent);
  transfer("b", TransferPhase::kRestoring);
  view.pods["a"].status->phase = RankPhase::kStopped;
  EXPECT_THAT(step().actions, Each(Field(&Asked::kind, Ne(ActionKind::kReceive))));
}

TEST_F(Steps, ASourceMayDieOnceItsCheckpointIsComplete) {
  all_stopped();
  transfer("b", TransferPhase::kRestored);
  wire::RankStatus& source = *view.pods["a"].status;
  source.phase = RankPhase::kExited;
  source.exit_signal = 9;
  EXPECT_EQ(step().wave.phase, Phase::kResuming);
  view.pods["b"].status->transfer.phase = TransferPhase::kReceiving;
  EXPECT_EQ(step().wave.phase, Phase::kFailed);
  EXPECT_EQ(step().wave.lost_rank, 0u);
  EXPECT_EQ(step().wave.message, "rank 0 was ended by signal 9");
  source.exit_message = "killed by SIGKILL: why";
  EXPECT_EQ(step().wave.message, "rank 0 was killed by SIGKILL: why");
}

// Four round trips and 10 ms ahead of the newest superstep known, more after each attempt that was late.
TEST_F(Steps, ALargeRankHasTheTimeThatItsMemoryTakes) {
  constexpr double kMega = 1e6;
  struct Case {
    double megabytes, measured;  // MB/s; 0: nothing
    double limit;                // s
  };
  for (const auto& [megabytes, measured, limit] :
       {Case{0, 0, 6}, Case{10, 0, 6.25}, Case{10, 1, 8.5},  // a small one is given up soon
        Case{1000, 0, 31}, Case{1000, 300, 31}, Case{1000, 40, 56}, Case{1000, 10, 206}, Case{1000, 0.1, 256}})
    for (const Phase phase : {Phase::kCheckpointing, Phase::kTransferring, Phase::kRestoring}) {
      all_stopped();
      wave.gate.state = GateState::kCommitted;
      wave.phase = phase;
      const SteadyTime began{std::chrono::seconds(500)};
      view.since = {{phase == Phase::kTransferring ? Phase::kCheckpointing : phase, began}};
      transfer("a", TransferPhase::kDumping);
      transfer("b", phase == Phase::kRestoring ? TransferPhase::kReceived : TransferPhase::kReceiving);
      view.pods["a"].status->memory_bytes = static_cast<std::uint64_t>(megabytes * kMega);
      view.bytes_per_second = measured * kMega;
      view.now = began + from_seconds(limit - 0.1);
      EXPECT_NE(step().wave.phase, Phase::kRollingBack)
          << megabytes << " MB, " << measured << " MB/s, " << crds::to_string(phase);
      view.now = began + from_seconds(limit + 0.1);
      const Answer late = step();
      EXPECT_NEAR(late.wave.late_seconds, limit + 0.1, 1e-6);
      EXPECT_EQ(late.wave.phase, Phase::kRollingBack) << megabytes << " MB, " << measured << " MB/s";
      EXPECT_EQ(late.wave.reason, phase == Phase::kRestoring ? "RestoringTimeout" : "CheckpointingTimeout");
    }
}

TEST_F(Steps, AGateStandsAheadOfAllByTime) {
  view.pods["a"].completed = 100;
  view.pods["c"].completed = 101;
  view.round_trip_seconds = 0.010;
  view.superstep_seconds = 0.005;
  EXPECT_EQ(step().wave.gate, (Gate{GateState::kArmed, 101 + 2 + 10, 1}));
  wave.gate.attempt = 2;
  EXPECT_EQ(step().wave.gate, (Gate{GateState::kArmed, 101 + 2 + 40, 3}));
  view.pods["c"].completed_at = view.now - std::chrono::milliseconds(250);
  EXPECT_EQ(step().wave.gate, (Gate{GateState::kArmed, 101 + 50 + 2 + 40, 3}))
      << "the ranks have gone on since the last report";
  view.superstep_seconds = 60;
  EXPECT_EQ(step().wave.gate, (Gate{GateState::kArmed, 101 + 2, 3})) << "the next but one, a minute ahead";
}

TEST_F(Steps, AGateOfUnknownPaceIsCloseByUntilOneWasLate) {
  view.pods["a"].completed = 1;
  EXPECT_EQ(step().wave.gate, (Gate{GateState::kArmed, 1 + 2, 1}))
      << "of supersteps that take minutes, ten would be too many";
  wave.gate = {GateState::kArmed, 3, 1};
  view.pods["a"].armed = ArmAnswer{3, 40, true};
  EXPECT_EQ(step().wave.gate.state, GateState::kCancelling);
  wave.gate.state = GateState::kCancelling;
  for (const char* pod : {"a", "c"}) view.pods[pod].done[ActionKind::kCancelGate] = 3;
  EXPECT_EQ(step().wave.gate, (Gate{GateState::kArmed, 40 + 2 + 16, 2})) << "taken back and set again in one write";
}

// One that makes up gates is asked to cancel each of them.
TEST(SidecarViewTest, WhatASidecarReportsMakesItNoLarger) {
  SidecarView sidecar;
  for (std::uint64_t superstep = 1; superstep <= 1000; ++superstep)
    for (const Action& action : {Action::commit_gate("a", superstep), Action::cancel_gate("a", superstep)})
      EXPECT_TRUE(note_answer(sidecar, action, nlohmann::json::object()));
  EXPECT_THAT(sidecar.done, ElementsAre(Pair(ActionKind::kCommitGate, 1000), Pair(ActionKind::kCancelGate, 1000)));
}

// --- Limits count from this leader's first contact ---------------------------------------------------------
TEST(ContactTest, BeginsAtTheFirstReconcileAndLeavesOutGaps) {
  const SteadyTime start{std::chrono::seconds(900)};
  Wave wave;
  wave.number = 3;
  wave.phase = Phase::kTransferring;
  wave.times = {{Phase::kCheckpointing, Time{}}, {Phase::kTransferring, Time{std::chrono::hours(1)}}};
  Contact contact;
  contact.note(&wave, start);
  EXPECT_EQ(contact.since().at(Phase::kCheckpointing), start);
  EXPECT_EQ(contact.since().at(Phase::kTransferring), start);
  contact.note(&wave, start + std::chrono::milliseconds(900));
  EXPECT_EQ(contact.since().at(Phase::kTransferring), start);
  contact.note(&wave, start + std::chrono::milliseconds(45'900));
  EXPECT_EQ(contact.since().at(Phase::kTransferring), start + std::chrono::seconds(44)) << "a second of it counts";
  wave.number = 4;
  contact.note(&wave, start + std::chrono::seconds(46));
  EXPECT_EQ(contact.since().at(Phase::kTransferring), start + std::chrono::seconds(46));
  contact.note(nullptr, start + std::chrono::seconds(47));
  EXPECT_THAT(contact.since(), testing::IsEmpty());
}

// Rank 0 was moved from a to b in epoch 4, which is committed; no rank has been let into it.
class Committed : public Steps {
 protected:
  Committed() {
    all_stopped();
    view.epoch = next_plan(wave, view.epoch);
    view.pods["a"].status->prepared_epoch = 3;
    view.pods["b"].status->phase = RankPhase::kStopped;
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
    wire::RankStatus& status = view.pods[pod].status.emplace();
    status.phase = RankPhase::kExited;
    status.exit_code = 0;
  }
  void kill(const char* pod) {
    view.pods[pod].status->phase = RankPhase::kExited;
    view.pods[pod].status->exit_signal = 9;
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
  view.pods["b"].status->phase = RankPhase::kOpening;
  view.pods["b"].status->admitted_epoch = 4;
  EXPECT_THAT(step().actions, ElementsAre(Asked{ActionKind::kOpenEpoch, "b", 4, std::nullopt},
                                          Asked{ActionKind::kOpenEpoch, "c", 4, std::nullopt}));
}

TEST_F(Committed, ASlowOpeningFailsNothingAndIsReportedOnce) {
  for (const Phase phase : {Phase::kResuming, Phase::kRollingBack}) {
    if (phase == Phase::kRollingBack) {
      view.epoch = rollback_plan(wave, view.epoch);
      wave.rollback_committed = true;
      wave.delay.clear();
      for (const char* pod : {"a", "c"}) view.pods[pod].status->prepared_epoch = 5;
      enter(phase);
    }
    view.pods["c"].unreachable_since = view.now - std::chrono::hours(1);
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
  view.pods["a"].status->prepared_epoch = view.pods["c"].status->prepared_epoch = 5;
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
  view.pods["c"].status->admitted_epoch = 4;
  EXPECT_EQ(step().wave.phase, Phase::kFailed);
  EXPECT_EQ(step().wave.lost_rank, 0u);
  // A sidecar too old to say may have let it in.
  view.pods["c"].status->admitted_epoch = ~0ull;
  EXPECT_EQ(step().wave.phase, Phase::kFailed);
}

// Their sidecars ended with their pods, so a later leader knows nothing else of them. A stopped rank ends well only once it
// has gone on.
TEST_F(Committed, RanksThatEndedWellHaveGoneOn) {
  end_well("c");
  EXPECT_EQ(step().wave.phase, Phase::kResuming) << "b is stopped";
  view.pods["b"].status->phase = RankPhase::kFinalized;
  view.pods["b"].status->epoch = 4;
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
  view.pods["a"].status->prepared_epoch = view.pods["c"].status->prepared_epoch = 5;
  view.pods["c"].status->admitted_epoch = 4;
  const Answer s = step();
  EXPECT_FALSE(s.commit);
  EXPECT_EQ(s.wave.phase, Phase::kFailed);
  EXPECT_THAT(s.wave.message, testing::HasSubstr("rank 1 was let into epoch 4"));
}

TEST_F(Committed, ACopyWhoseEndIsNotCertainIsWaitedForOrGivenUp) {
  view.pods["b"].deleting = true;
  EXPECT_FALSE(step().changed);
  EXPECT_THAT(step().actions, testing::IsEmpty()) << "no rank is admitted meanwhile";
  view.pods["b"].uncertain = true;
  EXPECT_EQ(step().wave.phase, Phase::kFailed) << "its node does not answer, so nothing will ever report it";
  view.pods["b"].deleting = view.pods["b"].uncertain = false;
  view.pods["b"].gone = "no sidecar hears it";
  EXPECT_EQ(step().wave.phase, Phase::kFailed);
  view.pods["b"].gone = "";
  view.pods["b"].unreachable_since = view.now - std::chrono::hours(1);
  EXPECT_EQ(step().wave.phase, Phase::kResuming) << "silence is no loss";
  view.pods["b"].exists = false;
  EXPECT_EQ(step().wave.phase, Phase::kRollingBack);
  view.pods["a"].deleting = true;
  EXPECT_EQ(step().wave.phase, Phase::kFailed) << "the source goes, too";
}

TEST_F(Committed, TheOtherCopiesOfTheWaveEndBeforeTheirSourcesGoOn) {
  for (const char* name : {"c2"}) {
    view.pods[name] = view.pods["b"];
    view.pods[name].uid = std::string("uid-") + name;
    view.pods[name].status->transfer.migration = "m2";
  }
  wave.moves.push_back(wave.moves[0]);
  Move& second = wave.moves[1];
  second = {.migration = "m2",
            .rank = 1,
            .source_pod = "c",
            .source_uid = "uid-c",
            .source_address = "c:1",
            .source_set = 0,
            .target_pod = "c2",
            .target_uid = "uid-c2",
            .target_address = "c2:1",
            .target_set = 1,
            .target_node = "fast-1"};
  view.epoch.members[1] = {1, "c2", "uid-c2", "c2:1", 1};
  view.pods["c2"].status->admitted_epoch = 4;  // it was let in, and waits for rank 0
  view.pods["c2"].status->phase = RankPhase::kOpening;
  kill("b");
  wave = step().wave;
  ASSERT_EQ(wave.phase, Phase::kRollingBack);
  view.pods["a"].status->prepared_epoch = view.pods["c"].status->prepared_epoch = 5;
  met(std::chrono::hours(1));
  wave = step().wave;  // its delay is next
  EXPECT_FALSE(step().commit) << "however long it takes";
  EXPECT_THAT(step().actions, Contains(Asked{ActionKind::kDeletePod, "c2", 0, 1}));
  view.pods["c2"].deleting = true;
  EXPECT_FALSE(step().commit);
  view.pods["c2"].ended = true;
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
