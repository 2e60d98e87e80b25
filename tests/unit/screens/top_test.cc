#include "operator/screens/top.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/screens/printable.h"
#include "tests/unit/screens/a_job.h"

namespace bsp::screens {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Top, ShowsEachRankInOrderIfAllFit) {
  const std::string text = joined(top(a_job(4), kNow));
  EXPECT_THAT(text, HasSubstr("science/weather: Running, superstep 120, started 10m ago"));
  EXPECT_LT(text.find("rank 0 "), text.find("rank 3 "));
  EXPECT_THAT(text, Not(HasSubstr("more ranks")));
}

TEST(Top, FitsAnyTerminal) {
  for (const std::uint32_t ranks : {1u, 4u, 15u, 16u, 17u, 18u, 19u, 20u, 1000u}) {
    Shown shown = a_job(ranks);
    for (int i = 0; i < 9; ++i) {
      shown.migrations.push_back(
          a_move(0, crds::MigrationPhase::kSucceeded, "2026-11-21T04:55:00Z", "2026-11-21T04:55:01Z"));
      shown.job.status.ranks_per_set.push_back({std::format("set{}", i), 0, 4});
      shown.job.status.conditions.push_back({.type = std::format("C{}", i),
                                             .status = crds::ConditionStatus::kTrue,
                                             .reason = "R",
                                             .message = std::string(300, 'x')});
      for (const std::size_t lines : {5u, 12u, 23u, 24u, 60u})
        for (const std::size_t columns : {20u, 80u, 200u}) {
          const auto frame = top(shown, kNow, {.columns = columns, .lines = lines});
          EXPECT_LE(frame.size(), lines) << ranks;
          for (const std::string& line : frame) EXPECT_LE(width_of(line), columns) << line;
        }
    }
  }
}

TEST(Top, ShowsTheSlowestOfAThousandRanks) {
  const auto frame = top(a_job(1000), kNow, {.columns = 80, .lines = 24});
  EXPECT_EQ(frame.size(), 24u);
  const std::string text = joined(frame);
  EXPECT_THAT(text, HasSubstr("rank 999 "));
  EXPECT_THAT(text, Not(HasSubstr("rank 0 ")));
  EXPECT_THAT(text, HasSubstr("more ranks; these are the slowest"));
}

TEST(Top, OfAJobWithoutStatusOrSuspended) {
  Shown shown;
  shown.job.metadata.name = "new";
  shown.job.spec.ranks = 4;
  EXPECT_THAT(joined(top(shown, kNow)), HasSubstr("new: Pending"));
  shown.job.status.phase = crds::JobPhase::kSuspended;
  shown.job.status.message = "spec.runPolicy.suspend is set";
  EXPECT_THAT(joined(top(shown, kNow)), HasSubstr("spec.runPolicy.suspend is set"));
}

TEST(Top, PrintsNoControlCharactersOfATenant) {
  for (const auto phase : {crds::JobPhase::kPending, crds::JobPhase::kRunning}) {
    Shown shown = hostile_job();
    shown.job.status.phase = phase;
    const std::string text = joined(top(shown, kNow));
    EXPECT_THAT(text, HasSubstr("pwned"));
    EXPECT_FALSE(has_control(text)) << text;
  }
}

}  // namespace
}  // namespace bsp::screens
