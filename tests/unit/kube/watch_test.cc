// Watching: every object once, then every change once, whatever happens to the connection.
#include <set>

#include "world.h"

namespace bsp::kube_test {
namespace {

class WatchTest : public World {
 protected:
  // Collects the events of wait() until `holds`.
  template <class F>
  bool follow(ApiClient& client, std::string& cursor, const std::vector<Kind>& kinds, F&& holds) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(60);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      auto events = client.wait(kinds, "default", cursor, milliseconds(100));
      if (!events) {
        last_error_ = events.error().message;
        continue;
      }
      for (auto& event : *events) {
        const std::string name = event.object["metadata"]["name"];
        // A consumer must see consistent events, whatever went on underneath.
        if (event.type == EventType::kAdded)
          EXPECT_TRUE(there_.insert({name, event.object}).second) << name << " twice";
        else
          EXPECT_TRUE(there_.contains(name)) << name << " was never added";
        if (event.type == EventType::kDeleted)
          there_.erase(name);
        else
          there_[name] = event.object;
        events_.push_back(std::move(event));
      }
    }
    return true;
  }
  // The final state equals the server's.
  bool agrees(ApiClient& client) {
    const auto all = client.list(kConfigMap, "default");
    if (!all || all->size() != there_.size()) return false;
    for (const Object& object : *all) {
      const auto it = there_.find(object["metadata"]["name"]);
      if (it == there_.end() || it->second["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"])
        return false;
    }
    return true;
  }
  bool catch_up(ApiClient& client, std::string& cursor) {
    return follow(client, cursor, {kConfigMap}, [&] { return agrees(client); });
  }
  void change(ApiClient& client, const std::string& name, const std::string& value) {
    const auto done = client.update(config_map(name, value));
    ASSERT_TRUE(done) << done.error().message;
  }

  std::map<std::string, Object> there_;
  std::vector<kube::WatchEvent> events_;
  std::string last_error_;
  const std::string kWatch = "configmaps?watch=1";
};

TEST_F(WatchTest, ReportsEveryKindOfChange) {
  auto client = open();
  ASSERT_TRUE(client->create(config_map("a")));
  std::string cursor;
  auto first = client->wait({kConfigMap, kTestPod}, "default", cursor, milliseconds(0)).value();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].type, EventType::kAdded);
  EXPECT_EQ(first[0].object["kind"], "ConfigMap");
  EXPECT_FALSE(first[0].object["metadata"].contains("managedFields"));
  change(*client, "a", "2");
  ASSERT_TRUE(client->create(config_map("b")));
  ASSERT_TRUE(client->remove(key(kConfigMap, "a"), ""));
  std::vector<kube::WatchEvent> events;
  ASSERT_TRUE(eventually([&] {
    const auto more = client->wait({}, "default", cursor, milliseconds(50)).value();
    events.insert(events.end(), more.begin(), more.end());
    return events.size() >= 3;
  }));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].type, EventType::kModified);
  EXPECT_EQ(events[0].object["data"]["x"], "2");
  EXPECT_EQ(events[1].type, EventType::kAdded);
  EXPECT_EQ(events[2].type, EventType::kDeleted);
  EXPECT_EQ(events[2].object["data"]["x"], "2") << "its last known content";
}

TEST_F(WatchTest, FirstListComesInPagesOrInParts) {
  ApiClientOptions options = quick();
  options.page = 4;
  auto client = open(options);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(client->create(config_map("m" + std::to_string(100 + i))));
  std::string whole, parts;
  EXPECT_EQ(client->wait({kConfigMap}, "default", whole, milliseconds(0)).value().size(), 20u);
  std::set<std::string> names;
  bool complete = false;
  while (!complete) {
    const auto part = client->wait_part({kConfigMap}, "default", parts, seconds(5), complete).value();
    for (const auto& event : part) EXPECT_TRUE(names.insert(event.object["metadata"]["name"]).second);
  }
  EXPECT_EQ(names.size(), 20u);
}

