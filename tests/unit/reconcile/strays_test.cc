// RankMigrations whose job does not exist: they move no later job of that name, and they can't fill the operator.
#include <gmock/gmock.h>

#include "operator/reconcile/shell/strays.h"
#include "tests/unit/reconcile/stored_jobs.h"

namespace bsp::reconcile {
namespace {

using kube::Object;
using nlohmann::json;
using ::testing::HasSubstr;

class Strays : public StoredJobs {
 protected:
  Object make(const std::string& name, const std::string& job) {
    return store_
        ->create({{"apiVersion", kRankMigration.api_version},
                  {"kind", kRankMigration.kind},
                  {"metadata", {{"name", name}, {"namespace", "default"}}},
                  {"spec", {{"job", job}, {"rank", 0}, {"targetNode", "slow-1"}}}})
        .value();
  }
  json status_of(const std::string& name) {
    const auto object = store_->get({kRankMigration, "default", name});
    return object ? part_at(*object, "status") : json::object();
  }
  std::size_t count() { return store_->list(kRankMigration, "default").value().size(); }
  bool is_there(const std::string& name) { return store_->get({kRankMigration, "default", name}).has_value(); }
  std::unique_ptr<kube::Cache> cache() {
    kube::CacheOptions options = watched_objects("default");
    options.own_thread = false;
    auto cache = std::make_unique<kube::Cache>(*store_, std::move(options));
    while (!cache->filled()) EXPECT_TRUE(cache->refresh(std::chrono::milliseconds(0)));
    return cache;
  }
};

TEST_F(Strays, OneOlderThanTheJobMovesNothing) {
  start();
  make("early", "weather");
  ASSERT_TRUE(eventually([&] { return text_at(status_of("early"), "reason") == "NoSuchJob"; }));
  EXPECT_EQ(text_at(status_of("early"), "phase"), "Pending");
  add("weather", [](json&) {});
  ASSERT_TRUE(eventually([&] { return text_at(status_of("early"), "phase") == "Failed"; }));
  EXPECT_EQ(text_at(status_of("early"), "reason"), "OlderThanJob");
  EXPECT_THAT(text_at(status_of("early"), "message"), HasSubstr("make it again"));
  make("late", "weather");
  ASSERT_TRUE(eventually([&] { return !text_at(status_of("late"), "phase").empty(); }));
  EXPECT_NE(text_at(status_of("late"), "reason"), "OlderThanJob");
}

TEST_F(Strays, OfTheSameSecondIsNotOlder) {
  crds::BspJob job;
  job.metadata.creation_timestamp = Time(std::chrono::seconds(1000));
  crds::RankMigration m;
  m.metadata.creation_timestamp = Time(std::chrono::seconds(1000));
  EXPECT_FALSE(is_older_than(m, job));
  m.metadata.creation_timestamp = Time(std::chrono::seconds(999));
  EXPECT_TRUE(is_older_than(m, job));
  m.metadata.owner_references = owner_reference(job);
  EXPECT_FALSE(is_older_than(m, job)) << "its owner says whose it is";
  m.metadata.owner_references = {};
  m.metadata.creation_timestamp = {};
  EXPECT_FALSE(is_older_than(m, job));
}

TEST_F(Strays, OnlyTheNewestOfANamespaceStay) {
  start();
  constexpr std::size_t kMade = StrayMigrations::kMost + 3 * StrayMigrations::kDeletedAtOnce;
  for (std::size_t i = 0; i < kMade; ++i)
    make(std::format("m{:04}", i), i % 2 == 0 ? "none" : std::format("none-{}", i));
  EXPECT_TRUE(eventually([&] { return count() == StrayMigrations::kMost; })) << count();
  EXPECT_FALSE(is_there("m0000"));
  EXPECT_FALSE(is_there(std::format("m{:04}", kMade - StrayMigrations::kMost - 1)));
  EXPECT_TRUE(is_there(std::format("m{:04}", kMade - StrayMigrations::kMost)));
}

TEST_F(Strays, WaitOnlyAWhileForTheirJob) {
  make("lost", "nowhere");
  const auto seen = cache();
  StrayMigrations waits(*store_);
  EXPECT_GT(waits.answer(*seen, "default/nowhere"), Duration{});
  EXPECT_EQ(text_at(status_of("lost"), "phase"), "Pending");
  StrayMigrations strays(*store_, Duration{});
  EXPECT_EQ(strays.answer(*seen, "default/nowhere"), Duration{});
  EXPECT_EQ(text_at(status_of("lost"), "phase"), "Failed");
  EXPECT_EQ(text_at(status_of("lost"), "reason"), "NoSuchJob");
}

// Its watch may lag.
TEST_F(Strays, AJobThatTheCacheLacksKeepsItsMigrations) {
  for (std::size_t i = 0; i < StrayMigrations::kMost + 5; ++i) make(std::format("m{:04}", i), "weather");
  const auto seen = cache();
  add("weather", [](json&) {});
  StrayMigrations strays(*store_, Duration{});
  EXPECT_GT(strays.answer(*seen, "default/weather"), Duration{});
  EXPECT_EQ(count(), StrayMigrations::kMost + 5);
  EXPECT_NE(text_at(status_of("m0099"), "phase"), "Failed");
}

}  // namespace
}  // namespace bsp::reconcile
