// What differs between the place where a set was made and the one where it is to be restored is found before any rank is.
#include "operator/reconcile/kernel/checkpoints/skew.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>

#include "base/core/cpu_features.h"
#include "operator/reconcile/kernel/checkpoints/checkpoints.h"
#include "tests/unit/reconcile/sets.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using nlohmann::json;
using ::testing::HasSubstr;

json pod_of_template(json spec) {
  World w;
  stores_sets(w);
  spec["containers"][0]["name"] = "app";
  w.job.spec.pod_template["spec"] = std::move(spec);
  return make_pod(w.job, {}, {});
}

TEST(CheckpointSkew, AnAccountIsUserAndGroups) {
  EXPECT_EQ(account_of(pod_of_template({{"securityContext", {{"runAsUser", 7}, {"runAsGroup", 8}, {"fsGroup", 5}}}})),
            "user 7:8, groups 5");
  EXPECT_EQ(account_of(pod_of_template(json::object())), "user of the image");
}

TEST(CheckpointSkew, MountsAreThoseOfTheTemplate) {
  const json volumes = {{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "inputs"}}}},
                        {{"name", "nfs"}, {"nfs", {{"server", "files"}, {"path", "/home"}}}},
                        {{"name", "scratch"}}};
  const json mounts = {{{"name", "scratch"}, {"mountPath", "/tmp"}},
                       {{"name", "nfs"}, {"mountPath", "/home"}, {"readOnly", true}},
                       {{"name", "data"}, {"mountPath", "/data"}, {"subPath", "a"}}};
  json pod = pod_of_template({{"volumes", volumes}, {"containers", {{{"volumeMounts", mounts}}}}});
  const std::string all =
      "/data = persistentVolumeClaim inputs/a; /home = nfs files /home (read-only); /tmp = emptyDir";
  EXPECT_EQ(mounts_of(pod), all);
  // What the API server adds has another name in each pod.
  pod["spec"]["containers"][0]["volumeMounts"].push_back(
      {{"name", "kube-api-access-x7k2p"}, {"mountPath", "/var/run/secrets/kubernetes.io/serviceaccount"}});
  EXPECT_EQ(mounts_of(pod), all);
}

TEST(CheckpointSkew, ACachedPodStillSaysIt) {
  json pod = pod_of_template({{"securityContext", {{"runAsUser", 7}}},
                              {"volumes", {{{"name", "v"}, {"hostPath", {{"path", "/home"}}}}}},
                              {"containers", {{{"volumeMounts", {{{"name", "v"}, {"mountPath", "/data"}}}}}}}});
  const json whole = pod;
  keep_program(pod);
  pod.erase("spec");
  EXPECT_EQ(account_of(pod), "user 7");
  EXPECT_EQ(mounts_of(pod), "/data = hostPath /home");
  EXPECT_EQ(mounts_of(whole), mounts_of(pod));
  json of_another = make_pod(World().job, {}, {});
  const json before = of_another;
  keep_program(of_another);
  EXPECT_EQ(of_another, before) << "a pod of a job without sets takes no more memory";
}

TEST(CheckpointSkew, AnyPodIsRead) {
  for (
      const char* text :
      {"null", "7", "[]", R"({"spec":7})", R"({"spec":{"containers":{}}})",
       R"({"spec":{"containers":[{"name":"app","env":[7,{}],"volumeMounts":[7,{"name":4}]}],"volumes":[7,[],{},{"name":"bsp-sets"}]}})",
       R"({"ofProgram":{"account":7,"mounts":[]}})",
       R"({"spec":{"containers":[{"name":"app","volumeMounts":[{"name":"v"}]}],"volumes":[{"name":"bsp-sets"},{"name":"v","hostPath":{"path":9}}]}})"}) {
    account_of(json::parse(text));
    mounts_of(json::parse(text));
  }
  // Cut without halving a character, for the status is UTF-8.
  json pod = pod_of_template(json::object());
  for (int i = 0; i < 90; ++i)
    pod["spec"]["containers"][0]["volumeMounts"].push_back(
        {{"name", "v"},
         {"mountPath", std::format("/größer/{}{}", std::string(static_cast<std::size_t>(i % 3), 'x'), i)}});
  EXPECT_NO_THROW((void)json(mounts_of(pod)).dump());
  EXPECT_LT(mounts_of(pod).size(), 1100u);
}

