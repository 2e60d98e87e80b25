// The small pure functions: what is read from pods and nodes, what a pod is made of, what a status mirrors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <tuple>

#include "base/core/base64.h"
#include "base/core/significant.h"
#include "crds/names.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/shell/objects.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// --- Base64 (the examples of RFC 4648, section 10) -------------------------------------------------------------
TEST(Base64, KnownAnswers) {
  for (const auto& [plain, coded] : {std::pair{"", ""},
                                     {"f", "Zg=="},
                                     {"fo", "Zm8="},
                                     {"foo", "Zm9v"},
                                     {"foob", "Zm9vYg=="},
                                     {"fooba", "Zm9vYmE="},
                                     {"foobar", "Zm9vYmFy"}}) {
    EXPECT_EQ(base64_encode(plain), coded);
    EXPECT_EQ(base64_decode(coded).value_or("refused"), plain);
  }
}

TEST(Significant, KeepsSoManyDigitsOfAnySize) {
  EXPECT_EQ(significant(0.13432932413057785, 4), 0.1343);
  EXPECT_EQ(significant(-123456.7, 3), -123000);
  EXPECT_EQ(significant(1.99996e-9, 4), 2e-9);
  EXPECT_EQ(significant(0, 4), 0);
}

TEST(Base64, EveryByteComesBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  for (std::size_t n = 0; n <= bytes.size(); ++n)
    EXPECT_EQ(base64_decode(base64_encode(bytes.substr(0, n))).value_or("refused"), bytes.substr(0, n));
  EXPECT_EQ(base64_encode("\xfb\xff\xbf"), "+/+/");
}

TEST(Base64, LineEndsAreNothingAndAllElseIsRefused) {
  EXPECT_EQ(base64_decode("Zm9v\r\nYg=\n=\n").value_or("refused"), "foob");
  for (const char* bad :
       {"Z", "Zg", "Zg=", "Zm9vY", "=", "====", "Z===", "Zg==Zg==", "Zg=x", "Zm9v Yg==", "Zm-_", "Zg==="}) {
    const auto decoded = base64_decode(bad);
    ASSERT_FALSE(decoded) << bad;
    EXPECT_EQ(decoded.error().message, "is not base64");
  }
}

// --- Pods and nodes as they are seen -----------------------------------------------------------------------------
json pod_with(json status) {
  return {{"metadata",
           {{"name", "job-r3-g1"}, {"uid", "u"}, {"labels", {{"migbsp.io/rank", "3"}, {"migbsp.io/set", "fast"}}}}},
          {"spec", {{"nodeName", "fast-0"}}},
          {"status", std::move(status)}};
}
json app_state(json state) {
  return pod_with({{"containerStatuses", {{{"name", "app"}, {"state", std::move(state)}}}}});
}

TEST(PodFacts, APodThatRuns) {
  const PodFacts f =
      pod_facts(pod_with({{"phase", "Running"},
                          {"podIP", "10.0.0.7"},
                          {"containerStatuses", {{{"name", "app"}, {"state", {{"running", json::object()}}}}}}}));
  EXPECT_EQ(f.uid, "u");
  EXPECT_EQ(f.rank, 3u);
  EXPECT_EQ(f.set, "fast");
  EXPECT_EQ(f.node, "fast-0");
  EXPECT_EQ(f.address, "10.0.0.7:7600");
  EXPECT_FALSE(f.deleting || f.app_ended || f.cannot_start || f.pod_ended);
}

TEST(PodFacts, AddressesOfBothFamilies) {
  EXPECT_EQ(pod_facts(pod_with({{"podIP", "fd00::7"}})).address, "[fd00::7]:7600");
  EXPECT_EQ(pod_facts(pod_with({{"phase", "Pending"}})).address, "");
}

TEST(PodFacts, DeletionIsSeenByItsTimestamp) {
  json pod = pod_with({});
  pod["metadata"]["deletionTimestamp"] = "2026-11-21T05:00:00Z";
  EXPECT_TRUE(pod_facts(pod).deleting);
}

