// A job whose status is older than its ranks, as after an etcd that was restored from a backup: it goes on with the ranks that run, or
// restarts with a reason; no epoch number or wave is used twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/kernel/waves.h"
#include "operator/reconcile/kernel/went_back.h"
#include "tests/unit/reconcile/expectations.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using migrate::Phase;
using ::testing::HasSubstr;

class WentBack : public testing::Test {
 protected:
  // Rank 0 has moved since.
  void SetUp() override {
    ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > 5; })) << w.trace;
    before = w.job.status;
    move("there", "fast");
    ASSERT_EQ(w.job.status.ranks[0].pod, "job-r0-g1");
  }
  void move(const std::string& name, const std::string& set) {
    w.migrate_by_hand(name, 0, set);
    ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
    ASSERT_EQ(w.migration(name).status.phase, Phase::kSucceeded) << w.trace;
    for (int i = 0; i < 15; ++i) w.tick();
  }

  void put_back() {
    w.remove_status();
    w.job.status = before;
  }

  World w{{.supersteps = 400}};
  crds::BspJobStatus before;
};

TEST_F(WentBack, AJobGoesOnFromWhatItsPodsSay) {
  const auto now = w.job.status;
  put_back();
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kStatusWentBack); })) << w.trace;
  EXPECT_THAT(w.job.status.message, HasSubstr("was let into epoch"));
  EXPECT_EQ(w.job.status.phase, JobPhase::kRunning);
  EXPECT_EQ(w.job.status.ranks[0].pod, "job-r0-g1");
  EXPECT_EQ(w.job.status.epoch->epoch, now.epoch->epoch);
  EXPECT_GE(w.job.status.epochs_used, now.epochs_used - 1) << "the epoch to roll back to was never prepared";
  EXPECT_GT(w.job.status.wave, now.wave) << "sidecars refuse what names the last one";
  ASSERT_NO_FATAL_FAILURE(move("back", "slow"));
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
  EXPECT_EQ(w.job.status.attempt, 0u);
  expect_quiet(w);
}

// Only the newer status named the pod in which rank 0 is.
TEST_F(WentBack, AJobRestartsIfARankIsNoLongerThere) {
  put_back();
  w.delete_pod("job-r0-g1");
  ASSERT_TRUE(w.run_until(JobPhase::kRestarting)) << w.trace;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_GT(w.job.status.epoch->epoch, before.epoch->epoch);
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
  EXPECT_EQ(w.job.status.attempt, 1u);
}

// All ranks are told to stop, and only the verdict is forgotten; then the whole wave but its number is.
TEST(WentBackInAWave, GoesOnWithTheVerdictOrRestarts) {
  for (const bool was_armed : {true, false}) {
    World w({.supersteps = 200});
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
    w.migrate_by_hand("m", 0, "fast");
    const auto is_at = [&](migrate::GateState state) {
      const auto wave = stored_wave(w.job.status);
      return wave && *wave && (*wave)->gate.state == state;
    };
    ASSERT_TRUE(w.run_until([&] { return is_at(was_armed ? migrate::GateState::kArmed : migrate::GateState::kNone); }));
    const auto before = w.job.status;
    ASSERT_TRUE(w.run_until([&] {
      return is_at(migrate::GateState::kCommitted) && w.seat_of_rank(0)->status.gate_committed &&
             w.seat_of_rank(1)->status.gate_committed;
    })) << w.trace;
    w.remove_status();
    w.job.status = before;
    ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
    EXPECT_EQ(w.job.status.attempt, was_armed ? 0u : 1u) << w.trace;
    if (!was_armed) {
      EXPECT_EQ(w.job.status.restarts.back().reason, kStatusWentBack);
    }
  }
}

TEST(BegunAnew, APodWhoseProgramIsAnotherOneCostsAnAttempt) {
  World w({.supersteps = 200});
  ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > 5; })) << w.trace;
  simulated::Pod& seat = *w.seat_of_rank(1);
  seat.process = simulated::Process::kStarting;
  seat.status.phase = wire::RankPhase::kStarting;
  seat.status.epoch = seat.status.admitted_epoch = 0;
  ++seat.status.version;
  ASSERT_TRUE(w.run_until(JobPhase::kRestarting)) << w.trace;
  EXPECT_EQ(w.job.status.reason, "PodLost");
  EXPECT_THAT(w.job.status.message, HasSubstr("the program of rank 1 has begun anew in pod job-r1-g0"));
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
}

}  // namespace
}  // namespace bsp::reconcile::sim
