// Single steps of the migration machine up to the commit, where the simulation can't see which step it was.
#include <nlohmann/json.hpp>

#include "base/core/cpu_features.h"
#include "operator/migrate/contact.h"
#include "steps.h"

namespace bsp::migrate {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::Ne;
using testing::Pair;

TEST_F(Steps, PhasesWhoseWorkIsDoneArePassedInOneWrite) {
  all_stopped();
  transfer("a", TransferPhase::kSent);
  transfer("b", TransferPhase::kRestored);
  view.seats[{"b"}].status->phase = RankPhase::kStopped;
  const Answer s = step();
  EXPECT_THAT(entered(s),
              ElementsAre(Phase::kCheckpointing, Phase::kTransferring, Phase::kRestoring, Phase::kResuming));
  ASSERT_TRUE(s.commit);
  EXPECT_EQ(s.commit->epoch, 4u);
  EXPECT_EQ(s.commit->members[0].pod, "b");
  EXPECT_THAT(s.actions, testing::IsEmpty()) << "no sidecar hears of the epoch before it is stored";
}

// Before any rank stops: what comes to a gate has cost all of them time.
TEST_F(Steps, ATargetWithoutTheCpuOrTheRuntimeOfTheProgramIsRefusedByName) {
  for (const Phase phase : {Phase::kPreparing, Phase::kPausing}) {
    wave.phase = phase;
    wire::RankStatus &from = *view.seats[{"a"}].status, &to = *view.seats[{"b"}].status;
    from.program_features = CpuFeatures::from_names("avx,avx2,avx512f")->bits();
    to.cpu_features = from.program_features;
    from.runtime = to.runtime = "aabb";
    EXPECT_NE(step().wave.phase, Phase::kRollingBack);
    to.cpu_features = CpuFeatures::from_names("avx,avx2")->bits();
    Answer s = step();
    EXPECT_EQ(s.wave.phase, Phase::kRollingBack);
    EXPECT_EQ(s.wave.reason, "CPUFeaturesDiffer");
    EXPECT_THAT(s.wave.message, testing::HasSubstr("target b of rank 0: the CPU of node fast-0 lacks avx512f, which"));
    to.cpu_features = 0;
    EXPECT_NE(step().wave.phase, Phase::kRollingBack) << "a sidecar of the version before doesn't say";
    to.runtime = "ccdd";
    s = step();
    EXPECT_EQ(s.wave.reason, "RuntimeDiffers");
    EXPECT_THAT(s.wave.message, testing::HasSubstr("libbspmpi.so aabb, and the pod has ccdd"));
    to.runtime = "";
    EXPECT_NE(step().wave.phase, Phase::kRollingBack);
  }
}

TEST_F(Steps, OnlyWhatIsDoneIsPassed) {
  all_stopped();
  transfer("a", TransferPhase::kDumping);
  EXPECT_THAT(entered(step()), ElementsAre(Phase::kCheckpointing));
  view.seats[{"a"}].status->transfer.dump_ns = 1;
  EXPECT_THAT(entered(step()), ElementsAre(Phase::kCheckpointing, Phase::kTransferring));
  transfer("b", TransferPhase::kRestoring);
  EXPECT_THAT(entered(step()), ElementsAre(Phase::kCheckpointing, Phase::kTransferring, Phase::kRestoring));
  // A rank that has not stopped holds up all of it, however far the moved one has come.
  view.seats[{"c"}].status->phase = RankPhase::kClosing;
  view.seats[{"c"}].phase_since = view.seats[{"a"}].phase_since = view.now;
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
  view.seats[{"c"}].sidecar_failure = "the sidecar of c was killed";
  EXPECT_EQ(step().wave.message, wave.message) << "c takes no part in a move";
  view.seats[{"b"}].sidecar_failure = "the sidecar of b was killed";
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
  view.seats[{"a"}].status->phase = RankPhase::kStopped;
  EXPECT_THAT(step().actions, Each(Field(&Asked::kind, Ne(ActionKind::kReceive))));
}

TEST_F(Steps, ASourceMayDieOnceItsCheckpointIsComplete) {
  all_stopped();
  transfer("b", TransferPhase::kRestored);
  wire::RankStatus& source = *view.seats[{"a"}].status;
  source.phase = RankPhase::kExited;
  source.exit_signal = 9;
  EXPECT_EQ(step().wave.phase, Phase::kResuming);
  view.seats[{"b"}].status->transfer.phase = TransferPhase::kReceiving;
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
      view.seats[{"a"}].status->memory_bytes = static_cast<std::uint64_t>(megabytes * kMega);
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
  view.seats[{"a"}].completed = 100;
  view.seats[{"c"}].completed = 101;
  view.round_trip_seconds = 0.010;
  view.superstep_seconds = 0.005;
  EXPECT_EQ(step().wave.gate, (Gate{GateState::kArmed, 101 + 2 + 10, 1}));
  wave.gate.attempt = 2;
  EXPECT_EQ(step().wave.gate, (Gate{GateState::kArmed, 101 + 2 + 40, 3}));
  view.seats[{"c"}].completed_at = view.now - std::chrono::milliseconds(250);
  EXPECT_EQ(step().wave.gate, (Gate{GateState::kArmed, 101 + 50 + 2 + 40, 3}))
      << "the ranks have gone on since the last report";
  view.superstep_seconds = 60;
  EXPECT_EQ(step().wave.gate, (Gate{GateState::kArmed, 101 + 2, 3})) << "the next but one, a minute ahead";
}

TEST_F(Steps, AGateOfUnknownPaceIsCloseByUntilOneWasLate) {
  view.seats[{"a"}].completed = 1;
  EXPECT_EQ(step().wave.gate, (Gate{GateState::kArmed, 1 + 2, 1}))
      << "of supersteps that take minutes, ten would be too many";
  wave.gate = {GateState::kArmed, 3, 1};
  view.seats[{"a"}].armed = ArmAnswer{3, 40, true};
  EXPECT_EQ(step().wave.gate.state, GateState::kCancelling);
  wave.gate.state = GateState::kCancelling;
  for (const char* pod : {"a", "c"}) view.seats[{pod}].done[ActionKind::kCancelGate] = 3;
  EXPECT_EQ(step().wave.gate, (Gate{GateState::kArmed, 40 + 2 + 16, 2})) << "taken back and set again in one write";
}

// One that makes up gates is asked to cancel each of them.
// A verb names the decision that it follows from, and none names a lower one later.
TEST_F(Steps, TokensAscendWithWhatIsStored) {
  std::vector<wire::Token> tokens;
  const auto ask = [&] {
    const Step step = migrate::step(wave, view, now, {});
    ASSERT_FALSE(step.change());
    ASSERT_FALSE(step.work().empty());
    for (const Action& action : step.work()) {
      EXPECT_EQ(action.token, token_of(wave)) << to_string(action.kind);
      const auto sent = action.encoded();
      ASSERT_TRUE(sent->contains(wire::kToken)) << sent->dump();
      EXPECT_EQ((*sent)[wire::kToken]["attempt"], wave.gate.attempt);
    }
    tokens.push_back(token_of(wave));
  };
  for (std::uint32_t attempt = 1; attempt <= 2; ++attempt)
    for (const GateState state : {GateState::kArmed, GateState::kCancelling}) {
      wave.gate = {.state = state, .superstep = 10 * attempt, .attempt = attempt};
      ask();
    }
  wave.phase = Phase::kRollingBack;
  ask();
  wave.number = 2;
  wave.phase = Phase::kPausing;
  wave.base_epoch = 5, wave.next_epoch = 6, wave.rollback_epoch = 7;
  wave.gate = {.state = GateState::kArmed, .superstep = 5, .attempt = 1};
  view.epoch.epoch = 5;
  ask();
  EXPECT_TRUE(std::ranges::is_sorted(tokens));
  EXPECT_LT(tokens.front(), tokens[2]);
  EXPECT_LT(tokens[3], tokens[4]);
  EXPECT_LT(tokens[4], tokens[5]);
}

// Whoever waits for a move learns at once what it waits for; each note is a write, so that there are few.
TEST_F(Steps, APostponedGateSaysWhatItWaitsFor) {
  wave.gate = {.state = GateState::kCommitted, .superstep = 20, .attempt = 1};
  view.superstep_seconds = 1;
  for (const char* pod : {"a", "c"}) view.seats[{pod}].completed = 19;
  const auto after = [&](std::chrono::seconds time) {
    view.since[wave.phase] = view.now - time;
    wave = step().wave;
    return wave.delay;
  };
  EXPECT_EQ(after(std::chrono::seconds(0)), "");
  EXPECT_EQ(after(std::chrono::seconds(1)),
            "postponed, for 1 s so far: superstep 20 is still ahead of rank 0 (at 19), rank 1 (at 19)");
  view.seats[{"c"}].status->blocked_reason = "not migratable now: an open window";
  EXPECT_EQ(after(std::chrono::seconds(2)), "postponed, for 2 s so far: rank 1: not migratable now: an open window");
  view.seats[{"c"}].status->blocked_reason = "not migratable now: 3 messages";
  EXPECT_EQ(after(std::chrono::seconds(3)), "postponed, for 2 s so far: rank 1: not migratable now: an open window");
  EXPECT_EQ(after(std::chrono::seconds(5)), "postponed, for 4 s so far: rank 1: not migratable now: 3 messages");
  EXPECT_EQ(wave.phase, Phase::kPausing);
  all_stopped();
  EXPECT_EQ(after(std::chrono::seconds(6)), "") << "the next phase";
}

TEST_F(Steps, AGateThatNeverCanBePassedIsGivenUpAtOnce) {
  wave.gate = {.state = GateState::kCommitted, .superstep = 20, .attempt = 1};
  view.since[wave.phase] = view.now;
  wire::RankStatus &a = *view.seats[{"a"}].status, &c = *view.seats[{"c"}].status;
  a.blocked_reason = "not migratable now: an open window";
  c.blocked_reason = "not migratable now: a main thread that has ended";
  EXPECT_EQ(step().wave.phase, Phase::kPausing);
  c.blocked_for_good = true;
  const Answer s = step();
  EXPECT_EQ(s.wave.phase, Phase::kRollingBack);
  EXPECT_EQ(s.wave.reason, "Postponed");
  EXPECT_EQ(
      s.wave.message,
      "the gate can't be passed while the program runs: rank 1: not migratable now: a main thread that has ended");
}

// Nothing else would say why the job no longer moves.
TEST_F(Steps, AGateThatIsNotGivenUpIsReported) {
  for (const GateState state : {GateState::kCancelling, GateState::kDropping}) {
    wave.phase = Phase::kRollingBack;
    wave.times.push_back({wave.phase, now});
    wave.delay.clear();
    wave.gate = {.state = state, .superstep = 20, .attempt = 1};
    for (auto& [name, pod] : view.seats) pod.done.clear();
    view.seats[{"b"}].exists = false;
    SeatView &a = view.seats[{"a"}], &c = view.seats[{"c"}];
    for (const ActionKind kind : {ActionKind::kCommitGate, ActionKind::kCancelGate}) a.done[kind] = 20;
    c.status->gate_superstep = 20;
    view.superstep_seconds = 1;
    view.since[wave.phase] = view.now - std::chrono::seconds(1);
    EXPECT_FALSE(step().changed);
    EXPECT_THAT(step().actions, testing::Not(testing::IsEmpty())) << "it goes on trying";
    view.since[wave.phase] = view.now - std::chrono::hours(1);
    const Answer next = step();
    ASSERT_TRUE(next.changed);
    EXPECT_EQ(next.wave.phase, Phase::kRollingBack);
    EXPECT_THAT(next.wave.delay, testing::MatchesRegex("not every rank has given up the gate at superstep 20 after "
                                                       "[0-9]+ s: rank 1 \\(c\\) is Running"));
    wave = next.wave;
    EXPECT_FALSE(step().changed) << "once";
    view.job_ends = true;
    view.cancelled = "the job is being suspended";
    EXPECT_EQ(step().wave.phase, Phase::kFailed) << "what ends a job ends this";
    view.job_ends = false;
    view.cancelled.clear();
  }
}

// An earlier leader's commit and cancel have done their work at c; this one must not wait for a commit there.
TEST_F(Steps, AGateThatIsBeingDroppedNeedsNoSecondVerdict) {
  wave.phase = Phase::kRollingBack;
  wave.gate = {.state = GateState::kDropping, .superstep = 20, .attempt = 1};
  view.seats[{"b"}].exists = false;
  for (const char* pod : {"a", "c"}) {
    const Action commit = Action::commit_gate({pod}, 20);
    EXPECT_FALSE(note_answer(view.seats[{pod}], commit, fail(ErrorCode::kConflict, "the gate is being dropped")));
  }
  EXPECT_THAT(step().actions, testing::UnorderedElementsAre(Asked{ActionKind::kCancelGate, "a", 20, std::nullopt},
                                                            Asked{ActionKind::kCancelGate, "c", 20, std::nullopt}));
  for (const char* pod : {"a", "c"}) view.seats[{pod}].done[ActionKind::kCancelGate] = 20;
  EXPECT_EQ(step().wave.phase, Phase::kRolledBack);
}

TEST(SidecarViewTest, WhatASidecarReportsMakesItNoLarger) {
  SidecarView sidecar;
  for (std::uint64_t superstep = 1; superstep <= 1000; ++superstep)
    for (const Action& action : {Action::commit_gate({"a"}, superstep), Action::cancel_gate({"a"}, superstep)})
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

}  // namespace
}  // namespace bsp::migrate
