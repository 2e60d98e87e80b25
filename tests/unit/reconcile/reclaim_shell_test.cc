// A deleted job's checkpoint sets as a whole shell removes them: the pod that it makes, each answer of the API server, and what comes after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "base/json/fields.h"
#include "operator/kube/fields.h"
#include "operator/local/files.h"
#include "operator/local/store.h"
#include "operator/reconcile/kernel/checkpoints/reclaim.h"
#include "operator/reconcile/shell/shell.h"
#include "tests/unit/reconcile/forwarding_client.h"

namespace bsp::reconcile {
namespace {

using kube::Object;
using nlohmann::json;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

// Refuses pods if told to; everything else goes to the store.
class ApiServer final : public ForwardingClient {
 public:
  explicit ApiServer(local::Store& store) : ForwardingClient(store), store_(store) {}
  Result<Object> create(const Object& object) override {
    const std::lock_guard lock(mutex_);
    if (text_at(object, "kind") == kPod.kind && refusal_) return std::unexpected(*refusal_);
    return store_.create(object);
  }
  void refuse(std::optional<Error> error) {
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(error);
  }

 private:
  local::Store& store_;
  std::mutex mutex_;
  std::optional<Error> refusal_;
};

class ReclaimShell : public ::testing::Test {
 protected:
  ReclaimShell() {
    char path[] = "/tmp/bsp-reclaim-test-XXXXXX";
    root_ = ::mkdtemp(path);
    store_ = std::move(local::Store::open({.root = root_})).value();
    server_ = std::make_unique<ApiServer>(*store_);
  }
  ~ReclaimShell() override {
    shell_.reset();
    EXPECT_TRUE(local::remove_tree(root_));
  }
  // One that has ended and has no pods left. `uses`: another job's uid, from whose set it goes on.
  std::string make_job(const std::string& name, const char* policy = "Delete", const std::string& uses = "") {
    Object job =
        store_
            ->create({{"apiVersion", "migbsp.io/v1alpha1"},
                      {"kind", "BSPJob"},
                      {"metadata", {{"name", name}, {"namespace", "default"}}},
                      {"spec",
                       {{"ranks", 1},
                        {"checkpoint", {{"reclaimPolicy", policy}, {"storage", {{"hostPath", {{"path", "/sets"}}}}}}},
                        {"template",
                         {{"spec", {{"containers", {{{"name", "app"}, {"image", "i"}, {"command", {"solver"}}}}}}}}}}}})
            .value();
    crds::BspJobStatus status;
    status.phase = crds::JobPhase::kSucceeded;
    status.checkpoint.emplace();
    status.checkpoint->ids_used = 2;
    if (!uses.empty()) {
      crds::StoredSet& set = status.checkpoint->sets.emplace_back();
      set.id = 1;
      set.of_job = uses;
    }
    job["status"] = json();
    to_json(job["status"], status);
    EXPECT_TRUE(store_->update_status(job));
    return kube::metadata_text(job, "uid");
  }
  void start() {
    shell_ = std::make_unique<Shell>(
        *server_, ShellOptions{.name_space = "default",
                               .network = "",
                               .pods = {.scheduled = true},
                               .collects_garbage = true,
                               .image_defaults = [](const std::string&) { return ImageDefaults{}; }});
    ASSERT_TRUE(eventually([&] {
      return std::ranges::all_of(store_->list(kBspJob, "default").value(), [](const Object& job) {
        return !part_at(part_at(job, "metadata"), "finalizers").empty();
      });
    }));
  }
  template <class F>
  static bool eventually(F holds) {
    for (const auto deadline = std::chrono::steady_clock::now() + 60s; std::chrono::steady_clock::now() < deadline;) {
      if (holds()) return true;
      std::this_thread::sleep_for(20ms);
    }
    return holds();
  }
  void remove_job(const std::string& name) { ASSERT_TRUE(store_->remove({kBspJob, "default", name}, "")); }
  bool is_gone(const std::string& name, const std::string& uid) {
    const auto job = store_->get({kBspJob, "default", name});
    return !job || kube::metadata_text(*job, "uid") != uid;
  }
  std::vector<Object> pods() { return store_->list(kPod, "default").value(); }
  std::optional<Object> remover(const std::string& name, const std::string& uid) {
    const auto pod = store_->get({kPod, "default", remover_name({name, uid})});
    return pod ? std::optional(*pod) : std::nullopt;
  }
  void end_remover(const std::string& name, const std::string& uid, const json& status) {
    Object pod = remover(name, uid).value();
    pod["status"] = status;
    ASSERT_TRUE(store_->update_status(pod));
  }
  std::string condition(const std::string& name) {
    const auto job = store_->get({kBspJob, "default", name});
    if (!job) return "";
    for (const Object& c : part_at(part_at(*job, "status"), "conditions"))
      if (text_at(c, "type") == kSetsNotRemoved) return text_at(c, "message");
    return "";
  }
  bool event(const std::string& reason, const std::string& part) {
    return std::ranges::any_of(store_->list(kEvent, "default").value(), [&](const Object& e) {
      return text_at(e, "reason") == reason && text_at(e, "note").contains(part);
    });
  }

