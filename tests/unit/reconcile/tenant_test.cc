// A tenant can do nothing to the others. With a whole shell over a real store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <format>
#include <thread>

#include "base/json/fields.h"
#include "operator/local/files.h"
#include "operator/local/store.h"
#include "operator/reconcile/shell/shell.h"
#include "tests/unit/reconcile/forwarding_client.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using kube::Object;
using nlohmann::json;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

class Tenants : public ::testing::Test {
 protected:
  Tenants() {
    char path[] = "/tmp/bsp-tenant-test-XXXXXX";
    root_ = ::mkdtemp(path);
    store_ = std::move(local::Store::open({.root = root_})).value();
    for (int i = 0; i < 4; ++i)
      EXPECT_TRUE(store_->create({{"apiVersion", "v1"},
                                  {"kind", "Node"},
                                  {"metadata", {{"name", std::format("n{}", i)}, {"labels", {{"migbsp.io/set", "s"}}}}},
                                  {"status", {{"allocatable", {{"cpu", "1"}, {"pods", "1"}}}}}}));
  }
  ~Tenants() override {
    shell_.reset();
    EXPECT_TRUE(local::remove_tree(root_));
  }

  static json job(const std::string& name, const std::string& image) {
    return {
        {"apiVersion", "migbsp.io/v1alpha1"},
        {"kind", "BSPJob"},
        {"metadata", {{"name", name}, {"namespace", "default"}}},
        {"spec",
         {{"ranks", 1},
          {"template", {{"spec", {{"containers", {{{"name", "app"}, {"image", image}, {"command", {"solver"}}}}}}}}}}}};
  }
  // Reading images is where a test can make the operator itself fail.
  void start(std::function<Result<ImageDefaults>(const std::string&)> images) {
    shell_ = std::make_unique<Shell>(
        *store_, ShellOptions{.name_space = "default", .network = "", .image_defaults = std::move(images)});
  }
  Object read(const kube::Kind& kind, const std::string& name) {
    return store_->get({kind, "default", name}).value_or(Object());
  }
  template <class F>
  static bool eventually(F holds) {
    for (const auto deadline = std::chrono::steady_clock::now() + 60s; std::chrono::steady_clock::now() < deadline;) {
      if (holds()) return true;
      std::this_thread::sleep_for(20ms);
    }
    return holds();
  }
  static std::string uid_of(const Object& object) { return text_at(part_at(object, "metadata"), "uid"); }
  bool is_deleted(const std::string& name) {
    return !text_at(part_at(read(kPod, name), "metadata"), "deletionTimestamp").empty();
  }
  // The status of a condition; "" if there is none.
  std::string condition(const std::string& job, const std::string& type, const char* field = "status") {
    const Object object = read(kBspJob, job);
    for (const Object& c : part_at(part_at(object, "status"), "conditions"))
      if (text_at(c, "type") == type) return text_at(c, field);
    return "";
  }
  bool event_on(const std::string& job, const std::string& reason) {
    const auto events = store_->list(kEvent, "default").value();
    return std::ranges::any_of(events, [&](const Object& e) {
      return text_at(e, "reason") == reason && text_at(part_at(e, "regarding"), "name") == job;
    });
  }

  std::string root_;
  std::unique_ptr<local::Store> store_;
  std::unique_ptr<Shell> shell_;
};

