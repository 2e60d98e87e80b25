// The object store: the guarantees of an API server, with two processes and killed writers.
#include "operator/local/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "operator/local/files.h"

namespace bsp::local {
namespace {

using kube::EventType;
using kube::Key;
using kube::Object;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() {
    char path[] = "/tmp/bsp-store-test-XXXXXX";
    root_ = ::mkdtemp(path);
  }
  ~StoreTest() override { EXPECT_TRUE(remove_tree(root_)); }

  std::unique_ptr<Store> open(Admission admission = {}) {
    return std::move(Store::open({.root = root_, .admission = std::move(admission)})).value();
  }
  static Object thing(const std::string& name, const std::string& kind = "RankMigration") {
    return {{"apiVersion", kind == "RankMigration" ? "migbsp.io/v1alpha1" : "v1"},
            {"kind", kind},
            {"metadata", {{"name", name}, {"namespace", "default"}}},
            {"spec", {{"rank", 1}}}};
  }
  static Key key(const std::string& name) { return {kRankMigration, "default", name}; }

  std::string root_;
};

TEST_F(StoreTest, CreateGivesIdentityAndDropsStatus) {
  auto store = open();
  Object given = thing("a");
  given["status"] = {{"phase", "Succeeded"}};
  const Object made = store->create(given).value();
  EXPECT_EQ(made["metadata"]["generation"], 1);
  EXPECT_EQ(made["metadata"]["uid"].get<std::string>().size(), 36u);
  EXPECT_FALSE(made["metadata"]["resourceVersion"].get<std::string>().empty());
  EXPECT_FALSE(made.contains("status"));
  EXPECT_EQ(store->get(key("a")).value(), made);
  EXPECT_EQ(store->create(given).error().code, ErrorCode::kConflict);
}

TEST_F(StoreTest, SpecAndStatusAreWrittenSeparately) {
  auto store = open();
  Object object = store->create(thing("a")).value();
  object["status"] = {{"phase", "Pausing"}};
  object["spec"]["rank"] = 7;
  Object after = store->update_status(object).value();
  EXPECT_EQ(after["spec"]["rank"], 1);
  EXPECT_EQ(after["status"]["phase"], "Pausing");
  EXPECT_EQ(after["metadata"]["generation"], 1);
  after["spec"]["rank"] = 7;
  after["status"]["phase"] = "Failed";
  after = store->update(after).value();
  EXPECT_EQ(after["spec"]["rank"], 7);
  EXPECT_EQ(after["status"]["phase"], "Pausing");
  EXPECT_EQ(after["metadata"]["generation"], 2);
}

TEST_F(StoreTest, StaleWritesConflictAndEqualWritesDoNothing) {
  auto store = open();
  const Object old = store->create(thing("a")).value();
  Object next = old;
  next["metadata"]["labels"]["x"] = "y";
  const Object written = store->update(next).value();
  EXPECT_EQ(written["metadata"]["generation"], 1) << "a label doesn't change the spec";
  next["spec"]["rank"] = 3;  // still has the first resourceVersion
  const auto stale = store->update(next);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(stale.error().retryable);
  EXPECT_EQ(store->update(written).value()["metadata"]["resourceVersion"], written["metadata"]["resourceVersion"]);
  EXPECT_EQ(store->update_status(written).value()["metadata"]["resourceVersion"],
            written["metadata"]["resourceVersion"]);
}

TEST_F(StoreTest, PatchOfAStatusChangesOnlyStatusAndChecksTheVersion) {
  auto store = open();
  Object made = store->create(thing("a")).value();
  made["status"] = {{"phase", "Running"}, {"superstep", 1}, {"old", true}};
  made = store->update_status(made).value();
  const auto merge = [](const Object& object, int superstep) {
    return Object{{"metadata", {{"resourceVersion", object["metadata"]["resourceVersion"]}}},
                  {"spec", {{"rank", 9}}},
                  {"status", {{"superstep", superstep}, {"old", nullptr}}}};
  };
  const Object patched = store->patch_status(key("a"), merge(made, 2)).value();
  EXPECT_EQ(patched["status"], (Object{{"phase", "Running"}, {"superstep", 2}}));
  EXPECT_EQ(patched["spec"]["rank"], 1);
  EXPECT_EQ(store->patch_status(key("a"), merge(made, 3)).error().code, ErrorCode::kConflict);
  EXPECT_EQ(store->get(key("a")).value(), patched);
  EXPECT_EQ(store->patch_status(key("b"), merge(made, 3)).error().code, ErrorCode::kNotFound);
}

TEST_F(StoreTest, APodIsResizedByTheNamesOfItsContainers) {
  auto store = open();
  Object pod = thing("p", "Pod");
  pod["spec"] = {{"containers",
                  {{{"name", "helper"}, {"image", "i"}},
                   {{"name", "app"}, {"image", "i"}, {"resources", {{"limits", {{"cpu", "1"}, {"memory", "1Gi"}}}}}}}}};
  const Object made = store->create(pod).value();
  const Key at{{"v1", "Pod"}, "default", "p"};
  const auto resize = [](const char* name, const char* cpu) {
    return Object{{"spec", {{"containers", {{{"name", name}, {"resources", {{"limits", {{"cpu", cpu}}}}}}}}}}};
  };
  const Object resized = store->resize_pod(at, resize("app", "500m")).value();
  Object wanted = made["spec"];
  wanted["containers"][1]["resources"]["limits"]["cpu"] = "500m";
  EXPECT_EQ(resized["spec"], wanted) << "all else stays";
  EXPECT_EQ(store->get(at).value(), resized);
  EXPECT_EQ(store->resize_pod(at, resize("app", "500m")).value(), resized) << "nothing has changed";
  EXPECT_THAT(store->resize_pod(at, resize("app-1", "2")).error().message, HasSubstr("pod p has no container app-1"));
  EXPECT_EQ(store->get(at).value(), resized);
  EXPECT_EQ(store->resize_pod({{"v1", "Pod"}, "default", "none"}, resize("app", "2")).error().code,
            ErrorCode::kNotFound);
}

TEST_F(StoreTest, RecreatedObjectIsAnotherObject) {
  auto store = open();
  Object old = store->create(thing("a")).value();
  ASSERT_TRUE(store->remove(key("a"), ""));
  ASSERT_TRUE(store->create(thing("a")));
  old["metadata"].erase("resourceVersion");
  EXPECT_EQ(store->update_status(old).error().code, ErrorCode::kConflict);
}

TEST_F(StoreTest, FinalizersDelayDeletion) {
  auto store = open();
  Object object = thing("a");
  object["metadata"]["finalizers"] = {"migbsp.io/pods"};
  ASSERT_TRUE(store->create(object));
  ASSERT_TRUE(store->remove(key("a"), ""));
  Object held = store->get(key("a")).value();
  ASSERT_TRUE(held["metadata"].contains("deletionTimestamp"));
  held["metadata"].erase("finalizers");
  ASSERT_TRUE(store->update(held));
  EXPECT_EQ(store->get(key("a")).error().code, ErrorCode::kNotFound);
}

TEST_F(StoreTest, BoundPodStaysUntilTheNodePurgesIt) {
  auto store = open();
  Object pod = thing("p", "Pod");
  pod["spec"] = {{"nodeName", "slow-0"}};
  const Object made = store->create(pod).value();
  const Key pod_key{kPod, "default", "p"};
  ASSERT_TRUE(store->remove(pod_key, ""));
  EXPECT_TRUE(store->get(pod_key).value()["metadata"].contains("deletionTimestamp"));
  ASSERT_TRUE(store->purge(pod_key, "another uid"));
  EXPECT_TRUE(store->get(pod_key));
  ASSERT_TRUE(store->purge(pod_key, made["metadata"]["uid"]));
  EXPECT_FALSE(store->get(pod_key));
  ASSERT_TRUE(store->create(thing("unscheduled", "Pod")));
  ASSERT_TRUE(store->remove({kPod, "default", "unscheduled"}, ""));
  EXPECT_FALSE(store->get({kPod, "default", "unscheduled"}));
}

TEST_F(StoreTest, ListSelectsByLabelsAndSortsByName) {
  auto store = open();
  for (const char* name : {"c", "a", "b"}) {
    Object object = thing(name);
    object["metadata"]["labels"] = {{"job", std::string(name) == "b" ? "other" : "lbm"}};
    ASSERT_TRUE(store->create(object));
  }
  const auto found = store->list(kRankMigration, "default", {{"job", "lbm"}}).value();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0]["metadata"]["name"], "a");
  EXPECT_EQ(found[1]["metadata"]["name"], "c");
  EXPECT_TRUE(store->list(kNode, "default").value().empty());
}

