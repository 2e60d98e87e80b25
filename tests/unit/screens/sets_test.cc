#include "operator/screens/sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/base64.h"
#include "crds/sets/exported_set.h"
#include "tests/unit/screens/a_job.h"

namespace bsp::screens {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

crds::BspJob with_sets() {
  crds::BspJob job = a_job().job;
  job.spec.checkpoint.storage.emplace();
  crds::CheckpointStatus& c = job.status.checkpoint.emplace();
  c.ids_used = 7;
  for (const std::uint64_t id : {4, 7}) {
    crds::StoredSet& set = c.sets.emplace_back();
    set.id = id;
    set.superstep = {10 * id};
    set.time = kNow - std::chrono::minutes(20 - id);
    set.bytes = 123'456'789;
    set.attempt = 1;
  }
  return job;
}

TEST(Sets, AreListedNewestFirst) {
  crds::BspJob job = with_sets();
  EXPECT_EQ(sets_table(job, kNow),
            "SET   SUPERSTEP   AGE   SIZE     ATTEMPT   STATE\n"
            "7     70          13m   123 MB   1         stored\n"
            "4     40          16m   123 MB   1         stored\n");
  job.status.checkpoint->restored = 4;
  job.status.checkpoint->sets[1].unusable = "rank 1: \x1b[2Jdamaged";
  job.status.checkpoint->pending = {
      .id = 8, .superstep = {90}, .epoch = 1, .attempt = 1, .time = kNow, .pause_seconds = 0};
  job.status.checkpoint->message = "set 6 was not stored: full\x1b";
  const std::string text = sets_table(job, kNow);
  EXPECT_THAT(text, HasSubstr("8     90          0s "));
  EXPECT_THAT(text, HasSubstr("being stored\n"));
  EXPECT_THAT(text, HasSubstr("unusable: rank 1: ?[2Jdamaged\n"));
  EXPECT_THAT(text, HasSubstr("stored; this attempt began with it\n"));
  EXPECT_THAT(text, HasSubstr("the last one: set 6 was not stored: full?\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(Sets, ThatDoNotExistAreExplained) {
  crds::BspJob job = a_job().job;
  EXPECT_THAT(sets_table(job, kNow), HasSubstr("has no spec.checkpoint.storage"));
  job.spec.checkpoint.storage.emplace();
  EXPECT_THAT(sets_table(job, kNow), HasSubstr("has no checkpoint set yet"));
}

TEST(Sets, AreExportedWithTheirKey) {
  crds::BspJob job = with_sets();
  for (crds::StoredSet& set : job.status.checkpoint->sets) set.digests = base64_encode(std::string(32, 'd'));
  job.metadata.name = "lbm";
  job.metadata.name_space = "team-a";
  job.metadata.uid = "u-1";
  const SetToExport newest = set_to_export(job, std::nullopt).value();
  EXPECT_EQ(newest.id, 7u);
  const crds::ExportedSet read = crds::read_exported(newest.description).value();
  EXPECT_EQ(read.uid, "u-1");
  EXPECT_EQ(read.set.id, 7u);
  EXPECT_EQ(set_to_export(job, 4)->id, 4u);
  const std::string text = export_manifest(job, newest, std::string(32, 'k'));
  EXPECT_THAT(text, HasSubstr("  name: lbm-set-7\n"));
  EXPECT_THAT(text, HasSubstr("  key: " + base64_encode(std::string(32, 'k')) + "\n"));
  EXPECT_THAT(text, HasSubstr("#     keySecret: lbm-set-7\n#     exported: " + newest.description + "\n"));
}

TEST(Sets, ThatCantBeExportedAreNamed) {
  crds::BspJob job = with_sets();
  EXPECT_THAT(set_to_export(job, 5).error().message, HasSubstr("has no checkpoint set 5; it has 4, 7"));
  job.status.checkpoint->sets[1].of_job = "u-0";
  EXPECT_THAT(set_to_export(job, 7).error().message, HasSubstr("hasn't made set 7, but begun with it"));
  for (crds::StoredSet& set : job.status.checkpoint->sets) set.unusable = "damaged";
  EXPECT_EQ(set_to_export(job, std::nullopt).error().code, ErrorCode::kNotFound);
  job.status.checkpoint.reset();
  EXPECT_THAT(set_to_export(job, 5).error().message, HasSubstr("it has none"));
}

TEST(Sets, AreRefusedWhereNoneCanBeMade) {
  crds::BspJob job = a_job().job;
  EXPECT_THAT(want_set(job, kNow).error().message, HasSubstr("has no spec.checkpoint.storage"));
  job = with_sets();
  for (const auto phase : {crds::JobPhase::kSuspended, crds::JobPhase::kSucceeded, crds::JobPhase::kStarting}) {
    job.status.phase = phase;
    EXPECT_EQ(want_set(job, kNow).error().code, ErrorCode::kRefused);
  }
}

TEST(Sets, AreWaitedForUntilTheyAreStoredOrNot) {
  crds::BspJob job = with_sets();
  const auto wanted = want_set(job, kNow);
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->value, "2026-11-21T05:00:00.000000Z");
  crds::CheckpointStatus& c = *job.status.checkpoint;
  c.message = "set 6 was not stored: of old";
  EXPECT_FALSE(outcome_of(*wanted, job)) << "it isn't begun";
  c.asked = wanted->value;
  c.ids_used = 8;
  job.status.phase = crds::JobPhase::kMigrating;
  EXPECT_FALSE(outcome_of(*wanted, job)) << "the ranks stop for it";
  job.status.phase = crds::JobPhase::kRunning;
  c.pending = {.id = 8, .superstep = {90}, .epoch = 1, .attempt = 1, .time = kNow, .pause_seconds = 0};
  EXPECT_FALSE(outcome_of(*wanted, job)) << "it is being stored";
  c.pending.reset();
  c.message = "set 8 was not stored: full";
  EXPECT_EQ(outcome_of(*wanted, job)->error().message, "set 8 was not stored: full");
  c.sets.push_back(c.sets.back());
  c.sets.back().id = 8;
  c.message = "";
  EXPECT_EQ(outcome_of(*wanted, job)->value(), "checkpoint set 8 of superstep 70 stored: 123 MB");
  c.sets.pop_back();
  job.status.phase = crds::JobPhase::kRestarting;
  EXPECT_THAT(outcome_of(*wanted, job)->error().message, HasSubstr("is Restarting now"));
}

}  // namespace
}  // namespace bsp::screens
