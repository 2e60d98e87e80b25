#include "operator/screens/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/screens/printable.h"
#include "tests/unit/screens/a_job.h"

namespace bsp::screens {
namespace {

using crds::JobPhase;
using testing::HasSubstr;
using testing::Not;

std::string page_of(const Shown& shown) { return joined(explain(shown, kNow)); }

TEST(Explain, GivesTheReasonThatHolds) {
  Shown shown = a_job();
  auto& s = shown.job.status;
  EXPECT_THAT(page_of(shown), HasSubstr("No rank has moved: no call of Auto has been reported"));
  s.superstep = Superstep{9};
  EXPECT_THAT(page_of(shown), HasSubstr("the first call of Auto follows about superstep 16, and the job is at 9"));
  s.conditions.push_back(
      {.type = "MixedUnits", .status = crds::ConditionStatus::kTrue, .reason = "R", .message = "half count"});
  EXPECT_THAT(page_of(shown),
              testing::AllOf(HasSubstr("No rank moves, because of MixedUnits"), HasSubstr("half count")));
  s.conditions.clear();
  shown.job.spec.rescheduling.mode = crds::ReschedulingMode::kOff;
  EXPECT_THAT(page_of(shown), HasSubstr("spec.rescheduling.mode is Off"));
  shown.job.spec.rescheduling.mode = crds::ReschedulingMode::kMigrate;
  s.last_decision = crds::Decision{};
  s.last_decision->superstep = Superstep{112};
  s.last_decision->time = kNow - std::chrono::seconds(30);
  s.last_decision->outcome = "NothingToGain";
  EXPECT_THAT(page_of(shown),
              HasSubstr("No rank moves: the last call, after superstep 112 (30s ago), found nothing to gain"));
  s.last_decision->outcome = "BelowMinGain";
  shown.job.spec.rescheduling.min_gain = 0.05;
  EXPECT_THAT(page_of(shown), HasSubstr("minGain (5 %)"));
  s.last_decision->outcome = "Advised";
  EXPECT_THAT(page_of(shown), HasSubstr("mode is Advise"));
  s.last_decision->outcome = "Migrating";
  EXPECT_THAT(page_of(shown), HasSubstr("Ranks moved, because the last call"));
  EXPECT_THAT(page_of(shown), HasSubstr("time to the end predicted")) << "Auto counts the rest of the run";
  shown.job.spec.rescheduling.heuristic = crds::Heuristic::kAutoMig;
  EXPECT_THAT(page_of(shown), HasSubstr("superstep predicted"));
}

TEST(Explain, OfAJobThatDoesNotRun) {
  Shown shown;
  shown.job.metadata.name = "new";
  EXPECT_THAT(page_of(shown), HasSubstr("No rank moves while the job is Pending."));
  auto& s = shown.job.status;
  for (const auto phase : {JobPhase::kStarting, JobPhase::kRestarting, JobPhase::kSuspended}) {
    s.phase = phase;
    s.message = "it is so";
    EXPECT_THAT(page_of(shown),
                HasSubstr(std::format("No rank moves while the job is {}: it is so.", crds::to_string(phase))));
  }
  s.phase = JobPhase::kFailed;
  s.message = "rank 1 exited with code 1";
  EXPECT_THAT(page_of(shown), HasSubstr("The job has ended: rank 1 exited with code 1."));
}

TEST(Explain, NamesRanksThatCantMoveByReason) {
  Shown shown = a_job(1000);
  for (std::size_t i = 0; i < 1000; ++i)
    shown.job.status.ranks[i].blocked_reason = i < 700 ? "an open file of MPI-IO" : i == 999 ? "a socket" : "a window";
  const std::string page = page_of(shown);
  EXPECT_THAT(page, HasSubstr("ranks 0-699: an open file of MPI-IO"));
  EXPECT_THAT(page, HasSubstr("ranks 700-998: a window"));
  EXPECT_THAT(page, HasSubstr("and 1 more"));
}

TEST(Explain, IsOneScreen) {
  Shown shown = a_job(50);
  auto& s = shown.job.status;
  s.last_decision = crds::Decision{};
  s.last_decision->message = std::string(400, 'm');
  for (std::uint32_t i = 0; i < 50; ++i) {
    s.last_decision->stays.push_back({RankId{i}, "R", std::format("reason {} {}", i, std::string(300, 'x'))});
    s.ranks[i].blocked_reason = std::format("reason {}", i);
    s.conditions.push_back({.type = std::format("C{}", i),
                            .status = crds::ConditionStatus::kTrue,
                            .reason = "R",
                            .message = std::string(300, 'y')});
    shown.migrations.push_back(
        a_move(i, crds::MigrationPhase::kSucceeded, "2026-11-21T04:55:00Z", "2026-11-21T04:55:01Z"));
  }
  for (const std::size_t columns : {40u, 100u}) {
    const auto page = explain(shown, kNow, {.columns = columns, .lines = 24});
    EXPECT_LE(page.size(), 24u);
    for (const std::string& line : page) EXPECT_LE(width_of(line), columns) << line;
  }
}

TEST(Explain, HidesConditionsThatRepeatThePhase) {
  Shown shown = a_job();
  for (const char* type : {"Running", "Migrating", "NoSupersteps"})
    shown.job.status.conditions.push_back(
        {.type = type, .status = crds::ConditionStatus::kTrue, .reason = "R", .message = "m"});
  shown.job.status.conditions.push_back(
      {.type = "MixedUnits", .status = crds::ConditionStatus::kFalse, .reason = "R", .message = "m"});
  const std::string page = page_of(shown);
  EXPECT_THAT(page, HasSubstr("NoSupersteps (R): m"));
  EXPECT_THAT(page, Not(HasSubstr("Running (R)")));
  EXPECT_THAT(page, Not(HasSubstr("MixedUnits")));
}

TEST(Explain, PrintsNoControlCharactersOfATenant) {
  for (const auto phase : {JobPhase::kPending, JobPhase::kRunning, JobPhase::kFailed}) {
    Shown shown = hostile_job();
    shown.job.status.phase = phase;
    const std::string page = page_of(shown);
    EXPECT_THAT(page, HasSubstr("pwned"));
    EXPECT_FALSE(has_control(page)) << page;
  }
}

}  // namespace
}  // namespace bsp::screens
