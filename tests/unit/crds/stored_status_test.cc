// What people see of a status, and that nothing of it is lost.
#include "crds/stored_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crds/fields.h"
#include "crds/reflect.h"

namespace bsp::crds {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

BspJobStatus migrating() {
  BspJobStatus s;
  s.phase = JobPhase::kMigrating;
  s.superstep = {40};
  s.imbalance = 0.2534;
  s.alpha = 7;
  s.realised_gain_seconds = 1.5;
  s.pause_seconds = 0.2317;
  s.migrations.succeeded = 2;
  s.migrations.rolled_back = 1;
  s.ranks_per_set = {{"fast", 1, 4}, {"slow", 1, 2}};
  s.ranks = {{{0}, "fast", "f-0", "job-r0-g0", 1, 1, 1, 0, ""}, {{1}, "slow", "s-0", "job-r1-g0", 1, 3, 3, 0, ""}};
  s.wave_state = {{"phase", "Checkpointing"}, {"message", "the pod's \"node\" isn't ready"}};
  s.conditions = {
      {.type = "Running", .status = ConditionStatus::kTrue, .reason = "Running", .message = "every rank runs"},
      {.type = "Failed", .status = ConditionStatus::kFalse, .reason = "Running", .message = "no"}};
  Decision d;
  d.superstep = {40};
  d.outcome = "Migrating";
  d.planned_moves = 1;
  d.moves = {{{1}, "slow", "fast", "f-1", 4.6}};
  d.stays = {{{0}, "BestSetIsOwn", "BestSetIsOwn: no Set is better"}};
  d.stays_by_reason = {{"BestSetIsOwn", 1}};
  s.last_decision = d;
  return s;
}

TEST(StoredStatus, NothingIsLost) {
  const BspJobStatus status = migrating();
  const auto whole = whole_status(stored_status(status));
  ASSERT_TRUE(whole);
  json before = reflect::write(status), after = reflect::write(reflect::read<BspJobStatus>(*whole, "status").value());
  before["conditions"].erase(1);  // a false one
  EXPECT_EQ(before, after);
}

TEST(StoredStatus, SummaryIsForPeople) {
  const json summary = stored_status(migrating())[kSummary];
  EXPECT_EQ(summary["wave"], "Checkpointing");
  EXPECT_EQ(summary["ranks"], "fast 1/4 slow 1/2");
  EXPECT_EQ(summary["imbalance"], "25.3 %");
  EXPECT_EQ(summary["moves"], "2, 1 rolled back");
  EXPECT_EQ(summary["gain"], "1.5 s");
  EXPECT_EQ(summary["pause"], "232 ms");
  EXPECT_EQ(summary["slowest"], "rank 1 on slow computes 3 s a superstep");
}

TEST(StoredStatus, RunningIsWhereKubectlWaitsForIt) {
  const json stored = stored_status(migrating());
  ASSERT_EQ(stored["conditions"].size(), 1);
  EXPECT_EQ(stored["conditions"][0]["type"], "Running");
}

TEST(StoredStatus, ConditionsOfAnotherTypeAreNamed) {
  BspJobStatus status = migrating();
  status.conditions.push_back(
      {.type = "Migrating", .status = ConditionStatus::kTrue, .reason = "Running", .message = "a rank moves"});
  json stored = stored_status(status);
  for (const json& conditions : {json::object(), json("Running"), json(5)}) {
    stored["conditions"] = conditions;
    const auto whole = whole_status(stored);
    ASSERT_TRUE(whole);
    const auto read = reflect::read<BspJobStatus>(*whole, "status");
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, HasSubstr("status.conditions"));
  }
}

TEST(StoredStatus, ADecisionSaysWhy) {
  EXPECT_THAT(why_lines(*migrating().last_decision, 4),
              ElementsAre("rank 1 moves slow→fast on f-1, predicted gain 4.6 s",
                          "rank 0 stays: BestSetIsOwn: no Set is better"));
  Decision many = *migrating().last_decision;
  for (std::uint32_t rank = 2; rank < 50; ++rank) many.stays.push_back({{rank}, "NoCapacity", "NoCapacity: none"});
  many.stays_by_reason = {{"BestSetIsOwn", 1}, {"NoCapacity", 98}};
  EXPECT_THAT(why_lines(many, 3), ElementsAre("rank 1 moves slow→fast on f-1, predicted gain 4.6 s",
                                              "rank 0 stays: BestSetIsOwn: no Set is better",
                                              "ranks 2-49 stay: NoCapacity: none", "and 50 more ranks"));
  EXPECT_THAT(why_lines(many, 2),
              ElementsAre("rank 1 moves slow→fast on f-1, predicted gain 4.6 s", "and 99 more ranks"));
}

