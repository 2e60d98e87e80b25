// Jobs that run, in a store with a whole shell over it: their pods exist, and no sidecar answers.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <format>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/json/fields.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/local/files.h"
#include "operator/local/store.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/shell/shell.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {

class StoredJobs : public ::testing::Test {
 protected:
  StoredJobs() {
    char path[] = "/tmp/bsp-stored-jobs-XXXXXX";
    root_ = ::mkdtemp(path);
    store_ = std::move(local::Store::open({.root = root_})).value();
    for (const char* name : {"slow-0", "slow-1"})
      EXPECT_TRUE(store_->create({{"apiVersion", "v1"},
                                  {"kind", "Node"},
                                  {"metadata", {{"name", name}, {"labels", {{"migbsp.io/set", "slow"}}}}},
                                  {"status", {{"allocatable", {{"cpu", "1"}, {"pods", "1"}}}}}}));
  }
  ~StoredJobs() override {
    shell_.reset();
    EXPECT_TRUE(local::remove_tree(root_));
  }
  void start(const PodOptions& pods = {}) {
    shell_ = std::make_unique<Shell>(
        *store_,
        ShellOptions{.name_space = "default", .network = "", .pods = pods, .image_defaults = [](const std::string&) {
                       return ImageDefaults{};
                     }});
  }
  // A job that runs, with its pods, but for what `change` makes of it.
  void add(const std::string& name, const std::function<void(nlohmann::json&)>& change) {
    sim::World world({.name = name, .ranks = 2});
    ASSERT_TRUE(world.run_until(crds::JobPhase::kRunning)) << world.trace;
    nlohmann::json object;
    to_json(object, world.job);
    object["metadata"] = {{"name", name}, {"namespace", "default"}, {"finalizers", {names::kFinalizer}}};
    const nlohmann::json status = object["status"];
    const kube::Object made = store_->create(object).value();
    const std::string uid = kube::metadata_text(made, "uid");
    for (int rank = 0; rank < 2; ++rank)
      ASSERT_TRUE(store_->create(
          {{"apiVersion", "v1"},
           {"kind", "Pod"},
           {"metadata",
            {{"name", std::format("{}-r{}-g0", name, rank)},
             {"namespace", "default"},
             {"labels",
              {{"migbsp.io/job", name}, {"migbsp.io/rank", std::to_string(rank)}, {"migbsp.io/generation", "0"}}},
             {"ownerReferences",
              {{{"apiVersion", names::kApiVersion},
                {"kind", "BSPJob"},
                {"name", name},
                {"uid", uid},
                {"controller", true}}}}}},
           {"spec",
            {{"nodeName", std::format("slow-{}", rank)}, {"containers", {{{"name", "app"}, {"image", "i"}}}}}}}));
    kube::Object next = made;
    next["status"] = status;
    change(next);
    const nlohmann::json spec = next["spec"];
    ASSERT_TRUE(store_->update_status(next));
    next = read_job(name);
    next["spec"] = spec;
    ASSERT_TRUE(store_->update(next));
  }
  kube::Object read_job(const std::string& name) {
    return store_->get({kBspJob, "default", name}).value_or(kube::Object());
  }
  // The message of a condition that is true; "": it is not.
  std::string told(const std::string& name, const char* type = kUnreadable) {
    const kube::Object job = read_job(name);
    for (const nlohmann::json& c : part_at(part_at(job, "status"), "conditions"))
      if (text_at(c, "type") == type && text_at(c, "status") == "True") return text_at(c, "message");
    return "";
  }
  bool is_gone(const std::string& pod) {
    const kube::Object object = store_->get({kPod, "default", pod}).value_or(kube::Object());
    return object.is_null() || kube::is_being_deleted(object);
  }
  template <class F>
  static bool eventually(F holds) {
    for (const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
         std::chrono::steady_clock::now() < deadline;) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return holds();
  }

  std::string root_;
  std::unique_ptr<local::Store> store_;
  std::unique_ptr<Shell> shell_;
};

}  // namespace bsp::reconcile
