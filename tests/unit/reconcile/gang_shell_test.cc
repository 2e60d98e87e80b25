// The PodGroup of a start as a whole shell makes it: in which order, and what each answer of the API server leads to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <format>
#include <mutex>
#include <thread>

#include "base/json/fields.h"
#include "operator/local/files.h"
#include "operator/local/store.h"
#include "operator/reconcile/shell/shell.h"
#include "tests/unit/reconcile/forwarding_client.h"

namespace bsp::reconcile {
namespace {

using kube::Object;
using nlohmann::json;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

// Answers for PodGroups; everything else goes to the store.
class ApiServer final : public ForwardingClient {
 public:
  explicit ApiServer(local::Store& store) : ForwardingClient(store), store_(store) {}
  Result<Object> create(const Object& object) override {
    const std::string kind = text_at(object, "kind");
    if (kind != "PodGroup" && kind != kPod.kind) return store_.create(object);
    const std::lock_guard lock(mutex_);
    made_.push_back(kind);
    if (kind == "PodGroup" && answer_) return std::unexpected(*answer_);
    return store_.create(object);
  }
  void answer(std::optional<Error> error) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(error);
  }
  std::vector<std::string> made() {
    const std::lock_guard lock(mutex_);
    return made_;
  }

 private:
  local::Store& store_;
  std::mutex mutex_;
  std::optional<Error> answer_;
  std::vector<std::string> made_;  // what was asked for, in order
};

class GangShell : public ::testing::Test {
 protected:
  GangShell() {
    char path[] = "/tmp/bsp-gang-test-XXXXXX";
    root_ = ::mkdtemp(path);
    store_ = std::move(local::Store::open({.root = root_})).value();
    server_ = std::make_unique<ApiServer>(*store_);
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(store_->create({{"apiVersion", "v1"},
                                  {"kind", "Node"},
                                  {"metadata", {{"name", std::format("n{}", i)}, {"labels", {{"migbsp.io/set", "s"}}}}},
                                  {"status",
                                   {{"allocatable", {{"cpu", "1"}, {"memory", "1Gi"}, {"pods", "9"}}},
                                    {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}}));
  }
  ~GangShell() override {
    shell_.reset();
    EXPECT_TRUE(local::remove_tree(root_));
  }
  // Three ranks for two nodes of one core each.
  void start() {
    ASSERT_TRUE(store_->create(
        {{"apiVersion", "migbsp.io/v1alpha1"},
         {"kind", "BSPJob"},
         {"metadata", {{"name", "job"}, {"namespace", "default"}}},
         {"spec",
          {{"ranks", 3},
           {"scheduling", {{"gang", "PodGroup"}}},
           {"template",
            {{"spec", {{"containers", {{{"name", "app"}, {"image", "good"}, {"command", {"solver"}}}}}}}}}}}}));
    shell_ = std::make_unique<Shell>(
        *server_, ShellOptions{.name_space = "default",
                               .network = "",
                               .pods = {.scheduled = true},
                               .collects_garbage = true,
                               .image_defaults = [](const std::string&) { return ImageDefaults{}; }});
  }
  template <class F>
  static bool eventually(F holds) {
    for (const auto deadline = std::chrono::steady_clock::now() + 60s; std::chrono::steady_clock::now() < deadline;) {
      if (holds()) return true;
      std::this_thread::sleep_for(20ms);
    }
    return holds();
  }
  json status() { return part_at(store_->get({kBspJob, "default", "job"}).value_or(Object()), "status"); }
  std::vector<Object> pods() { return store_->list(kPod, "default").value(); }

  std::string root_;
  std::unique_ptr<local::Store> store_;
  std::unique_ptr<ApiServer> server_;
  std::unique_ptr<Shell> shell_;
};

TEST_F(GangShell, MakesThePodGroupOnceAndThenThePodsThatNameIt) {
  start();
  ASSERT_TRUE(eventually([&] { return pods().size() == 3; })) << status();
  const auto made = server_->made();
  EXPECT_EQ(made.front(), "PodGroup");
  EXPECT_EQ(std::ranges::count(made, "PodGroup"), 1);
  const auto groups = store_->list({"scheduling.k8s.io/v1beta1", "PodGroup"}, "default").value();
  ASSERT_EQ(groups.size(), 1u);
  for (const Object& pod : pods())
    EXPECT_EQ(pod["spec"]["schedulingGroup"]["podGroupName"], groups[0]["metadata"]["name"]);
  EXPECT_EQ(text_at(status(), "phase"), "Starting");
}

TEST_F(GangShell, OneThatExistsIsTheJobs) {
  server_->answer(Error{ErrorCode::kConflict, "podgroups \"job-1\" already exists", false});
  start();
  EXPECT_TRUE(eventually([&] { return pods().size() == 3; })) << status();
}

TEST_F(GangShell, OneThatIsBeingDeletedIsWaitedFor) {
  server_->answer(Error{ErrorCode::kConflict, "object is being deleted: podgroups \"job-1\" already exists", false});
  start();
  ASSERT_TRUE(eventually([&] { return server_->made().size() >= 2; }));
  EXPECT_THAT(server_->made(), Each(std::string("PodGroup")));
  EXPECT_EQ(text_at(status(), "reason"), "") << "it takes a moment only";
  server_->answer(std::nullopt);
  EXPECT_TRUE(eventually([&] { return pods().size() == 3; })) << status();
}

TEST_F(GangShell, ARefusalIsToldAndTriedAgain) {
  server_->answer(Error{ErrorCode::kUnavailable, "the API server doesn't serve PodGroup", true});
  start();
  ASSERT_TRUE(eventually([&] { return text_at(status(), "reason") == kPodGroupRefused; })) << status();
  EXPECT_EQ(text_at(status(), "phase"), "Pending");
  EXPECT_THAT(text_at(status(), "message"), HasSubstr("spec.scheduling.gang is PodGroup"));
  EXPECT_THAT(pods(), IsEmpty());
  EXPECT_LE(server_->made().size(), 3u * 3) << "in each of three versions, not in each reconcile";
  server_->answer(std::nullopt);
  EXPECT_TRUE(eventually([&] { return pods().size() == 3; })) << status();
}

TEST_F(GangShell, AJobThatIsDeletedWhileItWaitsGoes) {
  server_->answer(Error{ErrorCode::kRefused, "podgroups is forbidden", false});
  start();
  ASSERT_TRUE(eventually([&] { return text_at(status(), "reason") == kPodGroupRefused; })) << status();
  const Object job = store_->get({kBspJob, "default", "job"}).value();
  ASSERT_TRUE(store_->remove({kBspJob, "default", "job"}, text_at(part_at(job, "metadata"), "uid")));
  EXPECT_TRUE(eventually([&] { return !store_->get({kBspJob, "default", "job"}); }));
}

}  // namespace
}  // namespace bsp::reconcile