TEST(PodFacts, HowTheProgramEnded) {
  PodFacts f = pod_facts(app_state({{"terminated", {{"exitCode", 139}, {"reason", "Error"}, {"message", "log"}}}}));
  EXPECT_TRUE(f.app_ended);
  EXPECT_EQ(f.app_exit_code, 139);
  EXPECT_EQ(f.app_message, "log");
  EXPECT_FALSE(f.cannot_start || f.pod_ended);
  f = pod_facts(app_state({{"terminated", {{"exitCode", 128}, {"reason", "ContainerCannotRun"}}}}));
  EXPECT_TRUE(f.cannot_start);
  f = pod_facts(app_state({{"terminated", json::object()}}));
  EXPECT_EQ(f.app_exit_code, 1) << "an end without a code is no good end";
}

TEST(PodFacts, WaitingThatNoWaitingCures) {
  for (const char* reason :
       {"ErrImagePull", "ErrImageNeverPull", "ImagePullBackOff", "InvalidImageName", "ContainerCannotRun",
        "CreateContainerError", "CreateContainerConfigError", "RunContainerError", "StartError"}) {
    const PodFacts f = pod_facts(app_state({{"waiting", {{"reason", reason}, {"message", "why"}}}}));
    EXPECT_TRUE(f.cannot_start) << reason;
    EXPECT_EQ(f.reason, reason);
    EXPECT_EQ(f.app_message, "why");
  }
  for (const char* reason : {"ContainerCreating", "PodInitializing", ""})
    EXPECT_FALSE(pod_facts(app_state({{"waiting", {{"reason", reason}}}})).cannot_start) << reason;
  const PodFacts sidecar = pod_facts(pod_with(
      {{"initContainerStatuses", {{{"name", "sidecar"}, {"state", {{"waiting", {{"reason", "ErrImagePull"}}}}}}}}}));
  EXPECT_TRUE(sidecar.cannot_start) << "the runtime image is missing";
}

TEST(PodFacts, ASidecarThatWasKilledForWantOfMemory) {
  const json killed = {{"terminated", {{"exitCode", 137}, {"reason", "OOMKilled"}}}};
  const json other = {{"terminated", {{"exitCode", 137}, {"reason", "Error"}}}};
  const auto sidecar = [](const char* name, json state, json last) {
    return pod_facts(pod_with({{"initContainerStatuses",
                                {{{"name", name}, {"state", std::move(state)}, {"lastState", std::move(last)}}}}}))
        .sidecar_out_of_memory;
  };
  EXPECT_TRUE(sidecar("sidecar", killed, json::object()));
  EXPECT_TRUE(sidecar("sidecar", {{"running", json::object()}}, killed)) << "it has been started again";
  EXPECT_FALSE(sidecar("sidecar", other, other));
  EXPECT_FALSE(sidecar("prepare", killed, killed)) << "the user's own";
}

// --- What is kept of objects
// ------------------------------------------------------------------------------------------
bool equal(const PodFacts& a, const PodFacts& b) {
  const auto all = [](const PodFacts& f) {
    return std::tie(f.uid, f.node, f.set, f.rank, f.deleting, f.address, f.app_ended, f.others_run, f.app_exit_code,
                    f.app_message, f.cannot_start, f.pod_ended, f.reason, f.unscheduled, f.sidecar_out_of_memory);
  };
  return all(a) == all(b);
}

