// A job that can't be read stands still: whatever its object has become, nothing is done to what runs. Every place of status and
// spec of a running job, null and of another type, as `kubectl edit`, a rolled-back operator or a restored backup may leave it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <format>
#include <thread>

#include "base/json/fields.h"
#include "base/net/address.h"
#include "crds/stored_status.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/local/files.h"
#include "operator/local/store.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/kernel/stored.h"
#include "tests/unit/reconcile/every_place.h"
#include "tests/unit/reconcile/stored_jobs.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using crds::JobPhase;
using hostile::json;
using kube::Object;
using migrate::ActionKind;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

const std::vector<json> kWrong = {nullptr, "text", json::array(), json::object()};

Result<crds::BspJob> read(const json& object) {
  BSP_TRY(crds::BspJob job, crds::bsp_job_from_json(object));
  BSP_CHECK_OK(crds::validate(job.spec));
  BSP_CHECK_OK(check_stored(job));
  return job;
}

// As it is stored, and as it was before `internal` hid most of it: so each field has a place of its own, too.
std::vector<json> forms_of(const crds::BspJob& job) {
  json stored;
  to_json(stored, job);
  json whole = stored;
  whole["status"] = crds::whole_status(stored["status"]).value();
  return {stored, whole};
}

// What a step does to ranks.
std::set<std::string> interventions(const Step& step) {
  std::set<std::string> found;
  const crds::BspJobStatus& status = status_of(step);
  if (!ranks_run(status)) found.insert(std::format("{}: {}", crds::to_string(status.phase), status.message));
  if (step.change()) return found;
  for (const std::string& pod : step.work().delete_pods) found.insert("deletes " + pod);
  for (const migrate::Action& action : step.work().actions)
    found.insert(std::format("{} {}", name_of(action.seat), migrate::to_string(action.kind)));
  if (step.work().remove_finalizer) found.insert("removes the job");
  return found;
}

class AtEveryPlace : public ::testing::TestWithParam<migrate::Phase> {};

TEST_P(AtEveryPlace, AWrongValueIsRefusedOrChangesNothingThatRuns) {
  sim::World world({.ranks = 2, .slow = 2, .fast = 2});
  ASSERT_TRUE(world.run_until(JobPhase::kRunning)) << world.trace;
  world.migrate_by_hand("by-hand", 0, "fast");
  ASSERT_TRUE(world.run_until(GetParam())) << world.trace;
  const Observed o = world.observe();
  const auto after = [&](const crds::BspJob& job) {
    Observed changed = o;
    changed.job = job;
    return interventions(reconcile_job(changed, unadvised(changed), world.limits, world.job_limits));
  };
  const std::set<std::string> usual = after(o.job);
  int refused = 0;
  for (const json& good : forms_of(world.job)) {
    ASSERT_TRUE(read(good)) << read(good).error().message;
    for (const char* part : {"status", "spec"})
      for (const auto& path : hostile::paths_of(good[part]))
        for (const json& value : kWrong) {
          if (path.empty() && std::string_view(part) == "status" && (value.is_null() || value == json::object()))
            continue;  // it is removed: rebuild_test.cc
          json changed = good;
          changed[part][path] = value;
          SCOPED_TRACE(std::format("{}{} = {}", part, path.to_string(), value.dump()));
          const auto job = read(changed);
          if (!job) {
            ++refused;
            EXPECT_FALSE(never_begun(changed));
            EXPECT_THAT(job.error().message, testing::AnyOf(HasSubstr("spec"), HasSubstr("status")))
                << "it names the field";
            continue;
          }
          for (const std::string& what : after(*job)) EXPECT_TRUE(usual.contains(what)) << what;
        }
  }
  EXPECT_GT(refused, 200);
}

INSTANTIATE_TEST_SUITE_P(Unreadable, AtEveryPlace,
                         ::testing::Values(migrate::Phase::kPreparing, migrate::Phase::kPausing,
                                           migrate::Phase::kCheckpointing, migrate::Phase::kResuming,
                                           migrate::Phase::kSucceeded),
                         [](const auto& phase) { return std::string(crds::to_string(phase.param)); });

// --- With a whole shell ------------------------------------------------------------------------------------------------
class UnreadableJobs : public StoredJobs {};