TEST_F(WatchTest, TrimsObjects) {
  ApiClientOptions options = quick();
  options.trim = [](const Kind& kind, Object& object) {
    if (kind == kConfigMap) object.erase("data");
  };
  auto client = open(options);
  ASSERT_TRUE(client->create(config_map("a")));
  std::string cursor;
  EXPECT_FALSE(client->wait({kConfigMap}, "default", cursor, milliseconds(0)).value()[0].object.contains("data"));
  EXPECT_TRUE(client->get(key(kConfigMap, "a")).value().contains("data"));
}

TEST_F(WatchTest, BrokenWatchResumesWithoutAListOrAGap) {
  auto client = open();
  ASSERT_TRUE(client->create(config_map("a")));
  std::string cursor;
  ASSERT_TRUE(catch_up(*client, cursor));
  const int lists = server_.requests("GET /api/v1/namespaces/default/configmaps?limit");
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(eventually([&] { return live_watches() == 1; }));
    server_.cut_all();
    change(*client, "a", std::to_string(i + 10));
    ASSERT_TRUE(client->create(config_map("n" + std::to_string(i))));
    ASSERT_TRUE(follow(*client, cursor, {kConfigMap}, [&] { return there_.contains("n" + std::to_string(i)); }));
  }
  EXPECT_EQ(server_.requests("GET /api/v1/namespaces/default/configmaps?limit"), lists);
  EXPECT_EQ(there_["a"]["data"]["x"], "14");
  EXPECT_EQ(events_.size(), 1u + 5u + 5u) << "each change once";
}

// Bytes 0 to 2000 cover the head, the middle of an event and the middle of a chunk's length.
TEST_F(WatchTest, TruncatedAnswerLosesNothing) {
  auto client = open();
  std::string cursor;
  ASSERT_TRUE(client->create(config_map("a")));
  ASSERT_TRUE(catch_up(*client, cursor));
  for (std::size_t after : {0, 40, 120, 150, 400, 700, 1100, 2000}) {
    ASSERT_TRUE(eventually([&] { return live_watches() == 1; }));
    server_.inject({.match = kWatch, .what = after % 200 ? Fault::kCut : Fault::kEnd, .after = after});
    server_.cut_all();
    for (int i = 0; i < 6; ++i) change(*client, "a", std::format("{}-{}", after, i));
    ASSERT_TRUE(catch_up(*client, cursor)) << after << " " << last_error_;
  }
}

TEST_F(WatchTest, CatchesUpAfterA410) {
  auto client = open();
  for (const char* name : {"stays", "goes", "changes", "anew"}) ASSERT_TRUE(client->create(config_map(name)));
  std::string cursor;
  ASSERT_TRUE(catch_up(*client, cursor));
  events_.clear();
  // The watch is broken and can't reconnect while objects change and the history is compacted.
  server_.inject({.match = kWatch, .times = 1000000, .status = 503, .body = "{}"});
  server_.cut_all();
  auto other = open();
  ASSERT_TRUE(eventually([&] { return live_watches() == 0; }));
  ASSERT_TRUE(other->remove(key(kConfigMap, "goes"), ""));
  change(*other, "changes", "2");
  ASSERT_TRUE(other->remove(key(kConfigMap, "anew"), ""));
  ASSERT_TRUE(other->create(config_map("anew", "3")));
  ASSERT_TRUE(other->create(config_map("new")));
  compact();
  server_.clear_faults();
  ASSERT_TRUE(
      follow(*client, cursor, {kConfigMap}, [&] { return there_.contains("new") && !there_.contains("goes"); }));
  EXPECT_TRUE(agrees(*client));
  std::map<std::string, std::string> story;
  for (const auto& event : events_) story[event.object["metadata"]["name"]] += "AMD"[static_cast<int>(event.type)];
  EXPECT_EQ(story, (std::map<std::string, std::string>{
                       {"anew", "DA"}, {"changes", "M"}, {"goes", "D"}, {"new", "A"}, {"stays", "M"}}));
}