TEST_F(Tenants, AnInternalErrorAffectsOnlyItsJob) {
  std::atomic<bool> broken = true;
  std::atomic<int> tries = 0;
  start([&](const std::string& image) -> Result<ImageDefaults> {
    if (image == "bad" && broken) {
      ++tries;
      throw std::runtime_error("type must be string, but is null");
    }
    return ImageDefaults{};
  });
  ASSERT_TRUE(store_->create(job("bad", "bad")));
  ASSERT_TRUE(eventually([&] { return condition("bad", "Stalled") == "True"; }));
  EXPECT_THAT(condition("bad", "Stalled", "message"), HasSubstr("type must be string, but is null"));
  EXPECT_EQ(condition("bad", "Stalled", "reason"), "InternalError");
  EXPECT_TRUE(eventually([&] { return event_on("bad", "InternalError"); }));
  ASSERT_TRUE(store_->create(job("good", "good")));
  EXPECT_TRUE(eventually([&] { return read(kPod, "good-r0-g0").is_object(); })) << "the others go on";
  // Whatever else changes of it, it is reconciled later and later.
  const int before = tries;
  for (int i = 0; i < 50; ++i) {
    Object object = read(kBspJob, "bad");
    object["metadata"]["annotations"]["round"] = std::to_string(i);
    object["metadata"].erase("resourceVersion");
    ASSERT_TRUE(store_->update(object));
  }
  EXPECT_LE(tries - before, 10);
  broken = false;
  EXPECT_TRUE(eventually([&] { return read(kPod, "bad-r0-g0").is_object(); }));
  EXPECT_TRUE(eventually([&] { return condition("bad", "Stalled").empty(); })) << "and it says that this is over";
}

TEST_F(Tenants, AFailedCheckAffectsOnlyItsJob) {
  start([](const std::string& image) -> Result<ImageDefaults> {
    check(image != "bad", "every image is good");
    return ImageDefaults{};
  });
  ASSERT_TRUE(store_->create(job("bad", "bad")));
  ASSERT_TRUE(eventually([&] { return condition("bad", "Stalled") == "True"; }));
  EXPECT_THAT(condition("bad", "Stalled", "message"), HasSubstr("broken invariant: every image is good"));
  EXPECT_TRUE(eventually([&] { return event_on("bad", "InternalError"); }));
  ASSERT_TRUE(store_->create(job("good", "good")));
  EXPECT_TRUE(eventually([&] { return read(kPod, "good-r0-g0").is_object(); })) << "the others go on";
}

// A pod as a tenant may create it; `node`: as if it were scheduled there.
json pod(const std::string& name, json metadata, const std::string& node = "") {
  metadata["name"] = name;
  metadata["namespace"] = "default";
  json object = {{"apiVersion", "v1"},
                 {"kind", "Pod"},
                 {"metadata", std::move(metadata)},
                 {"spec", {{"containers", {{{"name", "app"}, {"image", "evil"}}}}}}};
  if (!node.empty()) object["spec"]["nodeName"] = node;
  return object;
}

TEST_F(Tenants, AForeignPodOfARanksNameIsNotAdopted) {
  const Object theirs = store_->create(pod("job-r0-g0", {{"labels", {{"migbsp.io/job", "job"}}}})).value();
  start([](const std::string&) { return ImageDefaults{}; });
  ASSERT_TRUE(store_->create(job("job", "good")));
  ASSERT_TRUE(eventually([&] { return event_on("job", "PodNotCreated"); }));
  EXPECT_TRUE(eventually([&] {
    return text_at(part_at(read(kBspJob, "job"), "status"), "message")
        .contains(
            "pod job-r0-g0 exists and was not made by the operator for this job; delete it: kubectl delete pod "
            "job-r0-g0 -n default");
  }));
  EXPECT_EQ(read(kPod, "job-r0-g0"), theirs) << "and it is left as it is";
  ASSERT_TRUE(store_->remove({kPod, "default", "job-r0-g0"}, uid_of(theirs)));
  ASSERT_TRUE(eventually([&] { return read(kPod, "job-r0-g0").is_object(); })) << "it is tried again";
  const Object ours = read(kPod, "job-r0-g0");
  EXPECT_EQ(owner_of(ours).uid, uid_of(read(kBspJob, "job")));
  EXPECT_EQ(text_at(part_at(part_at(ours, "metadata"), "annotations"), "migbsp.io/made-from").size(), 64u);
}

