// Every external object, with a value of another type at each place in turn, and with several at random: each is either
// fully processed or refused with the field's name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <format>
#include <random>

#include "operator/kube/api.h"
#include "operator/reconcile/kernel/rescheduling/rescheduling.h"
#include "operator/reconcile/kernel/stored.h"
#include "tests/unit/reconcile/every_place.h"
#include "tests/unit/reconcile/whole_way.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using hostile::at_every_place;
using hostile::json;
using hostile::paths_of;
using hostile::values;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Hostile, EveryTypeAtEveryPlaceOfAManifest) {
  const json good = hostile::a_job();
  ASSERT_TRUE(crds::validate(crds::bsp_job_from_json(good).value().spec));
  int places = 0;
  at_every_place(good, [&](const json& changed, const auto& path) {
    ++places;
    EXPECT_EQ(hostile::use_job(changed), "") << path.to_string() << " = " << changed[path];
  });
  EXPECT_GT(places, 3000);
}

TEST(Hostile, EveryTypeAtEveryPlaceOfANode) {
  at_every_place(hostile::a_node(), [](const json& changed, const auto&) { hostile::use_node(changed); });
}

TEST(Hostile, EveryTypeAtEveryPlaceOfAPod) {
  at_every_place(hostile::a_pod(), [](const json& changed, const auto&) { hostile::use_pod(changed); });
}

TEST(Hostile, AnEmptyFieldEqualsAMissingOne) {
  const json good = hostile::a_job();
  for (const auto& path : paths_of(good["spec"]["template"])) {
    if (path.empty() || good["spec"]["template"][path.parent_pointer()].is_array()) continue;
    json empty = good, without = good;
    empty["spec"]["template"][path] = nullptr;
    without["spec"]["template"][path.parent_pointer()].erase(path.back());
    const auto a = crds::bsp_job_from_json(empty), b = crds::bsp_job_from_json(without);
    ASSERT_TRUE(a && b) << path.to_string();
    const std::string map = path.parent_pointer().to_string();
    const bool of_texts = map.ends_with("labels") || map.ends_with("annotations") || map.ends_with("nodeSelector");
    if (of_texts)  // as Kubernetes reads a map of strings
      EXPECT_EQ(a->spec.pod_template[path], "") << path.to_string();
    else
      EXPECT_EQ(a->spec.pod_template, b->spec.pod_template) << path.to_string();
  }
}

TEST(Hostile, AWrongTypeIsReportedWithTheRemedy) {
  const auto error_with = [](const char* pointer, json value) {
    json changed = hostile::a_job();
    changed["spec"]["template"][json::json_pointer(pointer)] = std::move(value);
    const auto job = crds::bsp_job_from_json(changed);
    if (!job) return job.error().message;
    const auto valid = crds::validate(job->spec);
    return valid ? std::string("valid") : valid.error().message;
  };
  const std::string app = "spec.template.spec.containers[0].";
  EXPECT_EQ(error_with("/spec/securityContext", "root"),
            "spec.template.spec.securityContext: must be an object, not a string; write its fields below it");
  EXPECT_EQ(error_with("/metadata/labels/app", 5),
            "spec.template.metadata.labels.app: must be a string, not a number; put it in quotes: \"5\"");
  EXPECT_EQ(error_with("/spec/containers/0/volumeMounts", "/data"),
            app + "volumeMounts: must be a list, not a string; begin each of its entries with \"- \"");
  EXPECT_EQ(error_with("/spec/containers/0/volumeMounts/0", nullptr),
            app + "volumeMounts[0]: must be an object, not nothing; write its fields below it");
  EXPECT_EQ(error_with("/spec/hostNetwork", "no"),
            "spec.template.spec.hostNetwork: must be true or false, not a string; leave quotes out");
  EXPECT_EQ(error_with("/spec/containers/0/resources/limits/cpu", json::array()),
            app + "resources.limits.cpu: must be a quantity, not a list; write for example 500m or 2Gi");
  EXPECT_THAT(
      error_with("/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/"
                 "matchExpressions",
                 json::object()),
      HasSubstr(".nodeSelectorTerms[0].matchExpressions: must be a list, not an object"));
  EXPECT_EQ(error_with("/spec/terminationGracePeriodSeconds", 30.0), "valid");
}