  std::string root_;
  std::unique_ptr<local::Store> store_;
  std::unique_ptr<ApiServer> server_;
  std::unique_ptr<Shell> shell_;
};

TEST_F(ReclaimShell, APodRemovesThemBeforeTheJobGoes) {
  const std::string uid = make_job("job");
  start();
  remove_job("job");
  ASSERT_TRUE(eventually([&] { return remover("job", uid).has_value(); }));
  EXPECT_FALSE(is_gone("job", uid));
  const json said = {{"terminated", {{"exitCode", 1}, {"reason", "Error"}, {"message", "the storage is read-only"}}}};
  end_remover("job", uid,
              {{"phase", "Running"}, {"containerStatuses", {{{"name", kReclaimContainer}, {"lastState", said}}}}});
  EXPECT_TRUE(eventually([&] { return condition("job").contains("the storage is read-only"); })) << condition("job");
  EXPECT_TRUE(eventually([&] { return event(kSetsNotRemoved, "the storage is read-only"); }));
  EXPECT_FALSE(is_gone("job", uid));
  end_remover("job", uid, {{"phase", "Succeeded"}});
  EXPECT_TRUE(eventually([&] { return is_gone("job", uid); }));
  EXPECT_FALSE(event(kSetsLeft, ""));
}

TEST_F(ReclaimShell, RetainMakesNoPod) {
  const std::string uid = make_job("job", "Retain");
  start();
  remove_job("job");
  EXPECT_TRUE(eventually([&] { return is_gone("job", uid); }));
  EXPECT_THAT(pods(), IsEmpty());
}

TEST_F(ReclaimShell, ANewOperatorGoesOnWithThePodThatIsThere) {
  const std::string uid = make_job("job");
  start();
  remove_job("job");
  ASSERT_TRUE(eventually([&] { return remover("job", uid).has_value(); }));
  const std::string pod = kube::metadata_text(*remover("job", uid), "uid");
  shell_.reset();
  start();
  end_remover("job", uid, {{"phase", "Succeeded"}});
  EXPECT_TRUE(eventually([&] { return is_gone("job", uid); }));
  ASSERT_EQ(pods().size(), 1u) << "the garbage collector's";
  EXPECT_EQ(kube::metadata_text(pods()[0], "uid"), pod);
}

TEST_F(ReclaimShell, AJobOfTheSameNameHasAnotherPod) {
  const std::string first = make_job("job");
  start();
  remove_job("job");
  ASSERT_TRUE(eventually([&] { return remover("job", first).has_value(); }));
  end_remover("job", first, {{"phase", "Succeeded"}});
  ASSERT_TRUE(eventually([&] { return is_gone("job", first); }));
  const std::string second = make_job("job");
  ASSERT_TRUE(eventually([&] {
    return !part_at(part_at(store_->get({kBspJob, "default", "job"}).value_or(Object()), "metadata"), "finalizers")
                .empty();
  }));
  remove_job("job");
  ASSERT_TRUE(eventually([&] { return remover("job", second).has_value(); }))
      << "that the former job's pod has succeeded says nothing";
  end_remover("job", second, {{"phase", "Succeeded"}});
  EXPECT_TRUE(eventually([&] { return is_gone("job", second); }));
}

TEST_F(ReclaimShell, ANamespaceThatGoesIsNotHeld) {
  const std::string uid = make_job("job");
  start();
  server_->refuse(
      Error{ErrorCode::kRefused,
            "pods is forbidden: unable to create new content in namespace default because it is being terminated"});
  remove_job("job");
  EXPECT_TRUE(eventually([&] { return is_gone("job", uid); }));
  EXPECT_TRUE(eventually([&] { return event(kSetsLeft, "/sets/" + uid); }));
}

TEST_F(ReclaimShell, APodThatIsRefusedIsTriedAgain) {
  const std::string uid = make_job("job");
  start();
  server_->refuse(Error{ErrorCode::kRefused, "exceeded quota"});
  remove_job("job");
  EXPECT_TRUE(eventually([&] { return condition("job").contains("exceeded quota"); }));
  EXPECT_FALSE(is_gone("job", uid));
  server_->refuse(std::nullopt);
  ASSERT_TRUE(eventually([&] { return remover("job", uid).has_value(); }));
  end_remover("job", uid, {{"phase", "Succeeded"}});
  EXPECT_TRUE(eventually([&] { return is_gone("job", uid); }));
}

TEST_F(ReclaimShell, AForeignPodOfThatNameIsNamed) {
  const std::string uid = make_job("job");
  ASSERT_TRUE(store_->create({{"apiVersion", "v1"},
                              {"kind", "Pod"},
                              {"metadata", {{"name", remover_name({"job", uid})}, {"namespace", "default"}}},
                              {"status", {{"phase", "Succeeded"}}}}));
  start();
  remove_job("job");
  EXPECT_TRUE(eventually([&] { return condition("job").contains("is not this job's"); })) << condition("job");
  EXPECT_FALSE(is_gone("job", uid)) << "somebody else's success isn't ours";
}

TEST_F(ReclaimShell, WhatAnotherJobsStatusNamesStays) {
  const std::string uid = make_job("job");
  make_job("next", "Delete", uid);
  start();
  remove_job("job");
  EXPECT_TRUE(eventually([&] { return condition("job").contains("job next goes on from them"); })) << condition("job");
  EXPECT_THAT(pods(), IsEmpty());
  EXPECT_FALSE(is_gone("job", uid));
  Object next = store_->get({kBspJob, "default", "next"}).value();
  crds::BspJobStatus of_its_own;
  of_its_own.phase = crds::JobPhase::kSucceeded;
  next["status"] = json();
  to_json(next["status"], of_its_own);
  ASSERT_TRUE(store_->update_status(next));
  EXPECT_TRUE(eventually([&] { return remover("job", uid).has_value(); }));
}

}  // namespace
}  // namespace bsp::reconcile