TEST(Trim, APodKeepsAllThatIsSeenOfItAndLittleElse) {
  const json started = {{"startedAt", "2026-11-21T05:00:00Z"}};
  const json ended = {{"terminated",
                       {{"exitCode", 137},
                        {"reason", "OOMKilled"},
                        {"message", "last words"},
                        {"startedAt", "2026-11-21T05:00:00Z"},
                        {"containerID", "containerd://0123456789"}}}};
  const auto container = [](const char* name, const json& state, const json& last = json::object()) {
    return json{{"name", name},     {"state", state},      {"lastState", last},
                {"ready", true},    {"restartCount", 1},   {"image", "registry/image:1"},
                {"started", false}, {"imageID", "sha256"}, {"containerID", "containerd://0123456789"}};
  };
  const auto condition = [](const char* type, const char* status, const char* message) {
    return json{{"type", type},       {"status", status},         {"reason", "Unschedulable"},
                {"message", message}, {"lastProbeTime", nullptr}, {"lastTransitionTime", "2026-11-21T05:00:00Z"}};
  };
  const json told =
      json::array({condition("Initialized", "False", "containers with incomplete status"),
                   condition("PodScheduled", "False", "0/3 nodes are available"), condition("Ready", "True", "")});
  const json runs = {{"running", started}}, waits = {{"waiting", {{"reason", "ErrImagePull"}, {"message", "why"}}}};
  const std::vector<json> statuses{
      {{"phase", "Pending"}, {"conditions", told}, {"qosClass", "Burstable"}},
      {{"phase", "Running"},
       {"podIP", "10.0.0.7"},
       {"podIPs", {{{"ip", "10.0.0.7"}}}},
       {"initContainerStatuses", {container("sidecar", runs, ended)}},
       {"containerStatuses", {container("app", runs), container("helper", runs)}}},
      {{"phase", "Pending"}, {"containerStatuses", {container("app", waits)}}},
      {{"phase", "Failed"}, {"reason", "Evicted"}, {"message", "no memory"}},
      {{"phase", "Succeeded"}, {"containerStatuses", {container("app", ended), container("helper", ended)}}}};
  for (json status : statuses) {
    json pod = pod_with(std::move(status));
    pod["apiVersion"] = "v1";
    pod["kind"] = "Pod";
    pod["metadata"]["labels"]["migbsp.io/job"] = "job";
    pod["metadata"]["labels"]["team"] = "blue";
    pod["metadata"]["ownerReferences"] = {
        {{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"name", "purple"}, {"uid", "r"}, {"controller", false}},
        {{"apiVersion", "migbsp.io/v1alpha1"},
         {"kind", "BSPJob"},
         {"name", "job"},
         {"uid", "j"},
         {"controller", true},
         {"blockOwnerDeletion", true}}};
    pod["metadata"]["annotations"] = {{"note", "long"}};
    pod["spec"]["containers"] = {
        {{"name", "app"}, {"image", "registry/image:1"}, {"resources", {{"requests", {{"cpu", "1"}}}}}}};
    json trimmed = pod;
    trim_watched(kPod, trimmed);
    EXPECT_TRUE(equal(pod_facts(trimmed), pod_facts(pod))) << pod["status"] << "\n" << trimmed["status"];
    EXPECT_EQ(requests_of(trimmed["spec"]), requests_of(pod["spec"]));
    EXPECT_EQ(job_key_of(kPod, trimmed), "/job");
    EXPECT_EQ(owner_of(trimmed).uid, "j");
    EXPECT_EQ(secret_name({"job", "uid"}, request_of(trimmed)), secret_name({"job", "uid"}, request_of(pod)));
    EXPECT_EQ(has_ended(trimmed), has_ended(pod));
    for (const char* word :
         {"startedAt", "containerID", "image", "Initialized", "lastTransitionTime", "blue", "note", "purple"})
      EXPECT_THAT(trimmed.dump(), Not(HasSubstr(word)));
    json again = trimmed;
    trim_watched(kPod, again);
    EXPECT_EQ(again, trimmed) << "the client has done it, then the cache does";
  }
}

TEST(Trim, AJobKeepsAllButKubectlsCopyOfIt) {
  json job = {{"apiVersion", "migbsp.io/v1alpha1"},
              {"kind", "BSPJob"},
              {"metadata",
               {{"name", "job"},
                {"annotations",
                 {{"kubectl.kubernetes.io/last-applied-configuration", "{}"}, {"migbsp.io/fault-points", "enabled"}}}}},
              {"spec", {{"ranks", 2}}}};
  json trimmed = job;
  trim_watched(kBspJob, trimmed);
  job["metadata"]["annotations"].erase("kubectl.kubernetes.io/last-applied-configuration");
  EXPECT_EQ(trimmed, job);
}

TEST(PodFacts, AnotherContainersEndIsNotTheRanks) {
  EXPECT_FALSE(pod_facts(pod_with({{"containerStatuses",
                                    {{{"name", "helper"}, {"state", {{"terminated", {{"exitCode", 1}}}}}}}}}))
                   .app_ended);
}