// Whoever may write a status names any ranks, in any order.
TEST(StoredStatus, ADecisionMayNameRanksThatTheJobHasNot) {
  Decision d;
  for (const std::uint32_t rank : {4'294'967'295u, 3u, 4'294'967'294u, 0u})
    d.stays.push_back({{rank}, "NoCapacity", ""});
  EXPECT_THAT(why_lines(d, 3), ElementsAre("ranks 0,3,4294967294-4294967295 stay: NoCapacity"));
}

// As `kubectl describe` prints it: a line for each scalar, and for each map or list that holds some.
std::size_t lines_of(const json& value) {
  if (!value.is_structured()) return 1;
  std::size_t lines = 0;
  for (const auto& item : value) lines += lines_of(item) + (value.is_object() && item.is_structured());
  return lines;
}
bool has_snake_case(const json& value) {
  if (!value.is_structured()) return false;
  for (const auto& [key, item] : value.items())
    if (key.contains('_') || has_snake_case(item)) return true;
  return false;
}

TEST(StoredStatus, IsAPage) {
  const json stored = stored_status(migrating());
  EXPECT_LE(lines_of(stored), 40u) << stored.dump(1);
  EXPECT_FALSE(has_snake_case(stored));
}

TEST(StoredStatus, WhatCannotBeReadIsNamed) {
  for (const json& internal : {json(7), json("{"), json("[]")}) {
    const auto whole = whole_status({{kInternal, internal}});
    ASSERT_FALSE(whole) << internal;
    EXPECT_THAT(whole.error().message, HasSubstr("status.internal"));
  }
}

TEST(StoredStatus, HasAFormatAndANewerOneIsRefused) {
  const auto with_format = [](const json& format) {
    json stored = stored_status(migrating());
    std::string internal = stored[kInternal];
    const std::string now = std::format("'format':{}", kStatusFormat);
    const std::size_t at = internal.find(now);
    EXPECT_NE(at, std::string::npos) << internal;
    stored[kInternal] = internal.replace(at, now.size(), "'format':" + format.dump());
    return whole_status(stored);
  };
  EXPECT_TRUE(with_format(kStatusFormat));
  EXPECT_FALSE(with_format(kStatusFormat)->contains("format")) << "it is no field of the status";
  for (const json& format : {json(kStatusFormat + 1), json(1e9), json(-1), json(nullptr), json::array()}) {
    const auto whole = with_format(format);
    ASSERT_FALSE(whole) << format;
    EXPECT_EQ(whole.error().message,
              std::format("status.internal: its format is {}, and this version reads formats up to {}", format.dump(),
                          kStatusFormat));
  }
}

// It would be taken for one that waits to begin.
TEST(StoredStatus, WithoutItsPhaseAJobThatHasBegunCannotBeRead) {
  json stored = stored_status(migrating());
  const json old = {{"epoch", json::object()}, {"ranks", json::array()}};
  for (json status : {stored, old})
    for (const json& phase : {json(), json(5)}) {
      status["phase"] = phase;
      const auto whole = whole_status(status);
      ASSERT_FALSE(whole) << status;
      EXPECT_THAT(whole.error().message, HasSubstr("status.phase"));
    }
}

TEST(StoredStatus, WithoutItsInternalPartARunningJobHasNone) {
  json stored = stored_status(migrating());
  stored.erase(kInternal);
  EXPECT_EQ(whole_status(stored), json::object());
  EXPECT_EQ(whole_status({{"phase", "Running"}}), json::object());

  const json old = {{"phase", "Running"}, {"epoch", json::object()}, {"ranks", json::array()}};
  EXPECT_EQ(whole_status(old), old) << "as an older operator stored it";
}

TEST(StoredStatus, WithoutItsInternalPartAnEndedJobHasEnded) {
  for (const JobPhase phase : {JobPhase::kSucceeded, JobPhase::kFailed, JobPhase::kSuspended, JobPhase::kRestarting}) {
    BspJobStatus status = migrating();
    status.phase = phase;
    status.reason = "Told";
    json stored = stored_status(status);
    stored.erase(kInternal);
    const auto whole = whole_status(stored);
    ASSERT_TRUE(whole);
    const auto read = reflect::read<BspJobStatus>(*whole, "status");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->phase, phase);
    EXPECT_EQ(read->reason, "Told");
    EXPECT_EQ(read->superstep, status.superstep);
    EXPECT_EQ(read->ranks.size(), 0u);
  }
}

}  // namespace
}  // namespace bsp::crds
