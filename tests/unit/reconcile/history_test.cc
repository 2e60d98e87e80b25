// Which RankMigrations that have ended may go.
#include "operator/reconcile/kernel/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crds/names.h"
#include "world.h"

namespace bsp::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Time kStart{std::chrono::seconds(1'000'000)};

crds::RankMigration ended(const std::string& name, int at, migrate::Phase phase = migrate::Phase::kSucceeded) {
  crds::RankMigration m;
  m.metadata.name = name;
  m.metadata.uid = "uid-" + name;
  m.status.phase = phase;
  m.status.superstep = {static_cast<std::uint64_t>(at)};
  m.status.completion_time = kStart + std::chrono::seconds(at);
  return m;
}

std::vector<std::string> names_of(const std::vector<MigrationDeletion>& deletions) {
  std::vector<std::string> names;
  for (const auto& [name, uid] : deletions) {
    EXPECT_EQ(uid, "uid-" + name) << "another one of its name is not meant";
    names.push_back(name);
  }
  return names;
}

Observed with(std::uint32_t limit, std::vector<crds::RankMigration> migrations) {
  Observed o;
  o.job.spec.run_policy.migration_history_limit = limit;
  o.migrations = std::move(migrations);
  return o;
}

TEST(History, DeletesTheOldestBeyondTheLimitFirst) {
  const std::vector<crds::RankMigration> three{ended("c", 3), ended("a", 1, migrate::Phase::kFailed),
                                               ended("b", 2, migrate::Phase::kRolledBack)};
  EXPECT_THAT(names_of(beyond_history(with(3, three))), IsEmpty());
  EXPECT_THAT(names_of(beyond_history(with(2, three))), ElementsAre("a"));
  EXPECT_THAT(names_of(beyond_history(with(0, three))), ElementsAre("a", "b", "c"));
}

TEST(History, IgnoresActiveAndDeletedMigrations) {
  crds::RankMigration deleted = ended("d", 1);
  deleted.metadata.deletion_timestamp = kStart;
  const auto o = with(
      1, {ended("p", 0, migrate::Phase::kPending), ended("r", 0, migrate::Phase::kRestoring), deleted, ended("a", 4)});
  EXPECT_THAT(beyond_history(o), IsEmpty());
}

TEST(History, DeletesThousandsInSeveralReconciles) {
  std::vector<crds::RankMigration> many;
  for (int i = 0; i < 3000; ++i) many.push_back(ended("m" + std::to_string(i), i));
  const auto some = beyond_history(with(100, many));
  EXPECT_FALSE(some.empty());
  EXPECT_LE(some.size(), 100u);
  EXPECT_EQ(some.front().migration, "m0");
}

// As the shell does once a step asks for it.
void delete_old_migrations(sim::World& w) {
  const Step step = w.reconcile();
  if (step.change()) return;
  for (const auto& [name, uid] : step.work().delete_migrations) w.delete_migration(name);
}

// Without its answer, an annotation would ask again.
TEST(History, KeepsTheAnswerToAnAnnotationThatStands) {
  sim::World w({.ranks = 2, .slow = 2, .fast = 2});
  w.job.spec.run_policy.migration_history_limit = 0;
  ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning)) << w.trace;
  const auto annotate = [&](const char* to) {
    w.pod_of(0)->object["metadata"]["annotations"] = {{std::string(names::kAnnotationMoveTo), to}};
    w.pod_of(0)->facts_of.clear();
  };
  const auto ticks = [&] {
    for (int i = 0; i < 200; ++i) w.tick(), delete_old_migrations(w);
  };
  annotate("No Such Set");
  ticks();
  EXPECT_EQ(std::ranges::count(w.events, "NoSuchTarget", &Event::reason), 1);
  ASSERT_THAT(w.migrations, SizeIs(1));
  const std::string first = w.migrations.begin()->first;
  annotate("gpu");
  ticks();
  EXPECT_EQ(std::ranges::count(w.events, "NoSuchTarget", &Event::reason), 2) << "another value asks again";
  ASSERT_THAT(w.migrations, SizeIs(1)) << "the former answer is of no use";
  EXPECT_NE(w.migrations.begin()->first, first);
  annotate("");
  ticks();
  EXPECT_THAT(w.migrations, IsEmpty());
}

// Nothing of a wave is deleted while it moves, nor before its gain is written.
TEST(History, KeepsTheStoredWave) {
  sim::World w({.ranks = 2, .slow = 2, .fast = 2});
  w.job.spec.run_policy.migration_history_limit = 0;
  ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning));
  w.migrate_by_hand("first", 0, "fast");
  ASSERT_TRUE(w.run_until(crds::JobPhase::kMigrating)) << w.trace;
  EXPECT_THAT(w.reconcile().work().delete_migrations, IsEmpty());
  ASSERT_TRUE(w.run_until([&] { return crds::is_finished(w.migration("first").status.phase); }))
      << w.violation << w.trace;
  ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning)) << w.trace;
  EXPECT_THAT(w.reconcile().work().delete_migrations, IsEmpty());
  w.migrate_by_hand("second", 1, "fast");
  ASSERT_TRUE(w.run_until([&] { return crds::is_finished(w.migration("second").status.phase); }))
      << w.violation << w.trace;
  ASSERT_TRUE(w.run_until([&] {
    const auto deletions = w.reconcile().work().delete_migrations;
    return deletions.size() == 1 && deletions[0].migration == "first";
  })) << w.trace;
}

}  // namespace
}  // namespace bsp::reconcile