TEST(PodFacts, WhetherAContainerOfTheJobsOwnRuns) {
  const auto pod = [](const char* name, const char* state) {
    return pod_facts(
        pod_with({{"initContainerStatuses", {{{"name", "sidecar"}, {"state", {{"running", json::object()}}}}}},
                  {"containerStatuses", {{{"name", name}, {"state", {{state, json::object()}}}}}}}));
  };
  EXPECT_TRUE(pod("helper", "running").others_run);
  EXPECT_FALSE(pod("helper", "terminated").others_run);
  EXPECT_FALSE(pod("app", "running").others_run);
}

TEST(PodFacts, APodThatItsNodeEnded) {
  const PodFacts f = pod_facts(pod_with({{"phase", "Failed"}, {"reason", "Evicted"}, {"message", "low on memory"}}));
  EXPECT_TRUE(f.pod_ended && f.app_ended);
  EXPECT_EQ(f.app_exit_code, 1);
  EXPECT_EQ(f.app_message, "low on memory");
  EXPECT_FALSE(f.cannot_start);
  EXPECT_TRUE(pod_facts(pod_with({{"phase", "Failed"}, {"reason", "CreateContainerError"}})).cannot_start);
}

TEST(NodeFacts, SetSpeedAndCordon) {
  const json node = {
      {"metadata", {{"name", "n"}, {"labels", {{"pool", "fast"}}}, {"annotations", {{"migbsp.io/cpu", "0.25"}}}}},
      {"spec", {{"unschedulable", true}}}};
  const auto f = node_facts(node, "pool");
  EXPECT_EQ(f.name, "n");
  EXPECT_EQ(f.set, "fast");
  EXPECT_DOUBLE_EQ(f.speed, 0.25);
  EXPECT_TRUE(f.cordoned);
  EXPECT_EQ(node_facts(node, "other").set, "");
  for (const char* speed : {"", "-1", "0", "fast"}) {
    json odd = node;
    odd["metadata"]["annotations"]["migbsp.io/cpu"] = speed;
    EXPECT_DOUBLE_EQ(node_facts(odd, "pool").speed, 1) << speed;
  }
}

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