TEST(Hostile, NestingIsLimited) {
  json deep = "x";
  for (int i = 0; i < 10'000; ++i) deep = json::array({std::move(deep)});
  json job = hostile::a_job();
  job["spec"]["template"]["spec"]["dnsConfig"]["options"] = std::move(deep);
  const auto read = crds::bsp_job_from_json(job);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, StartsWith("spec.template: is nested more than 64 levels deep"));
}

TEST(Hostile, DeepNestingIsCutOffOnInput) {
  const std::string text = R"({"spec": {"template": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}}";
  const auto object = kube::parse_object(text, "a job");
  ASSERT_TRUE(object) << object.error().message;
  const json copy = json::from_cbor(json::to_cbor(*object));  // as the cache keeps it
  EXPECT_THAT(copy.dump(), HasSubstr("(nested too deeply)"));
}

// --- What is read back ---------------------------------------------------------------------------------------------------
void use_status(const json& changed, const sim::World& world, Observed o) {
  const auto job = crds::bsp_job_from_json(changed);
  if (!job) return;
  o.job = *job;
  if (const auto stored = check_stored(o.job); !stored) {
    EXPECT_THAT(stored.error().message, StartsWith("status."));
    return;
  }
  const Step out = reconcile_job(o, unadvised(o), world.limits, world.job_limits);
  json next;
  to_json(next, crds::BspJobStatus(status_of(out)));
  if (!o.job.status.epoch) return;
  Rescheduler rescheduler(o.job, o.job.status.epoch->sets.size(), true);
  (void)rescheduler.advance(o);
  (void)rescheduler.realised(o.job.status, false);
  crds::BspJobStatus status = o.job.status;
  rescheduler.store(status, o);
}

class StatusOf : public ::testing::TestWithParam<migrate::Phase> {};

TEST_P(StatusOf, AWaveWithEveryTypeAtEveryPlaceOfIt) {
  sim::World world({.name = "job", .ranks = 2, .slow = 2, .fast = 2});
  ASSERT_TRUE(world.run_until(crds::JobPhase::kRunning)) << world.trace;
  world.migrate_by_hand("by-hand", 0, "fast");
  ASSERT_TRUE(world.run_until(GetParam())) << world.trace;
  json job;
  to_json(job, world.job);
  job["status"]["rescheduler"] = json::parse(R"({"state": {"k": 3, "alpha": 5, "alphaNext": 0, "d": 0.25, "gamma": 0,
    "pComp": [1, 1], "pCommBySet": [[[0, 0.5]], []]}, "waveSeen": 0, "baseline": {"wave": 1, "alpha": 5, "predicted": 1,
    "seconds": 1, "compute": [1, 1], "after": 9}})");
  const Observed o = world.observe();
  ASSERT_TRUE(check_stored(crds::bsp_job_from_json(job).value())) << check_stored(world.job).error().message;
  for (const auto& path : paths_of(job["status"]))
    for (const json& value : values()) {
      json changed = job;
      changed["status"][path] = value;
      const auto done = guarded([&] { use_status(changed, world, o); });
      EXPECT_TRUE(done) << path.to_string() << " = " << value << ": " << (done ? "" : done.error().message);
    }
}

INSTANTIATE_TEST_SUITE_P(Hostile, StatusOf,
                         ::testing::Values(migrate::Phase::kPreparing, migrate::Phase::kCheckpointing,
                                           migrate::Phase::kResuming, migrate::Phase::kSucceeded),
                         [](const auto& phase) { return std::string(crds::to_string(phase.param)); });

// Several at once, and moved about.
TEST(Hostile, AnyValueAtAnyPlace) {
  const char* given = std::getenv("BSP_SEED");
  const unsigned seed = given ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : 20261123;
  SCOPED_TRACE(std::format("BSP_SEED={}", seed));
  std::mt19937 random(seed);
  const json objects[] = {hostile::a_job(), hostile::a_node(), hostile::a_pod()};
  for (int round = 0; round < 3000; ++round) {
    const std::size_t which = random() % 3;
    json changed = objects[which];
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
      const auto paths = paths_of(changed);
      const json value = random() % 3 ? values()[random() % values().size()] : changed[paths[random() % paths.size()]];
      changed[paths[random() % paths.size()]] = value;
    }
    const auto done = guarded([&] {
      if (which == 0) {
        EXPECT_EQ(hostile::use_job(changed), "") << changed;
      }
      if (which == 1) hostile::use_node(changed);
      if (which == 2) hostile::use_pod(changed);
    });
    ASSERT_TRUE(done) << "round " << round << ": " << done.error().message << "\n" << changed;
  }
}

}  // namespace
}  // namespace bsp::reconcile