TEST_F(Tenants, ALabelMakesNoPodAMemberOfAJob) {
  start([](const std::string&) { return ImageDefaults{}; });
  const Object made = store_->create(job("job", "good")).value();
  ASSERT_TRUE(eventually([&] { return read(kPod, "job-r0-g0").is_object(); }));
  const json labels = part_at(part_at(read(kPod, "job-r0-g0"), "metadata"), "labels");
  const Object intruder = store_->create(pod("intruder", {{"labels", labels}}, "n3")).value();
  // Of another job of this name.
  json owner = owner_reference(crds::bsp_job_from_json(made).value());
  owner[0]["uid"] = "another";
  const Object former = store_->create(pod("former", {{"labels", labels}, {"ownerReferences", owner}}, "n2")).value();
  ASSERT_TRUE(store_->remove({kBspJob, "default", "job"}, uid_of(made)));
  ASSERT_TRUE(eventually([&] { return is_deleted("job-r0-g0"); }));
  ASSERT_TRUE(store_->purge({kPod, "default", "job-r0-g0"}, uid_of(read(kPod, "job-r0-g0"))));
  EXPECT_TRUE(eventually([&] { return read(kBspJob, "job").is_null(); })) << "it waits for its own pods only";
  EXPECT_EQ(read(kPod, "intruder"), intruder);
  EXPECT_EQ(read(kPod, "former"), former);
}

// Another pod takes the name between a worker's read and its request.
class Swapping final : public ForwardingClient {
 public:
  explicit Swapping(local::Store& store) : ForwardingClient(store), store_(store) {}
  Result<void> remove(const kube::Key& key, const std::string& uid) override {
    if (key.kind == kPod && !begun_.exchange(true)) {
      EXPECT_FALSE(uid.empty());
      EXPECT_TRUE(store_.purge(key, uid));
      EXPECT_TRUE(store_.create(pod(key.name, json::object(), "n3")));
      swapped = true;
    }
    return store_.remove(key, uid);
  }
  std::atomic<bool> swapped = false;

 private:
  local::Store& store_;
  std::atomic<bool> begun_ = false;
};

TEST_F(Tenants, APodSurvivesTheDeletionOfItsPredecessor) {
  Swapping client(*store_);
  shell_ = std::make_unique<Shell>(
      client, ShellOptions{.name_space = "default", .network = "", .image_defaults = [](const std::string&) {
                             return ImageDefaults{};
                           }});
  Object object = store_->create(job("job", "good")).value();
  ASSERT_TRUE(eventually([&] { return read(kPod, "job-r0-g0").is_object(); }));
  object = read(kBspJob, "job");
  object["spec"]["runPolicy"]["suspend"] = true;
  object["metadata"].erase("resourceVersion");
  ASSERT_TRUE(store_->update(object));
  ASSERT_TRUE(eventually([&] { return client.swapped.load(); }));
  ASSERT_TRUE(eventually([&] { return text_at(part_at(read(kBspJob, "job"), "status"), "phase") == "Suspended"; }));
  EXPECT_TRUE(owner_of(read(kPod, "job-r0-g0")).uid.empty()) << "the other one is there";
  EXPECT_FALSE(is_deleted("job-r0-g0"));
  shell_.reset();
}

// Creating a RankMigration takes as long as a webhook likes.
class SlowToCreate final : public ForwardingClient {
 public:
  explicit SlowToCreate(local::Store& store) : ForwardingClient(store), store_(store) {}
  Result<Object> create(const Object& object) override {
    if (text_at(object, "kind") == kRankMigration.kind) {
      creates = true;
      // The job must not be removed earlier. Only waiting can show that it isn't.
      for (int i = 0; i < 150 && store_.get({kBspJob, "default", "job"}); ++i) std::this_thread::sleep_for(20ms);
    }
    return store_.create(object);
  }
  std::atomic<bool> creates = false;

 private:
  local::Store& store_;
};

