// What a pod and its Secret are made of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <format>

#include "base/core/base64.h"
#include "crds/names.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::SizeIs;

// --- Pods as they are made (the whole of one is in tests/golden) --------------------------------------------------
crds::BspJob job_with(json app, json pod_spec = json::object()) {
  crds::BspJob job;
  job.metadata.name = "job";
  job.metadata.uid = "uid";
  job.spec.ranks = 4;
  app["name"] = "app";
  pod_spec["containers"] = json::array({std::move(app)});
  job.spec.pod_template = {{"spec", std::move(pod_spec)}};
  return job;
}
PodRequest request(std::uint32_t rank, bool target = false) {
  PodRequest r;
  r.rank = rank;
  r.target = target;
  return r;
}
json app_of(const json& pod) { return pod.at("spec").at("containers").at(0); }
std::string env_of(const json& container, std::string_view name) {
  for (const json& entry : container.value("env", json::array()))
    if (entry.at("name") == name) return entry.value("value", "");
  return "";
}

// A rank waits in MPI_Init for the others' pods, which may take all of the time that a job's start may take.
TEST(MakePod, ARankWaitsForTheOthersLongerThanTheOperatorDoes) {
  for (const std::int64_t start : {300, 3600, 86'400}) {
    PodOptions options;
    options.start = std::chrono::seconds(start);
    const json app = app_of(
        make_pod(job_with({{"command", {"p"}}, {"env", {{{"name", "BSP_FIRST_EPOCH_SECONDS"}, {"value", "1"}}}}}),
                 request(0), {}, options));
    EXPECT_EQ(env_of(app, "BSP_FIRST_EPOCH_SECONDS"), std::to_string(start + 600));
  }
}

TEST(MakePod, CommandAndArgumentsFollowKubernetesRules) {
  const ImageDefaults image{.entrypoint = {"entry", "e1"}, .command = {"cmd", "c1"}, .user = ""};
  auto command = [&](json app, bool target = false) {
    const json made = app_of(make_pod(job_with(std::move(app)), request(0, target), image));
    EXPECT_FALSE(made.contains("args"));
    return made.at("command").get<std::vector<std::string>>();
  };
  const std::string init = "/bsp/bsp-init";
  EXPECT_THAT(command({{"command", {"p", "x"}}, {"args", {"y"}}}), ElementsAre(init, "--", "p", "x", "y"));
  EXPECT_THAT(command({{"command", {"p"}}}), ElementsAre(init, "--", "p"))
      << "the image's command is not its arguments";
  EXPECT_THAT(command({{"args", {"y"}}}), ElementsAre(init, "--", "entry", "e1", "y"));
  EXPECT_THAT(command(json::object()), ElementsAre(init, "--", "entry", "e1", "cmd", "c1"));
  EXPECT_THAT(command({{"command", json::array()}, {"args", json::array()}}),
              ElementsAre(init, "--", "entry", "e1", "cmd", "c1"));
  EXPECT_THAT(command({{"command", {"p"}}}, true), ElementsAre(init, "--restore", "--", "p"));
}

TEST(MakePod, TheProgramRunsAsTheTemplatesOrTheImagesUser) {
  struct Case {
    json container, pod;
    const char* image;
    const char* user;
  };
  for (const Case& c :
       {Case{{}, {}, "", ""}, Case{{}, {}, "mpi:mpi", "mpi:mpi"}, Case{{{"runAsUser", 7}}, {}, "mpi", "7"},
        Case{{{"runAsUser", 7}, {"runAsGroup", 8}}, {{"runAsUser", 1}, {"runAsGroup", 2}}, "mpi", "7:8"},
        Case{{}, {{"runAsUser", 1000}}, "mpi", "1000"},
        Case{{}, {{"runAsUser", 1000}, {"runAsGroup", 2000}}, "mpi", "1000:2000"},
        Case{{{"runAsUser", 7}}, {{"runAsGroup", 2000}}, "mpi", "7:2000"},
        Case{{}, {{"runAsGroup", 2000}}, "mpi:mpi", "mpi:2000"}, Case{{}, {{"runAsGroup", 2000}}, "", "0:2000"}}) {
    json app = {{"command", {"p"}}}, spec = json::object();
    if (!c.container.is_null()) app["securityContext"] = c.container;
    if (!c.pod.is_null()) spec["securityContext"] = c.pod;
    spec["securityContext"]["runAsNonRoot"] = true;
    const json pod = make_pod(job_with(app, spec), request(0), {.entrypoint = {}, .command = {}, .user = c.image});
    EXPECT_EQ(env_of(app_of(pod), names::kEnvUser), c.user);
    // bsp-init itself is root in its container whatever the pod asks for its own.
    const json security = app_of(pod).at("securityContext");
    EXPECT_EQ(security.at("runAsUser"), 0);
    EXPECT_EQ(security.at("runAsGroup"), 0);
    EXPECT_EQ(security.at("runAsNonRoot"), false);
  }
}

// bsp-init can't distinguish the groups of the pod from those that the image gives root.
TEST(MakePod, BspInitGetsTheTemplatesGroups) {
  auto groups = [](const json& security) {
    const json pod = make_pod(job_with({{"command", {"p"}}}, {{"securityContext", security}}), request(0), {});
    EXPECT_EQ(pod.at("spec").at("securityContext"), security);
    return env_of(app_of(pod), names::kEnvGroups);
  };
  EXPECT_EQ(groups({{"fsGroup", 2222}}), "2222");
  EXPECT_EQ(groups({{"fsGroup", 2222}, {"supplementalGroups", {3333, 4444}}}), "3333 4444 2222");
  EXPECT_EQ(groups({{"supplementalGroups", {10}}, {"supplementalGroupsPolicy", "Strict"}}), "10 Strict");
  EXPECT_EQ(groups({{"runAsUser", 1000}}), "");
}

// A process under a filter can't be dumped, so the profile is kept only if ranks don't move.
TEST(MakePod, ASeccompProfileIsKeptIfNoRankMayMove) {
  const json mine = {{"type", "RuntimeDefault"}}, local = {{"type", "Localhost"}, {"localhostProfile", "p.json"}},
             unconfined = {{"type", "Unconfined"}};
  auto profile = [](const json& own, const json& of_pod, crds::ReschedulingMode mode) {
    json app = {{"command", {"p"}}}, spec = json::object();
    if (!own.is_null()) app["securityContext"]["seccompProfile"] = own;
    if (!of_pod.is_null()) spec["securityContext"]["seccompProfile"] = of_pod;
    crds::BspJob job = job_with(app, spec);
    job.spec.rescheduling.mode = mode;
    return app_of(make_pod(job, request(0), {})).at("securityContext").at("seccompProfile");
  };
  using enum crds::ReschedulingMode;
  for (const auto mode : {kOff, kAdvise}) {
    EXPECT_EQ(profile(mine, {}, mode), mine);
    EXPECT_EQ(profile({}, local, mode), local);
    EXPECT_EQ(profile(mine, local, mode), mine);
    EXPECT_EQ(profile(unconfined, local, mode), unconfined);
    EXPECT_EQ(profile({}, {}, mode), unconfined);
  }
  EXPECT_EQ(profile(mine, local, kMigrate), unconfined);
}

TEST(MakePod, FieldsOfOtherKubernetesVersionsGainNoPrivilege) {
  json spec = {{"initContainers", {{{"name", "prepare"}, {"image", "i"}}, {{"name", "sidecar"}, {"image", "old"}}}},
               {"volumes", {{{"name", "bsp-run"}, {"emptyDir", json::object()}}}},
               {"restartPolicy", "Always"}};
  const json pod = make_pod(job_with({{"env", {{{"name", "BSP_SUPERSTEP"}, {"value", "x"}}}}}, spec), request(0), {});
  const json& init = pod.at("spec").at("initContainers");
  ASSERT_THAT(init, SizeIs(2));
  EXPECT_EQ(init[0].at("name"), "sidecar") << "first, so that what the user prepares may take its time";
  EXPECT_EQ(init[0].at("image"), names::kRuntimeImage);
  EXPECT_EQ(init[1].at("name"), "prepare");
  EXPECT_EQ(pod.at("spec").at("restartPolicy"), "Never");
  const json env = app_of(pod).at("env");
  EXPECT_EQ(std::count_if(env.begin(), env.end(), [](const json& e) { return e.at("name") == names::kEnvSuperstep; }),
            1);
  EXPECT_EQ(env_of(app_of(pod), names::kEnvSuperstep), "Auto");
  EXPECT_EQ(env_of(app_of(pod), names::kEnvTerminationLog), "") << "bsp-init knows the usual one";
  const json elsewhere = make_pod(job_with({{"terminationMessagePath", "/tmp/why"}}, spec), request(0), {});
  EXPECT_EQ(env_of(app_of(elsewhere), names::kEnvTerminationLog), "/tmp/why");
  int found = 0;
  for (const json& volume : pod.at("spec").at("volumes"))
    if (volume.at("name") == "bsp-run") found += volume.at("emptyDir").at("medium") == "Memory";
  EXPECT_EQ(found, 1);
}

// The requirements of the restricted Pod Security Standard (and a read-only root).
void expect_restricted(const json& container) {
  const json& security = container.at("securityContext");
  EXPECT_EQ(security.at("runAsNonRoot"), true);
  EXPECT_GT(security.at("runAsUser").get<int>(), 0);
  EXPECT_EQ(security.at("allowPrivilegeEscalation"), false);
  EXPECT_EQ(security.at("capabilities"), (json{{"drop", {"ALL"}}}));
  EXPECT_EQ(security.at("seccompProfile"), (json{{"type", "RuntimeDefault"}}));
  EXPECT_EQ(security.at("readOnlyRootFilesystem"), true);
}

TEST(MakePod, OurContainersAreRestrictedAndRunAsAnotherUser) {
  for (const json& security :
       {json::object(), json{{"runAsUser", 64600}}, json{{"runAsUser", 1}, {"runAsGroup", 64600}}}) {
    const json pod = make_pod(job_with({{"command", {"p"}}, {"securityContext", security}}), request(0), {},
                              {.delivery = RuntimeDelivery::kCopy});
    const json& init = pod.at("spec").at("initContainers");
    ASSERT_THAT(init, SizeIs(2));
    for (const json& container : init) {
      expect_restricted(container);
      for (const char* id : {"runAsUser", "runAsGroup"})
        EXPECT_NE(container.at("securityContext").at("runAsUser"), security.value(id, json()))
            << "it could replace its files";
    }
  }
}

// A quota on cpu or memory, and the QoS class Guaranteed, require resources of every container.
TEST(MakePod, OurContainersHaveTheJobsResources) {
  const json each = {{"requests", {{"cpu", "20m"}, {"memory", "64Mi"}}},
                     {"limits", {{"cpu", "20m"}, {"memory", "64Mi"}}}};
  crds::BspJob job = job_with({{"command", {"p"}}, {"resources", {{"limits", {{"cpu", 1}, {"memory", "1Gi"}}}}}});
  job.spec.sidecar.resources = each;
  const PodOptions options{.scheduled = true, .delivery = RuntimeDelivery::kCopy};
  const json pod = make_pod(job, request(0), {}, options);
  ASSERT_THAT(pod.at("spec").at("initContainers"), SizeIs(3)) << "sidecar, bsp-runtime and bsp-user";
  for (const json& container : pod.at("spec").at("initContainers"))
    EXPECT_EQ(container.value("resources", json()), each) << container.at("name");
  EXPECT_EQ(app_of(pod).at("resources"), (json{{"limits", {{"cpu", 1}, {"memory", "1Gi"}}}}));
  EXPECT_EQ(requests_of_rank(job.spec.pod_template, each), requests_of(pod.at("spec")));
  job.spec.sidecar.resources = nullptr;
  const json plain = make_pod(job, request(0), {}, options);
  for (const json& container : plain.at("spec").at("initContainers"))
    EXPECT_FALSE(container.contains("resources")) << container.at("name");
}

TEST(MakePod, WithoutImageVolumesTheRuntimeIsCopied) {
  json spec = {{"initContainers", {{{"name", "prepare"}, {"image", "i"}}}}};
  PodOptions options;
  options.runtime_image = "registry/runtime:1";
  auto runtime_of = [](const json& pod) {
    for (const json& volume : pod.at("spec").at("volumes"))
      if (volume.at("name") == "bsp-runtime") return volume;
    return json();
  };
  const json mounted = make_pod(job_with({{"command", {"p"}}}, spec), request(0), {}, options);
  EXPECT_EQ(runtime_of(mounted).at("image").at("reference"), "registry/runtime:1");
  options.delivery = RuntimeDelivery::kCopy;
  const json copied = make_pod(job_with({{"command", {"p"}}}, spec), request(0), {}, options);
  EXPECT_EQ(runtime_of(copied), (json{{"name", "bsp-runtime"}, {"emptyDir", json::object()}}));
  const json& init = copied.at("spec").at("initContainers");
  ASSERT_THAT(init, SizeIs(3));
  EXPECT_EQ(init[0].at("name"), "sidecar");
  EXPECT_EQ(init[1].at("name"), "bsp-runtime");
  EXPECT_EQ(init[1].at("image"), "registry/runtime:1");
  EXPECT_EQ(init[1].at("command"), (json{"/bsp/bsp-init", "--install", "/target"}));
  EXPECT_EQ(init[1].at("volumeMounts"), (json::array({{{"name", "bsp-runtime"}, {"mountPath", "/target"}}})));
  EXPECT_FALSE(init[1].contains("restartPolicy")) << "it ends, and only then the program begins";
  EXPECT_EQ(init[2].at("name"), "prepare");
  EXPECT_EQ(app_of(copied), app_of(mounted));
}

TEST(MakePod, TheTemplateIsNotChanged) {
  const crds::BspJob job = job_with({{"command", {"p"}}});
  const json before = job.spec.pod_template;
  EXPECT_EQ(make_pod(job, request(1), {}), make_pod(job, request(1), {}));
  EXPECT_EQ(job.spec.pod_template, before);
}

TEST(Names, AreTheSameAfterARestartOfTheOperator) {
  EXPECT_EQ(pod_name("job", 3, 2), "job-r3-g2");
  const JobId id{"job", "3f2a9c01-7d5e-4f0b-9c1d-000000000000"};
  EXPECT_EQ(secret_name(id, {.rank = 3, .generation = 2, .target = true}), "job-3f2a9c01-r3-g2-tls");
  EXPECT_EQ(secret_name(id, {.rank = 31, .generation = 2, .attempt = 1}), "job-3f2a9c01-a1-0-tls") << "32 share one";
  EXPECT_EQ(secret_name(id, {.rank = 32, .generation = 2, .attempt = 1}), "job-3f2a9c01-a1-1-tls");
  crds::ObjectMeta job;
  job.name = "job";
  job.uid = id.uid;
  EXPECT_EQ(migration_name(job, 4, 3), "job-w4-r3");
  job.name = std::string(52, 'a');
  EXPECT_EQ(migration_name(job, 1234, 567), std::string(52, 'a') + "-w1234-r567") << "as long as a name may be";
  EXPECT_EQ(migration_name(job, 1234, 5678), std::string(42, 'a') + "-3f2a9c01-w1234-r5678")
      << "distinct without its end";
}

TEST(MakePod, MountsItsOwnPartOfItsSecret) {
  const crds::BspJob job = job_with({{"command", {"p"}}});
  for (const PodRequest& r : {PodRequest{.rank = 40, .generation = 3, .attempt = 2},
                              PodRequest{.rank = 40, .generation = 4, .attempt = 2, .target = true}}) {
    const json pod = make_pod(job, r, {});
    const json& volumes = pod.at("spec").at("volumes");
    const auto tls = std::ranges::find_if(volumes, [](const json& v) { return v.at("name") == "bsp-tls"; });
    ASSERT_NE(tls, volumes.end());
    EXPECT_EQ(tls->at("secret").at("secretName"), secret_name({"job", "uid"}, r));
    EXPECT_EQ(tls->at("secret").at("items").size(), 3u);
    EXPECT_EQ(tls->at("secret").at("items").at(1).at("key"), certificate_file(pod_name("job", r.rank, r.generation)));
    EXPECT_EQ(secret_name({"job", "uid"}, request_of(pod)), secret_name({"job", "uid"}, r));
  }
}

TEST(MakeSecret, IsOwnedByTheJobAndHoldsItsFiles) {
  const json secret = make_secret(job_with({}), "s", {{"ca.pem", "CA"}, {"a.key.pem", "KEY"}});
  EXPECT_EQ(secret.at("data").size(), 2u);
  EXPECT_FALSE(secret.contains("immutable")) << "what it holds is renewed";
  EXPECT_EQ(base64_decode(secret.at("data").at("ca.pem").get<std::string>()).value_or(""), "CA");
  EXPECT_EQ(base64_decode(secret.at("data").at("a.key.pem").get<std::string>()).value_or(""), "KEY");
  EXPECT_EQ(secret.at("metadata").at("labels").at("migbsp.io/job"), "job");
  EXPECT_EQ(secret.at("metadata").at("ownerReferences").at(0).at("uid"), "uid");
}

// Else the pods would end before their ranks have moved.
TEST(MakePod, HasTimeToLeaveANodeThatIsTainted) {
  const auto tolerations = [](json given, bool scheduled) {
    crds::BspJob job;
    job.metadata.name = "job";
    job.spec.pod_template = {{"spec", {{"containers", {{{"name", "app"}, {"image", "i"}, {"command", {"c"}}}}}}}};
    if (!given.is_null()) job.spec.pod_template["spec"]["tolerations"] = std::move(given);
    job.spec.run_policy.drain_timeout_seconds = 90;
    return make_pod(job, {}, {}, {.scheduled = scheduled})["spec"].value("tolerations", json());
  };
  const auto silent = [](const char* key) {
    return json{{"key", key}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 300}};
  };
  const json ours = {{"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 90}};
  const char *not_ready = "node.kubernetes.io/not-ready", *unreachable = "node.kubernetes.io/unreachable";
  EXPECT_EQ(tolerations({}, true), (json{silent(not_ready), silent(unreachable), ours}));
  EXPECT_EQ(tolerations({}, false), json()) << "there are no taints on one machine";
  const json own = {{"key", not_ready}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 5}};
  EXPECT_EQ(tolerations({own}, true), (json{own, silent(unreachable), ours}));
  const json all = {{"operator", "Exists"}};
  EXPECT_EQ(tolerations({all}, true), json{all}) << "it tolerates everything for good";
}

}  // namespace
}  // namespace bsp::reconcile