TEST_F(WatchTest, BookmarksAdvanceTheResumeVersion) {
  if (is_real()) GTEST_SKIP() << "only the in-memory server supports this";
  auto client = open();
  ASSERT_TRUE(client->create(config_map("a")));
  std::string cursor;
  ASSERT_TRUE(catch_up(*client, cursor));
  // Other kinds change a lot, and only a bookmark advances the watch's version.
  Object node = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", "n"}}}};
  const Object last = client->create(node).value();
  const std::string version = last["metadata"]["resourceVersion"];
  ASSERT_TRUE(eventually([&] {
    if (live_watches() != 1) return false;
    const int sent = api_.bookmarks_sent();
    api_.bookmark();
    if (!eventually([&] { return api_.bookmarks_sent() > sent; })) return false;
    // The next watch's start version shows whether the bookmark was used.
    const int before = server_.requests(kWatch);
    server_.cut_all();
    return server_.wait_for_requests(kWatch, before + 1) &&
           server_.requests("watch=1&allowWatchBookmarks=true&resourceVersion=" + version + "&") > 0;
  }));
  compact();  // would be a 410 without the bookmark
  const int lists = server_.requests("configmaps?limit");
  server_.cut_all();
  ASSERT_TRUE(client->create(config_map("b")));
  ASSERT_TRUE(follow(*client, cursor, {kConfigMap}, [&] { return there_.contains("b"); }));
  EXPECT_EQ(server_.requests("configmaps?limit"), lists) << "no list was needed";
}

TEST_F(WatchTest, IgnoresEventsInTheWrongOrder) {
  auto client = open();
  ASSERT_TRUE(client->create(config_map("a")));
  ASSERT_TRUE(client->create(config_map("b")));
  std::string cursor;
  ASSERT_TRUE(catch_up(*client, cursor));
  const int lists = server_.requests("configmaps?limit");
  ASSERT_TRUE(eventually([&] { return live_watches() == 1; }))
      << "otherwise the fault may hit the watch that is broken next";
  server_.inject({.match = kWatch, .what = Fault::kSwap, .after = 0});
  server_.cut_all();
  change(*client, "a", "2");                              // held back …
  ASSERT_TRUE(client->remove(key(kConfigMap, "a"), ""));  // … and sent behind its own deletion
  ASSERT_TRUE(follow(*client, cursor, {kConfigMap}, [&] { return server_.requests("configmaps?limit") > lists; }));
  ASSERT_TRUE(catch_up(*client, cursor));
  EXPECT_FALSE(there_.contains("a")) << "an old event must not bring a deleted object back";
}

TEST_F(WatchTest, StalledWatchTimesOut) {
  ApiClientOptions options = quick();
  options.watch = seconds(1);
  options.grace = seconds(1);
  auto client = open(options);
  ASSERT_TRUE(client->create(config_map("a")));
  std::string cursor;
  server_.inject({.match = kWatch, .what = Fault::kStall, .after = 130});
  ASSERT_TRUE(catch_up(*client, cursor));
  ASSERT_TRUE(server_.wait_for_requests(kWatch, 1));
  change(*client, "a", "2");
  ASSERT_TRUE(follow(*client, cursor, {kConfigMap}, [&] { return there_["a"]["data"]["x"] == "2"; }));
  EXPECT_GE(server_.requests(kWatch), 2);
}

TEST_F(WatchTest, UnansweredWriteEndsNoWatch) {
  ApiClientOptions options = quick();
  options.api.attempt = seconds(1);
  options.api.call = seconds(2);
  options.watch = seconds(3600);
  ASSERT_TRUE(open()->create(config_map("a")));
  auto client = open(options);
  std::string cursor;
  ASSERT_TRUE(catch_up(*client, cursor));
  ASSERT_TRUE(server_.wait_for_requests(kWatch, 1));
  server_.inject({.match = "POST", .what = Fault::kStall, .times = 1000, .after = 0});  // like a slow webhook
  EXPECT_EQ(client->create(config_map("b")).error().code, ErrorCode::kTimeout);
  change(*client, "a", "2");
  ASSERT_TRUE(follow(*client, cursor, {kConfigMap}, [&] { return there_["a"]["data"]["x"] == "2"; }));
  EXPECT_EQ(server_.requests(kWatch), 1);
}