TEST(CheckpointSkew, ASetKnowsWhereItWasMade) {
  World w({.ranks = 2});
  stores_sets(w);
  const auto features = CpuFeatures::from_names("ssse3,avx2");
  w.cpus["slow"] = w.cpus["fast"] = *features;
  w.runtimes[w.runtime_image] = "b0b0";
  ASSERT_TRUE(has_stored(w, 1)) << w.trace;
  EXPECT_EQ(newest(w).account, "user of the image");
  EXPECT_EQ(newest(w).runtime, "b0b0");
  EXPECT_EQ(newest(w).features, (crds::RankGroups{{std::format("{:x}", features->bits()), "0-1"}}));
}

// The facts with which a set is compared, each changed after it was made.
struct Difference {
  const char* name;
  void (*change)(crds::StoredSet&);
  const char* said;
};
class SetOfAnother : public testing::TestWithParam<Difference> {};
INSTANTIATE_TEST_SUITE_P(
    Fact, SetOfAnother,
    testing::Values(
        Difference{"Image", [](crds::StoredSet& s) { s.image = "registry/app@sha256:a"; }, "had image registry/app"},
        Difference{"Account", [](crds::StoredSet& s) { s.account = "user 4"; }, "had user 4 and would have user of"},
        Difference{"Mounts", [](crds::StoredSet& s) { s.mounts = "/d = emptyDir"; }, "had the mounts /d = emptyDir"},
        Difference{"Runtime", [](crds::StoredSet& s) { s.runtime = "0ld"; }, "had libbspmpi.so 0ld"},
        Difference{"Features",
                   [](crds::StoredSet& s) {
                     s.features = {{std::format("{:x}", CpuFeatures::from_names("ssse3,avx512f")->bits()), "1"}};
                   },
                   "lacks avx512f, which the libraries of rank 1 have seen"}),
    [](const auto& p) { return std::string(p.param.name); });

World with_facts() {
  World w({.ranks = 2, .slow = 4, .fast = 4});
  stores_sets(w);
  w.cpus["slow"] = w.cpus["fast"] = *CpuFeatures::from_names("ssse3,avx2");
  w.runtimes[w.runtime_image] = "b0b0";
  const json* app = crds::app_container(w.job.spec);
  w.image_ids[app ? app->value("image", "") : ""] = "registry/app@sha256:b";
  return w;
}

TEST_P(SetOfAnother, IsLeftForTheOneBefore) {
  World w = with_facts();
  ASSERT_TRUE(has_stored(w, 2)) << w.trace;
  w.job.spec.checkpoint.interval = "1h";
  ASSERT_TRUE(w.run_until([&] { return w.job.status.phase == JobPhase::kRunning; })) << w.trace;
  const std::uint64_t before = w.job.status.checkpoint->sets.front().id;
  GetParam().change(w.job.status.checkpoint->sets.back());
  w.end_program(0, 0, 9);
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kResumedFrom); }, 2000)) << w.trace;
  EXPECT_EQ(w.job.status.checkpoint->restored, before);
  EXPECT_THAT(newest(w).unusable, HasSubstr(GetParam().said));
  const auto said = std::ranges::find(w.events, std::string(kSetUnusable), &Event::reason);
  ASSERT_NE(said, w.events.end());
  EXPECT_THAT(said->message, HasSubstr(GetParam().said));
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST_P(SetOfAnother, IsLeftForTheBeginningIfThereIsNone) {
  World w = with_facts();
  ASSERT_TRUE(has_stored(w, 1)) << w.trace;
  w.job.spec.checkpoint.interval = "1h";
  ASSERT_TRUE(w.run_until([&] { return w.job.status.phase == JobPhase::kRunning; })) << w.trace;
  GetParam().change(w.job.status.checkpoint->sets.back());
  w.end_program(0, 0, 9);
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kSetUnusable); }, 2000)) << w.trace;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning, 2000)) << w.trace;
  EXPECT_FALSE(w.has_event(kResumedFrom));
  EXPECT_EQ(w.violation, "") << w.trace;
}

// As of a set that an older operator has stored.
TEST(CheckpointSkew, WhatIsNotKnownIsNotCompared) {
  World w = with_facts();
  ASSERT_TRUE(has_stored(w, 1)) << w.trace;
  w.job.spec.checkpoint.interval = "1h";
  ASSERT_TRUE(w.run_until([&] { return w.job.status.phase == JobPhase::kRunning; })) << w.trace;
  crds::StoredSet& set = w.job.status.checkpoint->sets.back();
  set.image = set.account = set.mounts = set.runtime = "";
  set.features = {{"no number", "0-1"}};
  w.end_program(0, 0, 9);
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kResumedFrom); }, 2000)) << w.trace;
}

}  // namespace
}  // namespace bsp::reconcile::sim