TEST_F(StoreTest, NamesOutsideTheDirectoryAreRejected) {
  auto store = open();
  for (const char* name : {"../x", "a/b", ".hidden", "", "UPPER"})
    EXPECT_EQ(store->create(thing(name)).error().code, ErrorCode::kInvalid) << name;
  EXPECT_EQ(store->get({kPod, "../..", "x"}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(Store::open({.root = root_, .name_space = "a/b"}).error().code, ErrorCode::kInvalid);
}

TEST_F(StoreTest, AdmissionChangesAndRejects) {
  auto store = open([](const Object& next, const Object* current) -> Result<Object> {
    if (current && next["spec"] != (*current)["spec"]) return fail(ErrorCode::kInvalid, "spec: is immutable");
    Object object = next;
    object["spec"]["wave"] = 0;
    return object;
  });
  Object made = store->create(thing("a")).value();
  EXPECT_EQ(made["spec"]["wave"], 0);
  made["spec"]["rank"] = 9;
  EXPECT_EQ(store->update(made).error().message, "spec: is immutable");
}

TEST_F(StoreTest, WatchReportsEveryKindOfChange) {
  auto store = open();
  ASSERT_TRUE(store->create(thing("a")));
  std::string cursor;
  auto first = store->wait({kRankMigration, kPod}, "default", cursor, milliseconds(0)).value();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].type, EventType::kAdded);
  EXPECT_TRUE(store->wait({}, "default", cursor, milliseconds(0)).value().empty());

  Object a = store->get(key("a")).value();
  a["status"] = {{"phase", "Pausing"}};
  ASSERT_TRUE(store->update_status(a));
  ASSERT_TRUE(store->create(thing("b")));
  auto events = store->wait({}, "default", cursor, milliseconds(0)).value();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].type, EventType::kModified);
  EXPECT_EQ(events[0].object["status"]["phase"], "Pausing");
  EXPECT_EQ(events[1].type, EventType::kAdded);

  ASSERT_TRUE(store->remove(key("a"), ""));
  ASSERT_TRUE(store->create(thing("a")));
  ASSERT_TRUE(store->remove(key("b"), ""));
  events = store->wait({}, "default", cursor, milliseconds(0)).value();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].type, EventType::kDeleted);
  EXPECT_EQ(events[0].object["status"]["phase"], "Pausing") << "its last known content";
  EXPECT_EQ(events[1].type, EventType::kAdded);
  EXPECT_EQ(events[2].type, EventType::kDeleted);
  EXPECT_EQ(events[2].object["metadata"]["name"], "b");
}

