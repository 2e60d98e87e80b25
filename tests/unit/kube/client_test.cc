// The guarantees of kube::Client for the API client; tests/unit/local/store_test.cc has the same for files.
#include <set>

#include "operator/kube/modify.h"
#include "world.h"

namespace bsp::kube_test {
namespace {

using ClientTest = World;

TEST_F(ClientTest, CreateGivesIdentityAndDropsStatus) {
  auto client = open();
  install_widgets(*client);
  Object given = widget("a");
  given["status"] = {{"phase", "Succeeded"}};
  const Object made = client->create(given).value();
  EXPECT_EQ(made["metadata"]["generation"], 1);
  EXPECT_EQ(made["metadata"]["uid"].get<std::string>().size(), 36u);
  EXPECT_FALSE(made["metadata"]["resourceVersion"].get<std::string>().empty());
  EXPECT_FALSE(made.contains("status"));
  EXPECT_FALSE(made["metadata"].contains("managedFields"));
  EXPECT_EQ(client->get(key(kWidget, "a")).value(), made);
  const auto again = client->create(given);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
  EXPECT_FALSE(again.error().retryable);
  EXPECT_THAT(again.error().message, HasSubstr("already exists"));
}

TEST_F(ClientTest, SpecAndStatusAreWrittenSeparately) {
  auto client = open();
  install_widgets(*client);
  Object object = client->create(widget("a")).value();
  object["status"] = {{"phase", "Pausing"}};
  object["spec"]["rank"] = 7;
  Object after = client->update_status(object).value();
  EXPECT_EQ(after["spec"]["rank"], 1);
  EXPECT_EQ(after["status"]["phase"], "Pausing");
  EXPECT_EQ(after["metadata"]["generation"], 1);
  after["spec"]["rank"] = 7;
  after["status"]["phase"] = "Failed";
  after = client->update(after).value();
  EXPECT_EQ(after["spec"]["rank"], 7);
  EXPECT_EQ(after["status"]["phase"], "Pausing");
  EXPECT_EQ(after["metadata"]["generation"], 2);
}

TEST_F(ClientTest, StaleWritesConflictAndEqualWritesDoNothing) {
  auto client = open();
  install_widgets(*client);
  const Object old = client->create(widget("a")).value();
  Object next = old;
  next["metadata"]["labels"]["x"] = "y";
  const Object written = client->update(next).value();
  EXPECT_EQ(written["metadata"]["generation"], 1) << "a label doesn't change the spec";
  next["spec"]["rank"] = 3;  // still has the first resourceVersion
  const auto stale = client->update(next);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(stale.error().retryable);
  EXPECT_EQ(client->update(written).value()["metadata"]["resourceVersion"], written["metadata"]["resourceVersion"]);
  EXPECT_EQ(client->update_status(written).value()["metadata"]["resourceVersion"],
            written["metadata"]["resourceVersion"]);
}

// The server requires a version; a caller without one overwrites whatever is there.
TEST_F(ClientTest, WithoutAVersionTheLastWriterWins) {
  auto client = open();
  install_widgets(*client);
  ASSERT_TRUE(client->create(widget("a")));
  Object mine = widget("a");
  mine["spec"]["rank"] = 9;
  EXPECT_EQ(client->update(mine).value()["spec"]["rank"], 9);
  mine["status"] = {{"phase", "Running"}};
  EXPECT_EQ(client->update_status(mine).value()["status"]["phase"], "Running");
}

TEST_F(ClientTest, RecreatedObjectIsAnotherObject) {
  auto client = open();
  install_widgets(*client);
  Object old = client->create(widget("a")).value();
  ASSERT_TRUE(client->remove(key(kWidget, "a"), ""));
  ASSERT_TRUE(client->create(widget("a")));
  old["metadata"].erase("resourceVersion");
  EXPECT_EQ(client->update_status(old).error().code, ErrorCode::kConflict);
  const auto removed = client->remove(key(kWidget, "a"), old["metadata"]["uid"]);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(client->get(key(kWidget, "a")));
}

TEST_F(ClientTest, FinalizersDelayDeletion) {
  auto client = open();
  install_widgets(*client);
  Object object = widget("a");
  object["metadata"]["finalizers"] = {"kubetest.example/pods"};
  ASSERT_TRUE(client->create(object));
  ASSERT_TRUE(client->remove(key(kWidget, "a"), ""));
  Object held = client->get(key(kWidget, "a")).value();
  ASSERT_TRUE(held["metadata"].contains("deletionTimestamp"));
  held["metadata"].erase("finalizers");
  ASSERT_TRUE(client->update(held));
  EXPECT_EQ(client->get(key(kWidget, "a")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(client->remove(key(kWidget, "a"), "").error().code, ErrorCode::kNotFound);
}

TEST_F(ClientTest, ListComesInPagesSelectedAndSorted) {
  ApiClientOptions options = quick();
  options.page = 3;
  auto client = open(options);
  for (int i = 9; i >= 0; --i) {
    Object object = config_map("m" + std::to_string(i));
    object["metadata"]["labels"] = {{"job", i % 2 ? "odd" : "even"}, {"app", "test"}};
    ASSERT_TRUE(client->create(object));
  }
  const auto all = client->list(kConfigMap, "default", {{"app", "test"}}).value();
  ASSERT_EQ(all.size(), 10u);
  EXPECT_GE(server_.requests("GET /api/v1/namespaces/default/configmaps?limit=3"), 4);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(all[static_cast<std::size_t>(i)]["metadata"]["name"], "m" + std::to_string(i));
    EXPECT_EQ(all[static_cast<std::size_t>(i)]["kind"], "ConfigMap") << "the items of a list have none";
    EXPECT_EQ(all[static_cast<std::size_t>(i)]["apiVersion"], "v1");
  }
  EXPECT_EQ(client->list(kConfigMap, "default", {{"job", "odd"}, {"app", "test"}}).value().size(), 5u);
  EXPECT_TRUE(client->list(kTestNode, "default").value().empty()) << "Nodes have no namespace";
}

TEST_F(ClientTest, ExpiredListRestarts) {
  ApiClientOptions options = quick();
  options.page = 2;
  auto client = open(options);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(client->create(config_map("m" + std::to_string(i))));
  server_.inject({.match = "continue=",
                  .status = 410,
                  .body = R"({"kind":"Status","code":410,"reason":"Expired","message":"too old"})"});
  const auto all = client->list(kConfigMap, "default").value();
  EXPECT_EQ(all.size(), 5u) << "each once";
}

TEST_F(ClientTest, NamesOutsideTheCollectionAreRejected) {
  auto client = open();
  const int before = server_.requests("");
  for (const char* name : {"../x", "a/b", "..", "", "a%2fb"})
    EXPECT_EQ(client->get(key(kConfigMap, name)).error().code, ErrorCode::kInvalid) << name;
  EXPECT_EQ(client->get({kConfigMap, "../..", "x"}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(client->create(Object::array()).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(client->create(Object{{"kind", "ConfigMap"}}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(server_.requests(""), before) << "no request was sent";
}

TEST_F(ClientTest, ErrorsHaveTheServersReason) {
  auto client = open();
  install_widgets(*client);
  Object bad = widget("a");
  bad["spec"]["invalid"] = true;
  const auto refused = client->create(bad);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("spec.invalid"));
  const auto missing = client->get(key(kWidget, "nobody"));
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("nobody"));
  server_.inject(
      {.match = "POST",
       .status = 403,
       .body =
           R"({"kind":"Status","code":403,"reason":"Forbidden","message":"pods \"p\" is forbidden: exceeded quota: small"})"});
  const auto quota = client->create(config_map("q"));
  EXPECT_EQ(quota.error().code, ErrorCode::kRefused);
  EXPECT_TRUE(quota.error().retryable) << "capacity may become free";
  server_.inject({.match = "POST", .status = 413, .body = "<html>too large</html>\nmore"});
  EXPECT_THAT(client->create(config_map("q")).error().message, HasSubstr("413: <html>too large</html>"));
}

TEST_F(ClientTest, FindsAKindOnceItIsServed) {
  if (is_real()) GTEST_SKIP() << "only the in-memory server supports this";
  auto client = open();
  const auto early = client->create(widget("a"));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(early.error().retryable);
  EXPECT_THAT(early.error().message, HasSubstr("serve Widget of kubetest.example/v1"));
  install_widgets(*client);
  EXPECT_TRUE(client->create(widget("a")));
}

TEST_F(ClientTest, MergePatchWithAVersionLocks) {
  auto client = open();
  const Object made = client->create(config_map("a")).value();
  const Object merge = {{"metadata", {{"resourceVersion", made["metadata"]["resourceVersion"]}}},
                        {"data", {{"y", "2"}}}};
  EXPECT_EQ(client->patch(key(kConfigMap, "a"), merge).value()["data"], (Object{{"x", "1"}, {"y", "2"}}));
  const Object stale = {{"metadata", {{"resourceVersion", made["metadata"]["resourceVersion"]}}},
                        {"data", {{"y", "3"}}}};
  EXPECT_EQ(client->patch(key(kConfigMap, "a"), stale).error().code, ErrorCode::kConflict);
}

TEST_F(ClientTest, APodIsResizedByTheNamesOfItsContainers) {
  auto client = open();
  const auto container = [](const char* name, const char* cpu) {
    const Object both = {{"cpu", cpu}, {"memory", "16Mi"}};
    return Object{{"name", name}, {"image", "i"}, {"resources", {{"limits", both}, {"requests", both}}}};
  };
  const auto cpus = [](const Object& pod) {
    std::string all;
    for (const Object& c : pod["spec"]["containers"])
      for (const char* list : {"limits", "requests"}) all += c["resources"][list]["cpu"].get<std::string>() + " ";
    return all;
  };
  const Object resize = {
      {"spec",
       {{"containers",
         {{{"name", "app"}, {"resources", {{"limits", {{"cpu", "500m"}}}, {"requests", {{"cpu", "500m"}}}}}}}}}}};
  EXPECT_EQ(client->resize_pod(key(kTestPod, "p"), resize).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(client->create({{"apiVersion", "v1"},
                              {"kind", "Pod"},
                              {"metadata", {{"name", "p"}, {"namespace", "default"}}},
                              {"spec", {{"containers", {container("helper", "100m"), container("app", "250m")}}}}}));
  const auto resized = client->resize_pod(key(kTestPod, "p"), resize);
  ASSERT_TRUE(resized) << resized.error().message;
  EXPECT_EQ(cpus(*resized), "100m 100m 500m 500m ");
  EXPECT_EQ(cpus(client->get(key(kTestPod, "p")).value()), "100m 100m 500m 500m ");
  const auto none = client->resize_pod(key(kConfigMap, "a"), resize);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(none.error().message, HasSubstr("Kubernetes 1.33"));
  EXPECT_FALSE(none.error().retryable);
}

TEST_F(ClientTest, PatchStatusChangesOnlyStatusAndChecksTheVersion) {
  auto client = open();
  install_widgets(*client);
  Object made = client->create(widget("a")).value();
  made["status"] = {{"phase", "Running"}, {"superstep", 1}, {"old", true}};
  made = client->update_status(made).value();
  const auto merge = [&](const Object& object, int superstep) {
    return Object{{"metadata", {{"resourceVersion", object["metadata"]["resourceVersion"]}}},
                  {"spec", {{"rank", 9}}},
                  {"status", {{"superstep", superstep}, {"old", nullptr}}}};
  };
  const Object patched = client->patch_status(key(kWidget, "a"), merge(made, 2)).value();
  EXPECT_EQ(patched["status"], (Object{{"phase", "Running"}, {"superstep", 2}}));
  EXPECT_EQ(patched["spec"]["rank"], 1);
  EXPECT_EQ(client->patch_status(key(kWidget, "a"), merge(made, 3)).error().code, ErrorCode::kConflict);
}

TEST_F(ClientTest, RemoveSparesARecreatedObject) {
  auto client = open();
  const std::string uid = client->create(config_map("a")).value()["metadata"]["uid"];
  EXPECT_EQ(client->remove(key(kConfigMap, "a"), "11111111-1111-1111-1111-111111111111").error().code,
            ErrorCode::kConflict);
  EXPECT_TRUE(client->get(key(kConfigMap, "a")));
  EXPECT_TRUE(client->remove(key(kConfigMap, "a"), uid));
  EXPECT_EQ(client->get(key(kConfigMap, "a")).error().code, ErrorCode::kNotFound);
}

TEST(MergePatch, TurnsOneObjectIntoTheOtherOrFails) {
  const std::vector<Object> values = {Object::object(),
                                      {{"a", 1}},
                                      {{"a", 2}, {"b", {{"c", 1}, {"d", {1, 2, 3}}}}},
                                      {{"b", {{"c", 1}, {"d", {1, 3}}}}},
                                      {{"b", {{"d", Object::array()}, {"e", {{"f", "x"}}}}}},
                                      {{"b", 7}, {"g", Object::array({nullptr, {{"h", nullptr}}})}},
                                      {{"b", {{"e", Object::object()}}}}};
  for (const Object& before : values)
    for (const Object& after : values) {
      const auto patch = kube::merge_patch(before, after);
      ASSERT_TRUE(patch) << before << " -> " << after;
      EXPECT_EQ(patch->empty(), before == after);
      Object made = before;
      made.merge_patch(*patch);
      EXPECT_EQ(made, after) << before << " " << *patch;
    }
  EXPECT_EQ(kube::merge_patch(values[2], {{"a", 1}, {"b", {{"c", 1}, {"d", {1, 2, 3}}}}}), (Object{{"a", 1}}))
      << "no more";
  EXPECT_FALSE(kube::merge_patch({{"a", 1}}, {{"a", {{"b", nullptr}}}}));
  EXPECT_FALSE(kube::merge_patch({{"a", 1}}, {{"a", nullptr}}));
  EXPECT_FALSE(kube::merge_patch(1, Object::object()));
}

// Eight threads increment one counter with optimistic locking; none of the increments may be lost.
TEST_F(ClientTest, ConcurrentWritersLoseNoUpdate) {
  auto client = open();
  ASSERT_TRUE(client->create(config_map("counter", "0")));
  std::vector<std::thread> writers;
  for (int w = 0; w < 8; ++w)
    writers.emplace_back([&] {
      for (int left = 5; left > 0;) {
        Object now = client->get(key(kConfigMap, "counter")).value();
        now["data"]["x"] = std::to_string(std::stoi(now["data"]["x"].get<std::string>()) + 1);
        const auto done = client->update(now);
        if (done)
          --left;
        else
          ASSERT_EQ(done.error().code, ErrorCode::kConflict) << done.error().message;
      }
    });
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(client->get(key(kConfigMap, "counter")).value()["data"]["x"], "40");
}

TEST_F(ClientTest, ConnectionsAreKeptAlive) {
  auto client = open();
  ASSERT_TRUE(client->create(config_map("a")));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(client->get(key(kConfigMap, "a")));
  EXPECT_EQ(server_.connections(), 1);
}

}  // namespace
}  // namespace bsp::kube_test