TEST_F(UnreadableJobs, StandStillAndGoOnAsSoonAsTheyCanBeRead) {
  std::map<std::string, std::pair<std::string, std::function<void(json&)>>> cases = {
      {"no-json", {"status.internal", [](json& job) { job["status"]["internal"] = "{"; }}},
      {"later-format",
       {"status.internal: its format is 99",
        [](json& job) {
          std::string internal = job["status"]["internal"];
          const std::string now = std::format("'format':{}", crds::kStatusFormat);
          job["status"]["internal"] = internal.replace(internal.find(now), now.size(), "'format':99");
        }}},
      {"later-phase", {"status.phase", [](json& job) { job["status"]["phase"] = "Resharding"; }}},
      {"no-phase", {"status.phase", [](json& job) { job["status"].erase("phase"); }}},
      {"later-value", {"spec.rescheduling.mode", [](json& job) { job["spec"]["rescheduling"]["mode"] = "Dream"; }}},
      {"later-field", {"spec.tomorrow", [](json& job) { job["spec"]["tomorrow"] = 1; }}},
      {"other-ranks", {"status.ranks", [](json& job) { job["spec"]["ranks"] = 3; }}},
  };
  for (const auto& [name, what] : cases) ASSERT_NO_FATAL_FAILURE(add(name, what.second));
  std::map<std::string, Object> before;
  for (const auto& [name, what] : cases) before[name] = read_job(name);
  start();
  for (const auto& [name, what] : cases) {
    EXPECT_TRUE(eventually([&, name = name] { return !told(name).empty(); })) << read_job(name);
    EXPECT_THAT(told(name), HasSubstr(what.first));
    EXPECT_THAT(told(name), HasSubstr("this operator is version"));
  }
  for (const auto& [name, what] : cases) {
    Object now = read_job(name), then = before[name];
    for (Object* object : {&now, &then}) (*object)["status"].erase("conditions");
    EXPECT_EQ(now["status"], then["status"]) << name << ": the rest of it is as it was";
    for (const char* rank : {"-r0-g0", "-r1-g0"}) EXPECT_FALSE(is_gone(name + rank)) << name;
  }
  // Whoever restores it loses nothing.
  Object mended = read_job("later-phase");
  mended["status"]["phase"] = "Running";
  ASSERT_TRUE(store_->update_status(mended));
  EXPECT_TRUE(eventually([&] { return told("later-phase").empty(); })) << read_job("later-phase");
}

// Its sidecars take a silent operator for one that they are cut off from, and end their programs if peers are silent, too.
TEST_F(UnreadableJobs, AreGreetedByAnOperatorThatHasNeverReadThem) {
  ASSERT_NO_FATAL_FAILURE(add("job", [](json& job) { job["status"]["internal"] = "{"; }));
  const std::string ip = std::format("127.{}.{}.1", 1 + ::getpid() / 256 % 250, ::getpid() % 256);
  const Fd listener = net::listen_on(net::parse_address(std::format("{}:{}", ip, names::kSidecarPort)).value()).value();
  Object pod = store_->get({kPod, "default", "job-r1-g0"}).value();
  pod["status"] = {{"phase", "Running"}, {"podIP", ip}};
  ASSERT_TRUE(store_->update_status(pod));
  start();
  pollfd entry{.fd = listener.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&entry, 1, 60'000), 1) << "nobody asks for its status";
  EXPECT_THAT(told("job"), HasSubstr("status.internal"));
}

TEST_F(UnreadableJobs, AreDeletedWithTheirPods) {
  ASSERT_NO_FATAL_FAILURE(add("job", [](json& job) { job["status"]["internal"] = "{"; }));
  start();
  ASSERT_TRUE(eventually([&] { return !told("job").empty(); }));
  ASSERT_TRUE(store_->remove({kBspJob, "default", "job"}, kube::metadata_text(read_job("job"), "uid")));
  for (const char* pod : {"job-r0-g0", "job-r1-g0"}) {
    EXPECT_TRUE(eventually([&] { return is_gone(pod); })) << pod;
    EXPECT_FALSE(read_job("job").is_null()) << "the job goes after its pods";
    const Object object = store_->get({kPod, "default", pod}).value_or(Object());
    if (!object.is_null()) {
      EXPECT_TRUE(store_->purge({kPod, "default", pod}, kube::metadata_text(object, "uid")));
    }
  }
  EXPECT_TRUE(eventually([&] { return read_job("job").is_null(); }));
}

TEST_F(UnreadableJobs, FailIfTheyHaveNeverBegun) {
  json job;
  to_json(job, sim::World({.name = "new", .ranks = 2}).job);
  job["metadata"] = {{"name", "new"}, {"namespace", "default"}};
  job.erase("status");
  job["spec"]["tomorrow"] = 1;
  ASSERT_TRUE(store_->create(job));
  start();
  EXPECT_TRUE(eventually([&] { return text_at(part_at(read_job("new"), "status"), "reason") == kInvalidJob; }));
  EXPECT_EQ(told("new"), "");
}

}  // namespace
}  // namespace bsp::reconcile