TEST_F(StoreTest, AnotherProcessWakesAWaiter) {
  auto store = open();
  std::string cursor;
  ASSERT_TRUE(store->wait({kRankMigration}, "default", cursor, milliseconds(0)));
  const pid_t child = ::fork();
  if (child == 0) {
    auto other = open();
    ::_exit(other->create(thing("from-outside")) ? 0 : 1);
  }
  const auto events = store->wait({}, "default", cursor, std::chrono::seconds(20)).value();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].object["metadata"]["name"], "from-outside");
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Two processes increment one counter with optimistic locking; none of the increments may be lost.
TEST_F(StoreTest, ConcurrentProcessesLoseNoUpdate) {
  auto store = open();
  Object counter = thing("counter");
  counter["spec"] = {{"count", 0}};
  ASSERT_TRUE(store->create(counter));
  auto count_up = [&](Store& s, int times) {
    while (times > 0) {
      Object now = s.get(key("counter")).value();
      now["spec"]["count"] = now["spec"]["count"].get<int>() + 1;
      const auto done = s.update(now);
      if (done)
        --times;
      else if (done.error().code != ErrorCode::kConflict)
        return false;
    }
    return true;
  };
  const pid_t child = ::fork();
  if (child == 0) {
    auto other = open();
    ::_exit(count_up(*other, 200) ? 0 : 1);
  }
  EXPECT_TRUE(count_up(*store, 200));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const Object end = store->get(key("counter")).value();
  EXPECT_EQ(end["spec"]["count"], 400);
  EXPECT_EQ(end["metadata"]["generation"], 401);
}