TEST(MakePod, CommandAndArgumentsByTheRulesOfKubernetes) {
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

TEST(MakePod, TheProgramRunsAsWhomTheTemplateOrTheImageSays) {
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

// bsp-init can't tell the groups that the pod asks for from those that the image gives root.
TEST(MakePod, BspInitLearnsOfTheGroupsThatTheTemplateAsksFor) {
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

// No process under a filter can be dumped: what stays of a profile depends on whether ranks are to move.
TEST(MakePod, ASeccompProfileStaysWhereNoRankIsToMove) {
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

TEST(MakePod, TemplatesOfAnotherVersionWinNothing) {
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
  int found = 0;
  for (const json& volume : pod.at("spec").at("volumes"))
    if (volume.at("name") == "bsp-run") found += volume.at("emptyDir").at("medium") == "Memory";
  EXPECT_EQ(found, 1);
}

// What the restricted Pod Security Standard wants of a container (and a root that can't be written besides).
void expect_restricted(const json& container) {
  const json& security = container.at("securityContext");
  EXPECT_EQ(security.at("runAsNonRoot"), true);
  EXPECT_GT(security.at("runAsUser").get<int>(), 0);
  EXPECT_EQ(security.at("allowPrivilegeEscalation"), false);
  EXPECT_EQ(security.at("capabilities"), (json{{"drop", {"ALL"}}}));
  EXPECT_EQ(security.at("seccompProfile"), (json{{"type", "RuntimeDefault"}}));
  EXPECT_EQ(security.at("readOnlyRootFilesystem"), true);
}

TEST(MakePod, OurOwnContainersAreRestrictedAndNoUserOfTheProgram) {
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

TEST(MakePod, TheTemplateItselfIsNotChanged) {
  const crds::BspJob job = job_with({{"command", {"p"}}});
  const json before = job.spec.pod_template;
  EXPECT_EQ(make_pod(job, request(1), {}), make_pod(job, request(1), {}));
  EXPECT_EQ(job.spec.pod_template, before);
}

TEST(Names, AreTheSameInEveryLifeOfTheOperator) {
  EXPECT_EQ(pod_name("job", 3, 2), "job-r3-g2");
  const JobId id{"job", "3f2a9c01-7d5e-4f0b-9c1d-000000000000"};
  EXPECT_EQ(secret_name(id, {.rank = 3, .generation = 2, .target = true}), "job-3f2a9c01-r3-g2-tls");
  EXPECT_EQ(secret_name(id, {.rank = 31, .generation = 2, .attempt = 1}), "job-3f2a9c01-a1-0-tls") << "32 share one";
  EXPECT_EQ(secret_name(id, {.rank = 32, .generation = 2, .attempt = 1}), "job-3f2a9c01-a1-1-tls");
  EXPECT_EQ(migration_name("job", 4, 3), "job-w4-r3");
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

TEST(MakeSecret, GoesWithTheJobAndHoldsItsFiles) {
  const json secret = make_secret(job_with({}), "s", {{"ca.pem", "CA"}, {"a.key.pem", "KEY"}});
  EXPECT_EQ(secret.at("data").size(), 2u);
  EXPECT_FALSE(secret.contains("immutable")) << "what it holds is renewed";
  EXPECT_EQ(base64_decode(secret.at("data").at("ca.pem").get<std::string>()).value_or(""), "CA");
  EXPECT_EQ(base64_decode(secret.at("data").at("a.key.pem").get<std::string>()).value_or(""), "KEY");
  EXPECT_EQ(secret.at("metadata").at("labels").at("migbsp.io/job"), "job");
  EXPECT_EQ(secret.at("metadata").at("ownerReferences").at(0).at("uid"), "uid");
}

// --- What a status mirrors ---------------------------------------------------------------------------------------
TEST(Status, RoomThatOtherJobsTakeIsNoNewsBeforeAJobRuns) {
  sim::World w({.ranks = 3, .slow = 2, .fast = 2});
  ASSERT_TRUE(w.run_until(crds::JobPhase::kStarting));
  Observed o = w.observe();
  crds::BspJobStatus status = o.job.status;
  refresh_status(o, status);
  ASSERT_THAT(status.ranks_per_set, SizeIs(2));
  const auto before = status.ranks_per_set[0].slots;
  for (auto& node : o.nodes) node.slots = 0;
  refresh_status(o, status);
  EXPECT_EQ(status.ranks_per_set[0].slots, before);
  status.phase = crds::JobPhase::kRunning;
  refresh_status(o, status);
  EXPECT_EQ(status.ranks_per_set[0].slots, 0u);
}

TEST(Status, MirrorsTheWorldAndASecondLookChangesNothing) {
  sim::World w({.ranks = 3, .slow = 2, .fast = 2});
  ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning));
  for (int i = 0; i < 5; ++i) w.tick();
  Observed o = w.observe();
  o.sidecars["job-r1-g0"].status->memory_bytes = 77;
  o.sidecars["job-r1-g0"].status->blocked_reason = "an open window";
  o.sidecars["job-r0-g0"].completed = 40;
  o.sidecars["job-r1-g0"].completed = 41;
  o.sidecars["job-r2-g0"].completed = 42;
  crds::BspJobStatus status = o.job.status;
  refresh_status(o, status);
  EXPECT_EQ(status.superstep.value, 40u) << "the last that all ranks completed";
  EXPECT_EQ(status.ranks[1].memory_bytes, 77u);
  EXPECT_EQ(status.ranks[1].blocked_reason, "an open window");
  ASSERT_THAT(status.ranks_per_set, SizeIs(2));
  EXPECT_EQ(status.ranks_per_set[0].set, "fast");
  EXPECT_EQ(status.ranks_per_set[0].ranks, 1u);
  EXPECT_EQ(status.ranks_per_set[0].slots, 2u);
  EXPECT_EQ(status.ranks_per_set[1].ranks, 2u);

  json once, twice;
  to_json(once, status);
  o.now += std::chrono::hours(1);
  refresh_status(o, status);
  to_json(twice, status);
  EXPECT_EQ(once, twice);

  o.sidecars.erase("job-r2-g0");  // a fresh operator, or a silent sidecar: the count does not fall
  refresh_status(o, status);
  EXPECT_EQ(status.superstep.value, 40u);
}

TEST(Status, ConditionsTurnOnceAndTellWhen) {
  Observed o;
  o.now = Time{} + std::chrono::hours(1);
  o.job.metadata.generation = 3;
  crds::BspJobStatus status;
  status.phase = crds::JobPhase::kRunning;
  status.reason = "Running";
  refresh_status(o, status);
  const Time turned = o.now;
  o.now += std::chrono::hours(1);
  status.phase = crds::JobPhase::kMigrating;
  status.reason = "Migrating";
  refresh_status(o, status);
  const crds::Condition* running = crds::find_condition(status.conditions, "Running");
  ASSERT_TRUE(running);
  EXPECT_EQ(running->status, crds::ConditionStatus::kTrue) << "a job that migrates runs";
  EXPECT_EQ(running->last_transition_time, turned);
  EXPECT_EQ(running->reason, "Running");
  EXPECT_EQ(running->observed_generation, 3);
  EXPECT_EQ(crds::find_condition(status.conditions, "Migrating")->last_transition_time, o.now);
  EXPECT_EQ(crds::find_condition(status.conditions, "Failed")->status, crds::ConditionStatus::kFalse);
}

decide::Snapshot two_sets() {
  decide::Snapshot s;
  s.platform.sets = {{.name = "slow"}, {.name = "fast"}};
  s.platform.processors = {{.name = "slow-0", .set = {0}}, {.name = "fast-0", .set = {1}}};
  s.ranks = {{.processor = {0}}, {.processor = {1}}};
  return s;
}

TEST(Status, ACpuLimitThatThrottlesARankIsWarnedOfOnce) {
  sim::World w;
  ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning));
  for (int i = 0; i < 5; ++i) w.tick();
  Observed o = w.observe();
  auto condition = [](const Step& out) { return crds::find_condition(status_of(out).conditions, "CPUThrottled"); };
  auto throttle = [&](double share) {
    for (auto& [pod, facts] : o.sidecars) facts.throttled = pod == "job-r1-g0" ? share : share / 10;
    const Step out = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
    o.job.status = status_of(out);
    return out;
  };
  EXPECT_FALSE(condition(throttle(0.5))) << "no limit of the user's: the node is slow";
  o.job.spec.pod_template["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "250m";
  EXPECT_EQ(condition(throttle(0.04))->status, crds::ConditionStatus::kFalse);
  const Step much = throttle(0.4);
  ASSERT_TRUE(condition(much));
  EXPECT_EQ(condition(much)->status, crds::ConditionStatus::kTrue);
  EXPECT_EQ(condition(much)->reason, "CPULimit");
  EXPECT_THAT(condition(much)->message,
              HasSubstr("rank 1 was held back for 40 % of the time by its CPU limit of 250m"));
  EXPECT_THAT(condition(much)->message, HasSubstr("spec.template.spec.containers[app].resources.limits.cpu"));
  EXPECT_TRUE(much.change());
  ASSERT_THAT(notices_of(much).events, SizeIs(1));
  EXPECT_EQ(notices_of(much).events[0].type, "Warning");
  for (const double still : {0.5, 0.03}) {
    const Step out = throttle(still);
    EXPECT_FALSE(out.change());
    EXPECT_THAT(notices_of(out).events, testing::IsEmpty());
    EXPECT_EQ(condition(out)->status, crds::ConditionStatus::kTrue) << "it does not flicker";
  }
  EXPECT_EQ(condition(throttle(0.01))->status, crds::ConditionStatus::kFalse);
}

TEST(Status, ASidecarThatIsNotBelievedIsNamedOnce) {
  sim::World w;
  ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning));
  Observed o = w.observe();
  auto condition = [](const Step& out) { return crds::find_condition(status_of(out).conditions, "ReportsRejected"); };
  auto after = [&](double more) {
    o.now += from_seconds(more);
    o.steady += from_seconds(more);
    const Step out = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
    o.job.status = status_of(out);
    return out;
  };
  EXPECT_FALSE(condition(after(1))) << "a condition that is always there says nothing";
  o.sidecars.at("job-r1-g0").rejected = "JSON has 9 levels, more than the limit of 8";
  o.sidecars.at("job-r1-g0").rejected_at = o.steady;
  const Step told = after(1);
  ASSERT_TRUE(condition(told));
  EXPECT_EQ(condition(told)->status, crds::ConditionStatus::kTrue);
  EXPECT_THAT(condition(told)->message, HasSubstr("the sidecar of rank 1 (job-r1-g0)"));
  EXPECT_THAT(condition(told)->message, HasSubstr("9 levels, more than the limit of 8"));
  EXPECT_TRUE(told.change());
  ASSERT_THAT(notices_of(told).events, SizeIs(1));
  EXPECT_EQ(notices_of(told).events[0].reason, "ReportsRejected");
  EXPECT_FALSE(after(10).change()) << "told once";
  EXPECT_EQ(condition(after(60))->status, crds::ConditionStatus::kFalse);
}

TEST(Claims, OnlyOneThatIsFarAheadOfMostIsDoubted) {
  const SteadyTime now = SteadyTime{} + std::chrono::hours(2);
  std::map<std::string, SidecarFacts> sidecars;
  const auto claim = [&](const char* pod, std::uint64_t completed, double seconds_ago = 1) {
    sidecars[pod].completed = completed;
    sidecars[pod].completed_at = now - from_seconds(seconds_ago);
  };
  claim("a", 1ull << 40);
  doubt_claims(sidecars, now);
  EXPECT_EQ(sidecars["a"].completed, 1ull << 40) << "there is nobody to compare it with";
  claim("restored", 0);
  doubt_claims(sidecars, now);
  EXPECT_EQ(sidecars["a"].completed, 1ull << 40) << "a restored rank counts from 0 until its first edge";
  claim("silent", 5, 3600);
  doubt_claims(sidecars, now);
  EXPECT_EQ(sidecars["a"].completed, 1ull << 40) << "an hour ago it was right";
  claim("b", (1ull << 40) - kFarAhead);
  doubt_claims(sidecars, now);
  EXPECT_EQ(sidecars["a"].rejected, "");
  claim("b", 7);
  doubt_claims(sidecars, now);
  EXPECT_EQ(sidecars["a"].completed, 7u);
  EXPECT_NE(sidecars["a"].rejected, "");
  EXPECT_EQ(sidecars["b"].rejected, "");
}

TEST(Status, AProgramThatEndsNoSuperstepIsWarnedOfOnceWithWhatItCallsInstead) {
  sim::World w;
  ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning));
  Observed o = w.observe();
  o.superstep_seconds = 0;
  o.superstep_ended = o.steady;
  auto condition = [](const Step& out) { return crds::find_condition(status_of(out).conditions, "NoSupersteps"); };
  auto after = [&](double silent) {
    o.steady = o.superstep_ended + from_seconds(silent);
    const Step out = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
    o.job.status = status_of(out);
    return out;
  };
  o.job.spec.rescheduling.mode = crds::ReschedulingMode::kOff;
  EXPECT_FALSE(condition(after(1000))) << "nobody is to move";
  o.job.spec.rescheduling.mode = crds::ReschedulingMode::kMigrate;
  EXPECT_FALSE(condition(after(60))) << "a condition that is always there says nothing";
  o.superstep_seconds = 20;
  EXPECT_FALSE(condition(after(199))) << "supersteps may be long";
  const Step late = after(201);
  ASSERT_TRUE(condition(late));
  EXPECT_EQ(condition(late)->status, crds::ConditionStatus::kTrue);
  EXPECT_THAT(condition(late)->message, HasSubstr("no superstep has ended for 201 s"));
  EXPECT_THAT(condition(late)->message, HasSubstr("rank 0 has called none; ranks of a program without one stay"));
  EXPECT_TRUE(late.change());
  ASSERT_THAT(notices_of(late).events, SizeIs(1));
  EXPECT_EQ(notices_of(late).events[0].type, "Warning");
  EXPECT_EQ(notices_of(late).events[0].reason, "NoSupersteps");
  EXPECT_FALSE(after(300).change()) << "told once";
  o.superstep_ended = o.steady;
  EXPECT_EQ(condition(after(1))->status, crds::ConditionStatus::kFalse);

  o.job.spec.superstep = {.call = "MPI_Barrier"};
  o.sidecars.at("job-r0-g0").status->collective = "MPI_Allreduce";
  EXPECT_THAT(condition(after(400))->message,
              HasSubstr("rank 0 calls most of that kind is MPI_Allreduce, which spec.superstep.call"));
  after(1);
  o.job.spec.superstep = {.call = "MPI_Allreduce", .stride = 1000};
  EXPECT_THAT(
      condition(after(400))->message,
      HasSubstr("every 1000th MPI_Allreduce of all ranks (spec.superstep); with a smaller spec.superstep.stride"));
  after(1);
  o.job.spec.superstep = {.call = "Auto"};
  EXPECT_THAT(condition(after(400))->message, HasSubstr("none has yet; what rank 0 calls most is MPI_Allreduce"));
  after(1);
  o.job.status.superstep_edge = {.call = "MPI_Bcast", .stride = 12};
  EXPECT_THAT(condition(after(400))->message, HasSubstr("every 12th MPI_Bcast of all ranks (status.superstepEdge)"));
}

