// Single steps of the migration machine, where the simulation can't see which step it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/migrate/step.h"

namespace bsp::migrate {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::Ne;
using wire::RankPhase;
using wire::TransferPhase;

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
    wave.number = 1;
    wave.phase = Phase::kPausing;
    wave.times = {{Phase::kPreparing, now}, {Phase::kPausing, now}};
    wave.base_epoch = 3;
    wave.next_epoch = 4;
    wave.rollback_epoch = 5;
    wave.moves.push_back({.migration = "m",
                          .rank = 0,
                          .source_pod = "a",
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
  Step step() const { return migrate::step(wave, view, now, {}); }
  std::vector<Phase> entered(const Step& s) const {
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
  const Step s = step();
  EXPECT_THAT(entered(s),
              ElementsAre(Phase::kCheckpointing, Phase::kTransferring, Phase::kRestoring, Phase::kResuming));
  ASSERT_TRUE(s.commit);
  EXPECT_EQ(s.commit->epoch, 4u);
  EXPECT_EQ(s.commit->members[0].pod, "b");
  EXPECT_THAT(s.actions, testing::IsEmpty()) << "nobody hears of the epoch before it is stored";
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
  view.pods["c"].phase_since = view.pods["a"].phase_since = now;
  EXPECT_FALSE(step().changed);
}

TEST_F(Steps, TheVerdictTellsAMovedRankWhereTo) {
  wave.gate = {GateState::kCommitted, 20, 1};
  EXPECT_THAT(step().actions, testing::UnorderedElementsAre(Action{ActionKind::kCommitGate, "a", 20, 0},
                                                            Action{ActionKind::kCommitGate, "c", 20, std::nullopt}));
  // Who gives a gate up has it committed everywhere first, but nobody sends itself away any more.
  wave.phase = Phase::kRollingBack;
  wave.times.push_back({Phase::kRollingBack, now});
  wave.gate.state = GateState::kDropping;
  const Step s = step();
  EXPECT_THAT(s.actions, Contains(Action{ActionKind::kCommitGate, "a", 20, std::nullopt}));
  EXPECT_THAT(s.actions, Contains(Action{ActionKind::kCommitGate, "c", 20, std::nullopt}));
}

TEST_F(Steps, WhyAConnectionBrokeIsToldWhenItsNodeTells) {
  wave.gate = {GateState::kCommitted, 20, 1};
  wave.phase = Phase::kRollingBack;
  wave.times.push_back({Phase::kRollingBack, now});
  wave.message = "rank 0: the peer closed the connection";
  EXPECT_EQ(step().wave.message, wave.message);
  view.pods["c"].crippled = "the sidecar of c was killed";
  EXPECT_EQ(step().wave.message, wave.message) << "c takes no part in a move";
  view.pods["b"].crippled = "the sidecar of b was killed";
  const Step told = step();
  EXPECT_TRUE(told.changed);
  EXPECT_EQ(told.wave.message, "rank 0: the peer closed the connection; the sidecar of b was killed");
  wave = told.wave;
  EXPECT_EQ(step().wave.message, told.wave.message) << "once";
}

TEST_F(Steps, WhatSidecarsHaveForgottenToDoIsAskedFor) {
  all_stopped();
  wave.phase = Phase::kCheckpointing;
  wave.times.push_back({Phase::kCheckpointing, now});
  EXPECT_THAT(step().actions, ElementsAre(Action{ActionKind::kSend, "a", 0, 0}));
  transfer("a", TransferPhase::kDumping);
  EXPECT_THAT(step().actions, testing::IsEmpty());
  transfer("b", TransferPhase::kReceived);
  wave.phase = Phase::kRestoring;
  wave.times.push_back({Phase::kTransferring, now});
  wave.times.push_back({Phase::kRestoring, now});
  EXPECT_THAT(step().actions, ElementsAre(Action{ActionKind::kRestore, "b", 0, 0}));
}

TEST_F(Steps, ATargetThatHasReceivedEarlyIsNotAskedToReceiveAgain) {
  wave.gate = {GateState::kCommitted, 20, 1};
  transfer("a", TransferPhase::kSent);
  transfer("b", TransferPhase::kRestoring);
  view.pods["a"].status->phase = RankPhase::kStopped;
  EXPECT_THAT(step().actions, Each(Field(&Action::kind, Ne(ActionKind::kReceive))));
}

TEST_F(Steps, ASourceThatDiesWhileOthersCloseIsNotMissedOnceItsCheckpointIsWhole) {
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
      const Time began = now;
      wave.times.push_back({phase == Phase::kTransferring ? Phase::kCheckpointing : phase, began});
      transfer("a", TransferPhase::kDumping);
      transfer("b", phase == Phase::kRestoring ? TransferPhase::kReceived : TransferPhase::kReceiving);
      view.pods["a"].status->memory_bytes = static_cast<std::uint64_t>(megabytes * kMega);
      view.bytes_per_second = measured * kMega;
      EXPECT_NE(migrate::step(wave, view, began + from_seconds(limit - 0.1), {}).wave.phase, Phase::kRollingBack)
          << megabytes << " MB, " << measured << " MB/s, " << crds::to_string(phase);
      const Step late = migrate::step(wave, view, began + from_seconds(limit + 0.1), {});
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
  view.pods["c"].completed_at = now - std::chrono::milliseconds(250);
  EXPECT_EQ(step().wave.gate, (Gate{GateState::kArmed, 101 + 50 + 2 + 40, 3}))
      << "the ranks have gone on since the last report";
  view.superstep_seconds = 60;
  EXPECT_EQ(step().wave.gate, (Gate{GateState::kArmed, 101 + 2, 3})) << "the next but one, a minute ahead";
}

TEST_F(Steps, AGateOfUnknownPaceIsNearUntilItWasLate) {
  view.pods["a"].completed = 1;
  EXPECT_EQ(step().wave.gate, (Gate{GateState::kArmed, 1 + 2, 1}))
      << "of supersteps that take minutes, ten would be too many";
  wave.gate = {GateState::kArmed, 3, 1};
  view.pods["a"].armed = ArmAnswer{3, 40, true};
  EXPECT_EQ(step().wave.gate.state, GateState::kCancelling);
  wave.gate.state = GateState::kCancelling;
  for (const char* pod : {"a", "c"}) view.pods[pod].done.insert({ActionKind::kCancelGate, 3});
  EXPECT_EQ(step().wave.gate, (Gate{GateState::kArmed, 40 + 2 + 16, 2})) << "taken back and set again in one write";
}

}  // namespace
}  // namespace bsp::migrate
