// spec.checkpoint.interval: Auto.
#include "operator/reconcile/kernel/checkpoints/interval.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "operator/reconcile/kernel/checkpoints/checkpoints.h"
#include "tests/unit/reconcile/sets.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

constexpr double kDay = 86'400;

TEST(AutoInterval, IsYoungsAndDalys) {
  EXPECT_NEAR(auto_interval(2, kDay), std::sqrt(2 * 2 * kDay), 1e-9) << "588 s";
  EXPECT_NEAR(auto_interval(0.5, kDay), 293.9, 0.1);
  EXPECT_NEAR(auto_interval(0.1, 3600), 26.8, 0.1);
}

TEST(AutoInterval, StaysWithinOnePercentAndWithinBounds) {
  EXPECT_EQ(auto_interval(30, 600), 3000) << "losses every ten minutes don't make it spend more than 1 %";
  EXPECT_EQ(auto_interval(120, kDay), 12'000) << "more than an hour, as an hour would be too often";
  EXPECT_EQ(auto_interval(0.01, 60), kLeastInterval);
  EXPECT_EQ(auto_interval(5, 365 * kDay), kMostInterval);
  EXPECT_EQ(auto_interval(0, kDay), kFirstInterval) << "no set has shown its cost";
  EXPECT_EQ(auto_interval(-1, kDay), kFirstInterval);
  EXPECT_EQ(auto_interval(std::nan(""), kDay), kFirstInterval);
}

TEST(AutoInterval, LosesLessThanOthers) {
  rc::check([] {
    const double cost = *rc::gen::inRange(1, 100) * 0.1, mtbf = *rc::gen::inRange(3600, 1'000'000);
    const double best = auto_interval(cost, mtbf);
    RC_PRE(best > kLeastInterval && best < kMostInterval && best > cost / kMostOfRun);
    // What sets take of the time, and what is computed again after a loss.
    const auto lost = [&](double interval) { return cost / interval + interval / 2 / mtbf; };
    for (const double other : {best / 2, best * 0.9, best * 1.1, best * 2}) RC_ASSERT(lost(best) < lost(other));
  });
}

TEST(MeanTimeBetweenLosses, BeginsWithThePriorAndFollowsTheJob) {
  EXPECT_EQ(mean_time_between_losses(1, 0, 0), kNodeMtbf);
  EXPECT_EQ(mean_time_between_losses(100, 0, 0), kNodeMtbf / 100);
  EXPECT_EQ(mean_time_between_losses(0, 0, 0), kNodeMtbf);
  EXPECT_EQ(mean_time_between_losses(1, -5, 0), kNodeMtbf);
  // 100 nodes, a loss each hour for a day: the prior is 3.65 days.
  EXPECT_NEAR(mean_time_between_losses(100, kDay, 24), (3.65 * kDay + kDay) / 25, 1);
  EXPECT_GT(mean_time_between_losses(100, 30 * kDay, 0), kNodeMtbf / 100);
  EXPECT_GT(mean_time_between_losses(1, 1, UINT32_MAX), 0);
}

TEST(AutoInterval, OfAJobFollowsWhatItsSetsCost) {
  World w({.ranks = 2});
  stores_sets(w, crds::kAutoInterval);
  ASSERT_TRUE(crds::validate(w.job.spec)) << crds::validate(w.job.spec).error().message;
  ASSERT_TRUE(w.run_until([&] { return sets_of(w) > 0; }, 5000)) << w.trace;
  const auto said = std::ranges::find(w.events, std::string(kCheckpointStored), &Event::reason);
  ASSERT_NE(said, w.events.end());
  EXPECT_THAT(said->message, HasSubstr("; the next one is due in "));
  // The second one is far: two nodes, no loss.
  for (int i = 0; i < 500; ++i) w.tick();
  EXPECT_EQ(w.job.status.checkpoint->ids_used, 1u);
  EXPECT_EQ(w.violation, "") << w.trace;
}

}  // namespace
}  // namespace bsp::reconcile::sim