TEST_F(WatchTest, UnansweredReadEndsTheWatches) {
  ApiClientOptions options = quick();
  options.api.attempt = seconds(1);
  options.watch = seconds(3600);
  ASSERT_TRUE(open()->create(config_map("a")));
  auto client = open(options);
  std::string cursor;
  ASSERT_TRUE(catch_up(*client, cursor));
  // This watch would stay silent for an hour; a get that stalls once shows that the connection is broken.
  ASSERT_TRUE(eventually([&] { return live_watches() == 1; }));
  server_.inject({.match = kWatch, .what = Fault::kStall, .after = 130});
  server_.cut_all();
  ASSERT_TRUE(server_.wait_for_requests(kWatch, 2));
  server_.inject({.match = "configmaps/a", .what = Fault::kStall, .after = 0});
  EXPECT_TRUE(client->get(key(kConfigMap, "a"))) << "retried";
  change(*client, "a", "2");
  ASSERT_TRUE(follow(*client, cursor, {kConfigMap}, [&] { return there_["a"]["data"]["x"] == "2"; }));
}

TEST_F(WatchTest, ReportsWhyTheFirstListFails) {
  auto client = open();
  std::string cursor;
  server_.inject({.match = "configmaps?limit",
                  .status = 403,
                  .body = R"({"kind":"Status","code":403,"reason":"Forbidden","message":"configmaps is forbidden"})"});
  const auto first = client->wait({kConfigMap}, "default", cursor, milliseconds(0));
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, ErrorCode::kRefused);
  EXPECT_FALSE(cursor.empty()) << "the same cursor continues";
  ASSERT_TRUE(client->create(config_map("a")));
  ASSERT_TRUE(follow(*client, cursor, {kConfigMap}, [&] { return there_.contains("a"); }));
}

TEST_F(WatchTest, FailedWatchHonoursRetryAfter) {
  auto client = open();
  ASSERT_TRUE(client->create(config_map("a")));
  server_.inject({.match = kWatch, .times = 2, .status = 429, .headers = "Retry-After: 1\r\n", .body = "{}"});
  const auto began = std::chrono::steady_clock::now();
  std::string cursor;
  ASSERT_TRUE(catch_up(*client, cursor));
  ASSERT_TRUE(server_.wait_for_requests(kWatch, 3));
  EXPECT_GE(std::chrono::steady_clock::now() - began, seconds(2)) << "two pauses of at least a second";
}

TEST_F(WatchTest, CloseWakesAWaiter) {
  auto client = open();
  std::string cursor;
  ASSERT_TRUE(client->wait({kConfigMap}, "default", cursor, milliseconds(0)));
  std::thread waiter([&] { EXPECT_TRUE(client->wait({}, "default", cursor, seconds(3600)).value().empty()); });
  client->close();
  waiter.join();
  EXPECT_EQ(client->get(key(kConfigMap, "a")).error().code, ErrorCode::kUnavailable);
}

// Connections break at random places while four writers work. In the end both sides agree, and the events on the way
// were consistent.
TEST_F(WatchTest, ConvergesAfterRandomFaults) {
  ApiClientOptions options = quick();
  options.page = 3;
  auto client = open(options);
  auto writer = open();
  std::string cursor;
  std::atomic<bool> stop = false;
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w)
    writers.emplace_back([&, w] {
      for (int i = 0; !stop; ++i) {
        const std::string name = std::format("w{}-{}", w, i % 7);
        (void)writer->create(config_map(name));
        (void)writer->update(config_map(name, std::to_string(i)));
        if (i % 3 == 0) (void)writer->remove(key(kConfigMap, name), "");
      }
    });
  for (int round = 0; round < 40; ++round) {
    const Fault::What what[] = {Fault::kCut, Fault::kEnd, Fault::kSwap};
    server_.inject({.match = round % 2 ? "watch=1" : "limit=3",
                    .what = what[round % 3],
                    .after = static_cast<std::size_t>(round * 37 % 900)});
    if (round % 5 == 4) compact();
    if (round % 3 == 2) server_.cut_all();
    const std::size_t before = events_.size();
    ASSERT_TRUE(follow(*client, cursor, {kConfigMap}, [&] { return events_.size() > before + 3; })) << last_error_;
  }
  stop = true;
  for (auto& thread : writers) thread.join();
  server_.clear_faults();
  ASSERT_TRUE(catch_up(*client, cursor)) << last_error_;
}

}  // namespace
}  // namespace bsp::kube_test
