// The cache of a controller, over a client of an API server.
#include "operator/kube/cache.h"

#include <format>

#include "world.h"

namespace bsp::kube_test {
namespace {

using kube::Cache;

class CacheTest : public World {
 protected:
  kube::CacheOptions options() {
    return {.name_space = is_real() ? "default" : "", .kinds = {{.kind = kConfigMap, .indexes = {{"job", job_of}}}}};
  }
  static std::vector<std::string> job_of(const Object& object) {
    const Object& metadata = object["metadata"];
    return metadata.contains("labels") ? std::vector<std::string>{metadata["labels"]["job"]}
                                       : std::vector<std::string>{};
  }
  static Object of_job(const std::string& name, const std::string& job) {
    Object object = config_map(name);
    object["metadata"]["labels"] = {{"job", job}};
    return object;
  }
};

TEST_F(CacheTest, FindsByNameAndByIndexWithoutARequest) {
  auto client = open();
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(client->create(of_job("m" + std::to_string(i), i % 2 ? "odd" : "even")));
  Cache cache(*client, options());
  ASSERT_TRUE(cache.wait_filled(seconds(60)));
  const auto beside_watches = [&] { return server_.requests("") - server_.requests("watch=1"); };
  const int before = beside_watches();
  EXPECT_EQ(cache.find(kConfigMap, "job", "odd").size(), 3u);
  EXPECT_EQ(cache.count(kConfigMap, "job", "even"), 3u);
  EXPECT_EQ(cache.list(kConfigMap).size(), 6u);
  EXPECT_EQ(cache.list(kConfigMap, "other").size(), 0u);
  EXPECT_EQ(cache.get(key(kConfigMap, "m3"))->at("data"), (Object{{"x", "1"}}));
  EXPECT_FALSE(cache.get(key(kConfigMap, "m9")));
  EXPECT_EQ(beside_watches(), before);
  // An object moves from one value of an index to another, and is deleted.
  ASSERT_TRUE(client->update(of_job("m0", "odd")));
  ASSERT_TRUE(eventually([&] { return cache.count(kConfigMap, "job", "odd") == 4; }));
  EXPECT_EQ(cache.count(kConfigMap, "job", "even"), 2u);
  ASSERT_TRUE(client->remove(key(kConfigMap, "m0"), ""));
  ASSERT_TRUE(eventually([&] { return cache.count(kConfigMap, "job", "odd") == 3; }));
  for (int i = 1; i < 6; ++i) ASSERT_TRUE(client->remove(key(kConfigMap, "m" + std::to_string(i)), ""));
  ASSERT_TRUE(eventually([&] { return cache.count(kConfigMap) == 0; }));
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST_F(CacheTest, ReportsChangesWithThePreviousObject) {
  auto client = open();
  std::mutex mutex;
  std::vector<std::string> story;
  kube::CacheOptions with = options();
  with.on_change = [&](const Kind&, const Object* before, const Object* now) {
    const std::lock_guard lock(mutex);
    auto job = [](const Object* o) {
      return o ? (*o)["metadata"]["labels"]["job"].get<std::string>() : std::string("-");
    };
    story.push_back(job(before) + ">" + job(now));
  };
  Cache cache(*client, with);
  ASSERT_TRUE(cache.wait_filled(seconds(60)));
  ASSERT_TRUE(client->create(of_job("a", "x")));
  ASSERT_TRUE(eventually([&] { return cache.count(kConfigMap) == 1; }));
  ASSERT_TRUE(client->update(of_job("a", "y")));
  ASSERT_TRUE(eventually([&] { return cache.count(kConfigMap, "job", "y") == 1; }));
  ASSERT_TRUE(client->remove(key(kConfigMap, "a"), ""));
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return story.size() == 3;
  }));
  EXPECT_EQ(story, (std::vector<std::string>{"->x", "x>y", "y>-"}));
}