TEST_F(Tenants, ADeletedJobLeavesNoRankMigrationBeingCreated) {
  const Object made = store_->create(job("job", "good")).value();
  sim::World world({.ranks = 1, .slow = 1, .fast = 1});
  ASSERT_TRUE(world.run_until(crds::JobPhase::kRunning)) << world.trace;
  world.decide({{"", 0, "fast", "fast-0"}});
  ASSERT_TRUE(world.run_until(crds::JobPhase::kMigrating)) << world.trace;
  Object moving = made;
  to_json(moving["status"], world.job.status);
  ASSERT_TRUE(store_->update_status(moving));
  const json labels = {{"migbsp.io/job", "job"}, {"migbsp.io/rank", "0"}, {"migbsp.io/generation", "0"}};
  const json owner = owner_reference(crds::bsp_job_from_json(made).value());
  ASSERT_TRUE(store_->create(pod("job-r0-g0", {{"labels", labels}, {"ownerReferences", owner}}, "n0")));
  SlowToCreate client(*store_);
  shell_ = std::make_unique<Shell>(
      client, ShellOptions{.name_space = "default", .network = "", .image_defaults = [](const std::string&) {
                             return ImageDefaults{};
                           }});
  ASSERT_TRUE(eventually([&] { return client.creates.load(); }));
  ASSERT_TRUE(store_->remove({kBspJob, "default", "job"}, uid_of(made)));
  ASSERT_TRUE(eventually([&] { return is_deleted("job-r0-g0"); }));
  ASSERT_TRUE(store_->purge({kPod, "default", "job-r0-g0"}, uid_of(read(kPod, "job-r0-g0"))));
  EXPECT_TRUE(eventually([&] { return read(kBspJob, "job").is_null(); }));
  shell_.reset();  // when its calls have ended
  EXPECT_EQ(store_->list(kRankMigration, "default").value().size(), 0u);
}

TEST_F(Tenants, AForgedStatusStopsOnlyItsJob) {
  Object spoilt = store_->create(job("spoilt", "good")).value();
  spoilt["status"] = {{"phase", "Running"}, {"ranks", {{{"rank", 7}, {"pod", "x"}, {"generation", 1}}}}};
  ASSERT_TRUE(store_->update_status(spoilt));
  Object huge = store_->create(job("huge", "good")).value();
  huge["status"] = {{"phase", "Migrating"}, {"ranks", json::array()}, {"waveState", json::array()}};
  ASSERT_TRUE(store_->update_status(huge));
  start([](const std::string&) { return ImageDefaults{}; });
  for (const char* name : {"spoilt", "huge"}) {
    EXPECT_TRUE(eventually([&] { return condition(name, "Unreadable") == "True"; })) << read(kBspJob, name);
    EXPECT_THAT(condition(name, "Unreadable", "message"), HasSubstr("status.ranks"));
  }
  ASSERT_TRUE(store_->create(job("good", "good")));
  EXPECT_TRUE(eventually([&] { return read(kPod, "good-r0-g0").is_object(); }));
}

TEST_F(Tenants, AProgramsOutputNeedNotBeText) {
  shell_ = std::make_unique<Shell>(*store_,
                                   ShellOptions{.name_space = "default",
                                                .network = "",
                                                .image_defaults = [](const std::string&) { return ImageDefaults{}; },
                                                .log_tail = [](auto&, auto&) { return "caf\xe9 \xff"; }});
  ASSERT_TRUE(store_->create(job("job", "good")));
  ASSERT_TRUE(eventually([&] { return read(kPod, "job-r0-g0").is_object(); }));
  Object object = read(kPod, "job-r0-g0");
  object["status"] = {
      {"phase", "Failed"},
      {"containerStatuses",
       {{{"name", "app"}, {"state", {{"waiting", {{"reason", "ErrImageNeverPull"}, {"message", "no"}}}}}}}}};
  ASSERT_TRUE(store_->update_status(object));
  EXPECT_TRUE(eventually([&] {
    return text_at(part_at(read(kBspJob, "job"), "status"), "message").contains("caf\xef\xbf\xbd \xef\xbf\xbd");
  })) << read(kBspJob, "job");
}

}  // namespace
}  // namespace bsp::reconcile