TEST(Decision, ShowsThePlan) {
  decide::Plan plan{.superstep = {12}};
  plan.pm_list = {{.rank = {0}, .target = {1}, .comp = 3, .comm = 1, .mem = 0.5, .pm = 3.5}};
  plan.levels = {{.level = 0, .rank = {}, .pf = 2}, {.level = 1, .rank = {0}, .pf = 1}};
  plan.chosen_level = 1;
  plan.moves = {{.rank = {0}, .from = {0}, .to = {1}, .from_set = {0}, .to_set = {1}, .gain_window = 9}};
  plan.stays = {{.rank = {1}, .reason = decide::Reason::kBestSetIsOwn, .target = {1}}};
  plan.objective = {.name = "pf", .before = 2, .after = 1};
  plan.now = {.k = {3}, .alpha = 10, .d = 0.5};
  plan.next = {.k = {13}, .alpha = 14, .d = 0.75};
  const Time now = Time{} + std::chrono::hours(2);
  const auto d = to_decision(plan, two_sets(), now, 0.25, crds::ReschedulingMode::kMigrate);
  EXPECT_EQ(d.superstep.value, 12u);
  EXPECT_EQ(d.time, now);
  EXPECT_EQ(d.alpha, 10u);
  EXPECT_EQ(d.alpha_next, 14u);
  EXPECT_DOUBLE_EQ(d.d, 0.5);
  EXPECT_DOUBLE_EQ(d.d_next, 0.75);
  EXPECT_DOUBLE_EQ(d.imbalance, 0.25);
  ASSERT_THAT(d.potentials, SizeIs(1));
  EXPECT_EQ(d.potentials[0].target_set, "fast");
  EXPECT_DOUBLE_EQ(d.potentials[0].comm, 1);
  EXPECT_DOUBLE_EQ(d.potentials[0].mem, 0.5);
  EXPECT_DOUBLE_EQ(d.potentials[0].pm, 3.5);
  ASSERT_THAT(d.levels, SizeIs(2));
  EXPECT_DOUBLE_EQ(d.levels[1].pf, 1);
  EXPECT_EQ(d.chosen_level, 1u);
  EXPECT_DOUBLE_EQ(d.objective_before, 2);
  EXPECT_DOUBLE_EQ(d.objective_after, 1);
  ASSERT_THAT(d.moves, SizeIs(1));
  EXPECT_EQ(d.moves[0].from_set, "slow");
  EXPECT_EQ(d.moves[0].to_set, "fast");
  EXPECT_EQ(d.moves[0].to_node, "fast-0");
  EXPECT_DOUBLE_EQ(d.moves[0].predicted_gain_seconds, 9);
  ASSERT_THAT(d.stays, SizeIs(1));
  EXPECT_EQ(d.stays[0].reason, "BestSetIsOwn");
  EXPECT_EQ(d.outcome, "Migrating");
  EXPECT_EQ(to_decision(plan, two_sets(), now, 0, crds::ReschedulingMode::kAdvise).outcome, "Advised");
  plan.moves.clear();
  EXPECT_EQ(to_decision(plan, two_sets(), now, 0, crds::ReschedulingMode::kMigrate).outcome, "NothingToGain");
  plan.stays[0].reason = decide::Reason::kGainBelowMinimum;
  EXPECT_EQ(to_decision(plan, two_sets(), now, 0, crds::ReschedulingMode::kMigrate).outcome, "BelowMinGain");
}

}  // namespace
}  // namespace bsp::reconcile
