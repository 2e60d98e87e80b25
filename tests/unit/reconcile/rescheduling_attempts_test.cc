// What a job's attempt takes over from the one before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/kernel/job.h"
#include "tests/unit/reconcile/rescheduling_fixture.h"

namespace bsp::reconcile {
namespace {

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
};

// Where CPU time is made work by the benchmark: what was learned of a Set's speed is in that unit.
TEST_F(Attempts, KeepTheUnitOfWork) {
  o.job.spec.rescheduling.mode = crds::ReschedulingMode::kAdvise;
  time_and_benchmark();
  for (int attempt = 0; attempt < 5; ++attempt) {
    Rescheduler r = rescheduler();
    for (std::uint64_t t = 1; t <= 12; ++t) feed(r, t);
    store(r);
    EXPECT_NEAR(calibrated("cpu", "slow")->value, 5e8, 1e3) << "attempt " << attempt;
    EXPECT_NEAR(calibrated("cpu", "fast")->value, 2e9, 1e3) << "attempt " << attempt;
    begin_attempt();
  }
  const SchedulerState next = scheduler_state_from_json(o.job.status.rescheduler, 3, 2);
  EXPECT_EQ(next.window.cadence, decide::Cadence{}) << "the rest begins anew";
  EXPECT_EQ(next.wave_seen, 0u);
}

// No rank runs in fast any more, so nothing measures its speed again.
TEST_F(Attempts, KeepTheSpeedOfASetWithoutRanks) {
  o.job.spec.rescheduling.mode = crds::ReschedulingMode::kAdvise;
  time_and_benchmark();
  for (int attempt = 0; attempt < 5; ++attempt) {
    Rescheduler r = rescheduler();
    for (std::uint64_t t = 1; t <= 12; ++t) feed(r, t);
    store(r);
    EXPECT_NEAR(calibrated("cpu", "fast")->value, 2e9, 1e3) << "attempt " << attempt;
    begin_attempt();
    for (crds::RankPlace& place : o.job.status.ranks) place.set = "slow";
  }
}

}  // namespace
}  // namespace bsp::reconcile
