// What one tenant may do to the others: nothing. A whole shell over a real store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <format>
#include <thread>

#include "base/json/fields.h"
#include "operator/local/files.h"
#include "operator/local/store.h"
#include "operator/reconcile/shell.h"

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

TEST_F(Tenants, AnErrorOfTheOperatorItselfStaysWithTheJobThatMetIt) {
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
  // Whatever else changes of it, it is looked at later and later.
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
  EXPECT_TRUE(eventually([&] { return condition("bad", "Stalled") == "False"; })) << "and it says that this is over";
}

}  // namespace
}  // namespace bsp::reconcile
