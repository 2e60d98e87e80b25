#include "operator/screens/move.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/unit/screens/a_job.h"

namespace bsp::screens {
namespace {

using testing::HasSubstr;

std::string refusal(const crds::BspJob& job, const MoveWish& wish) {
  const auto made = migration_for(job, wish, {"fast", "slow"}, std::set<std::string>{"fast-0"}, kNow);
  return made ? "" : made.error().message;
}

TEST(Move, IsRefusedByName) {
  crds::BspJob job = a_job().job;
  EXPECT_EQ(refusal(job, {.rank = 4, .set = "fast", .node = ""}), "job weather has no rank 4, only 0 to 3");
  EXPECT_EQ(refusal(job, {.rank = 3, .set = "fats", .node = ""}), "there is no Set fats; did you mean fast?");
  EXPECT_EQ(refusal(job, {.rank = 3, .set = "gpu", .node = ""}), "there is no Set gpu; known: fast, slow");
  EXPECT_EQ(refusal(job, {.rank = 3, .set = "", .node = "x"}), "there is no node x; known: fast-0");
  EXPECT_EQ(refusal(job, {.rank = 0, .set = "fast", .node = ""}), "rank 0 is already in Set fast");
  job.status.ranks[0].node = "fast-0";
  EXPECT_EQ(refusal(job, {.rank = 0, .set = "", .node = "fast-0"}), "rank 0 is already on node fast-0");
  EXPECT_EQ(refusal(job, {.rank = 3, .set = "", .node = "fast-0"}), "");
  EXPECT_EQ(refusal(job, {.rank = 0, .set = "", .node = "*"}), "");
  job.status.phase = crds::JobPhase::kFailed;
  EXPECT_EQ(refusal(job, {.rank = 3, .set = "fast", .node = ""}), "job weather has ended (Failed)");
}

TEST(Move, IsAValidRankMigration) {
  crds::BspJob job = a_job().job;
  job.metadata.name = std::string(63, 'a');
  const auto made = migration_for(job, {.rank = 3, .set = "fast", .node = ""}, {"fast"}, std::nullopt, kNow);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(crds::validate(made->spec));
  EXPECT_LE(made->metadata.name.size(), 63u);
  EXPECT_EQ(made->spec.job, job.metadata.name);
  EXPECT_EQ(made->spec.wave, 0u);
  nlohmann::json j;
  to_json(j, *made);
  EXPECT_TRUE(crds::rank_migration_from_json(j));
}

// A person may move ranks of many jobs at once.
TEST(Move, OfJobsWhoseNamesBeginAlikeHasTwoNames) {
  std::set<std::string> names;
  for (const char* member : {"01", "02"}) {
    crds::BspJob job = a_job().job;
    job.metadata.name = std::string("climate-ensemble-north-atlantic-2026-member-") + member;
    job.metadata.uid = std::string(member) + "c5a8b7d-5f0e-4f6e-9a53-0d8a44ee21b7";
    const auto made = migration_for(job, {.rank = 3, .set = "fast", .node = ""}, {"fast"}, std::nullopt, kNow);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_LE(made->metadata.name.size(), 63u);
    names.insert(made->metadata.name);
  }
  EXPECT_EQ(names.size(), 2u);
}

TEST(Move, IsFollowedToItsEnd) {
  using crds::MigrationPhase;
  const auto follows = [](std::vector<std::pair<MigrationPhase, std::string>> statuses) {
    std::vector<std::string> said;
    auto next = statuses.begin();
    const auto read = [&]() -> Result<crds::RankMigration> {
      if (next == statuses.end()) return fail(ErrorCode::kNotFound, "it was deleted");
      crds::RankMigration migration;
      std::tie(migration.status.phase, migration.status.message) = *next++;
      return migration;
    };
    const auto ended = follow(read, [&](const std::string& line) { said.push_back(line); });
    return std::pair(ended.value_or(-1), said);
  };
  const auto [moved, lines] = follows({{MigrationPhase::kPausing, ""},
                                       {MigrationPhase::kPausing, "postponed\x1b"},
                                       {MigrationPhase::kPausing, "postponed\x1b"},
                                       {MigrationPhase::kSucceeded, ""}});
  EXPECT_EQ(moved, 0);
  EXPECT_THAT(lines, testing::ElementsAre("Pausing", "Pausing: postponed?", "Succeeded"));
  EXPECT_EQ(follows({{MigrationPhase::kFailed, "no slot"}}), std::pair(1, std::vector<std::string>{"Failed: no slot"}));
  EXPECT_EQ(follows({{MigrationPhase::kPausing, ""}}), std::pair(-1, std::vector<std::string>{"Pausing"}));
}

}  // namespace
}  // namespace bsp::screens