// A writer is killed mid-write again and again: the object stays readable, its version never decreases, and the lock is
// released.
TEST_F(StoreTest, KilledWriterLeavesTheOldOrTheNewObject) {
  auto store = open();
  ASSERT_TRUE(store->create(thing("a")));
  std::uint64_t last_version = 0;
  for (int round = 0; round < 15; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto other = open();
      for (int i = 0;; ++i) {
        Object now = other->get(key("a")).value();
        now["spec"]["rank"] = i;
        now["spec"]["filler"] = std::string(20000, 'x');
        (void)other->update(now);
      }
    }
    // Let it write a few versions, then kill it wherever it is.
    std::string cursor;
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(store->wait({kRankMigration}, "default", cursor, std::chrono::seconds(10)));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const auto read = store->get(key("a"));
    ASSERT_TRUE(read) << read.error().message;
    const auto version = std::stoull((*read)["metadata"]["resourceVersion"].get<std::string>());
    EXPECT_GT(version, last_version);
    last_version = version;
    Object mine = *read;
    mine["spec"]["rank"] = -round - 1;
    ASSERT_TRUE(store->update(mine)) << "the lock is free";
  }
}

TEST_F(StoreTest, NamesADamagedFile) {
  auto store = open();
  ASSERT_TRUE(store->create(thing("a")));
  std::ofstream(root_ + "/default/RankMigration/a.json") << "{ half";
  EXPECT_THAT(store->get(key("a")).error().message, HasSubstr("a.json is not an object"));
}

TEST_F(StoreTest, WatchSurvivesTheRemovalOfItsDirectory) {
  auto store = open();
  ASSERT_TRUE(store->create(thing("a")));
  std::string cursor;
  ASSERT_TRUE(store->wait({kRankMigration}, "default", cursor, milliseconds(0)));
  ASSERT_TRUE(remove_tree(root_ + "/default"));
  const auto gone = store->wait({}, "default", cursor, std::chrono::seconds(10)).value();
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].type, EventType::kDeleted);
  ASSERT_TRUE(store->create(thing("b")));
  EXPECT_EQ(store->wait({}, "default", cursor, std::chrono::seconds(10)).value().size(), 1u);
}

TEST(Files, RemoveTreeDoesNotFollowLinks) {
  char path[] = "/tmp/bsp-store-test-XXXXXX";
  const std::string root = ::mkdtemp(path);
  ASSERT_TRUE(make_directories(root + "/precious"));
  std::ofstream(root + "/precious/file") << "x";
  ASSERT_TRUE(make_directories(root + "/doomed/deep"));
  std::filesystem::create_directory_symlink(root + "/precious", root + "/doomed/link");
  ASSERT_TRUE(remove_tree(root + "/doomed"));
  EXPECT_FALSE(std::filesystem::exists(root + "/doomed"));
  EXPECT_TRUE(std::filesystem::exists(root + "/precious/file"));
  EXPECT_TRUE(remove_tree(root + "/never-was"));
  ASSERT_TRUE(remove_tree(root));
}

TEST(Files, LockIsExclusive) {
  char path[] = "/tmp/bsp-store-test-XXXXXX";
  const std::string root = ::mkdtemp(path);
  {
    const Fd held = std::move(lock_file(root + "/lock")).value();
    EXPECT_EQ(try_lock_file(root + "/lock").error().code, ErrorCode::kConflict);
  }
  EXPECT_TRUE(try_lock_file(root + "/lock"));
  ASSERT_TRUE(remove_tree(root));
}

TEST_F(StoreTest, RemoveChecksTheUid) {
  auto store = open();
  const std::string before = store->create(thing("a")).value()["metadata"]["uid"];
  ASSERT_TRUE(store->remove(key("a"), before));
  const Object again = store->create(thing("a")).value();
  EXPECT_EQ(store->remove(key("a"), before).error().code, ErrorCode::kConflict);
  EXPECT_EQ(store->get(key("a")).value(), again);
  EXPECT_TRUE(store->remove(key("a"), again["metadata"]["uid"]));
}

}  // namespace
}  // namespace bsp::local