TEST_F(CacheTest, OwnWritesAreVisibleAtOnceAndNeverRevert) {
  auto client = open();
  const Object first = client->create(of_job("a", "x")).value();
  Cache cache(*client, options());
  ASSERT_TRUE(cache.wait_filled(seconds(60)));
  server_.inject({.match = "watch=1", .times = 1000000, .status = 503, .body = "{}"});
  server_.cut_all();
  const Object second = client->update(of_job("a", "y")).value();
  cache.put(second);
  EXPECT_EQ(cache.get(key(kConfigMap, "a")), second) << "without the watch";
  cache.put(first);
  EXPECT_EQ(cache.get(key(kConfigMap, "a")), second) << "ignores an older version";
  server_.clear_faults();
  ASSERT_TRUE(client->remove(key(kConfigMap, "a"), ""));
  ASSERT_TRUE(eventually([&] { return !cache.get(key(kConfigMap, "a")); }));
  cache.put(second);
  EXPECT_FALSE(cache.get(key(kConfigMap, "a"))) << "a late answer does not bring a deleted object back";
  const Object anew = client->create(of_job("a", "z")).value();
  cache.put(anew);
  EXPECT_EQ(cache.get(key(kConfigMap, "a")), anew);
}

// Its objects have lower versions than those that were seen, and what was deleted is there again with the same uid.
TEST_F(CacheTest, GoesBackWithAStoreThatWasRestored) {
  if (is_real()) GTEST_SKIP() << "only the in-memory server can be restored";
  auto client = open();
  for (const char* name : {"changes", "goes", "written", "stays"}) ASSERT_TRUE(client->create(of_job(name, "x")));
  const auto backup = api_.backup();
  Cache cache(*client, options());
  ASSERT_TRUE(cache.wait_filled(seconds(60)));
  ASSERT_TRUE(client->update(of_job("changes", "y")));
  ASSERT_TRUE(client->remove(key(kConfigMap, "goes"), ""));
  ASSERT_TRUE(client->create(of_job("comes", "y")));
  ASSERT_TRUE(
      eventually([&] { return cache.count(kConfigMap, "job", "y") == 2 && !cache.get(key(kConfigMap, "goes")); }));
  // No watch reports what is written, made and found missing now.
  server_.inject({.match = "watch=1", .times = 1000000, .status = 503, .body = "{}"});
  server_.cut_all();
  ASSERT_TRUE(eventually([&] { return live_watches() == 0; }));
  cache.put(client->update(of_job("written", "y")).value());
  cache.put(client->create(of_job("made", "y")).value());
  cache.drop(key(kConfigMap, "stays"));
  api_.restore(backup);
  const int read_again = server_.requests("configmaps/written");
  server_.clear_faults();
  EXPECT_TRUE(eventually([&] { return cache.count(kConfigMap, "job", "x") == 4 && cache.count(kConfigMap) == 4; }));
  EXPECT_EQ(server_.requests("configmaps/written"), read_again) << "the list brings it, not a recheck";
  const auto now = client->list(kConfigMap, "default").value();
  for (const Object& object : now) EXPECT_EQ(cache.get(key(kConfigMap, object["metadata"]["name"])), object);
  // And goes on from there, also with what had a later version once.
  ASSERT_TRUE(client->update(of_job("changes", "z")));
  EXPECT_TRUE(eventually([&] { return cache.count(kConfigMap, "job", "z") == 1; }));
}

TEST_F(CacheTest, TrimmedObjectsAreSmall) {
  auto client = open();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(client->create(config_map("m" + std::to_string(i), std::string(5000, 'x'))));
  kube::CacheOptions with = options();
  with.kinds[0].trim = [](Object& object) { object.erase("data"); };
  Cache cache(*client, with);
  ASSERT_TRUE(cache.wait_filled(seconds(60)));
  EXPECT_EQ(cache.count(kConfigMap), 20u);
  EXPECT_LT(cache.bytes(), 20u * 500);
}

}  // namespace
}  // namespace bsp::kube_test
