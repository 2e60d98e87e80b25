// Small pure functions, and what is read of pods and nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <format>

#include "base/core/base64.h"
#include "base/core/significant.h"
#include "crds/names.h"
#include "operator/reconcile/shell/objects.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

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

TEST(Base64, RoundTripsEveryByte) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  for (std::size_t n = 0; n <= bytes.size(); ++n)
    EXPECT_EQ(base64_decode(base64_encode(bytes.substr(0, n))).value_or("refused"), bytes.substr(0, n));
  EXPECT_EQ(base64_encode("\xfb\xff\xbf"), "+/+/");
}

TEST(Base64, IgnoresLineEndsAndRefusesOtherCharacters) {
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

TEST(PodFacts, OfARunningPod) {
  const PodFacts f =
      pod_facts(pod_with({{"phase", "Running"},
                          {"podIP", "10.0.0.7"},
                          {"containerStatuses", {{{"name", "app"}, {"state", {{"running", json::object()}}}}}}}));
  EXPECT_EQ(f.uid, "u");
  EXPECT_EQ(f.app().rank, 3u);
  EXPECT_EQ(f.set, "fast");
  EXPECT_EQ(f.node, "fast-0");
  EXPECT_EQ(f.address, "10.0.0.7:7600");
  EXPECT_FALSE(f.deleting || f.app().ended || f.app().cannot_start || f.app().pod_ended);
}

TEST(PodFacts, AddressesOfBothFamilies) {
  EXPECT_EQ(pod_facts(pod_with({{"podIP", "fd00::7"}})).address, "[fd00::7]:7600");
  EXPECT_EQ(pod_facts(pod_with({{"phase", "Pending"}})).address, "");
}

TEST(PodFacts, DeletionIsReadFromItsTimestamp) {
  json pod = pod_with({});
  pod["metadata"]["deletionTimestamp"] = "2026-11-21T05:00:00Z";
  EXPECT_TRUE(pod_facts(pod).deleting);
}

TEST(PodFacts, TellHowTheProgramEnded) {
  PodFacts f = pod_facts(app_state({{"terminated", {{"exitCode", 139}, {"reason", "Error"}, {"message", "log"}}}}));
  EXPECT_TRUE(f.app().ended);
  EXPECT_EQ(f.app().exit_code, 139);
  EXPECT_EQ(f.app().message, "log");
  EXPECT_FALSE(f.app().cannot_start || f.app().pod_ended || f.app().finalized);
  const std::string message = std::format("log\n{}\n", names::kFinalizedNote);
  f = pod_facts(app_state({{"terminated", {{"exitCode", 3}, {"reason", "Error"}, {"message", message}}}}));
  EXPECT_TRUE(f.app().ended && f.app().finalized);
  f = pod_facts(app_state({{"terminated", {{"exitCode", 128}, {"reason", "ContainerCannotRun"}}}}));
  EXPECT_TRUE(f.app().cannot_start);
  f = pod_facts(app_state({{"terminated", json::object()}}));
  EXPECT_EQ(f.app().exit_code, 1) << "an end without a code is no good end";
}

TEST(PodFacts, PermanentReasonsForWaiting) {
  for (const char* reason : {"ErrImageNeverPull", "InvalidImageName", "ContainerCannotRun", "StartError"}) {
    const PodFacts f = pod_facts(app_state({{"waiting", {{"reason", reason}, {"message", "why"}}}}));
    EXPECT_TRUE(f.app().cannot_start) << reason;
    EXPECT_EQ(f.app().reason, reason);
    EXPECT_EQ(f.app().message, "why");
  }
  for (const char* reason : {"ContainerCreating", "PodInitializing", ""})
    EXPECT_FALSE(pod_facts(app_state({{"waiting", {{"reason", reason}}}})).app().cannot_start) << reason;
  const PodFacts sidecar = pod_facts(pod_with(
      {{"initContainerStatuses", {{{"name", "sidecar"}, {"state", {{"waiting", {{"reason", "ErrImagePull"}}}}}}}}}));
  EXPECT_EQ(sidecar.start_delay, "container sidecar waits: ErrImagePull") << "the runtime image is missing";
}

TEST(PodFacts, WaitingThatMayPass) {
  for (const char* reason : {"ErrImagePull", "ImagePullBackOff", "ImageInspectError", "CreateContainerConfigError",
                             "CreateContainerError", "RunContainerError", "OfALaterKubelet"}) {
    const PodFacts f = pod_facts(app_state({{"waiting", {{"reason", reason}, {"message", "secret \"s\" not found"}}}}));
    EXPECT_FALSE(f.app().cannot_start) << reason;
    EXPECT_EQ(f.start_delay, std::format("container app waits: {}: secret \"s\" not found", reason));
    EXPECT_EQ(f.delayed_by_image, std::string_view(reason).contains("Image")) << reason;
  }
  for (const char* reason : {"RegistryUnavailable", "SignatureValidationFailed"})
    EXPECT_TRUE(pod_facts(app_state({{"waiting", {{"reason", reason}}}})).delayed_by_image) << reason;
  for (const char* reason : {"ContainerCreating", "PodInitializing", "CrashLoopBackOff", ""})
    EXPECT_EQ(pod_facts(app_state({{"waiting", {{"reason", reason}}}})).start_delay, "") << reason;
}

// The program is there, so nothing that another container waits for keeps it from running.
TEST(PodFacts, AnotherContainerThatWaitsEndsNoProgram) {
  for (const char* reason : {"CreateContainerError", "ErrImageNeverPull", "ErrImagePull"}) {
    const PodFacts f = pod_facts(
        pod_with({{"initContainerStatuses", {{{"name", "sidecar"}, {"state", {{"waiting", {{"reason", reason}}}}}}}},
                  {"containerStatuses", {{{"name", "app"}, {"state", {{"running", json::object()}}}}}}}));
    EXPECT_TRUE(f.app().running);
    EXPECT_FALSE(f.app().cannot_start || f.app().ended) << reason;
    EXPECT_EQ(f.start_delay, std::format("container sidecar waits: {}", reason));
  }
}

TEST(PodFacts, AContainerThatCannotStartChangesNothingAboutAProgramThatHasEnded) {
  for (const char* reason : {"ErrImageNeverPull", "InvalidImageName", "ErrImagePull"})
    for (const int code : {0, 3}) {
      const PodFacts f = pod_facts(pod_with(
          {{"containerStatuses",
            {{{"name", "app"}, {"state", {{"terminated", {{"exitCode", code}, {"reason", "Completed"}}}}}},
             {{"name", "helper"}, {"state", {{"waiting", {{"reason", reason}, {"message", "no such image"}}}}}}}}}));
      EXPECT_TRUE(f.app().ended);
      EXPECT_EQ(f.app().exit_code, code);
      EXPECT_FALSE(f.app().cannot_start || f.delayed_by_image) << reason;
      EXPECT_EQ(f.start_delay, "") << reason;
      EXPECT_EQ(f.app().reason, "Completed");
    }
}

// No node tries to start its containers again.
TEST(PodFacts, APodThatHasFailedWaitsForNoContainer) {
  for (const char* reason : {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
    EXPECT_TRUE(pod_facts(pod_with({{"phase", "Failed"}, {"reason", reason}})).app().cannot_start) << reason;
}

TEST(PodFacts, WhyTheNodeEndedAPod) {
  const auto failed = [](json status) {
    status["phase"] = "Failed";
    return pod_facts(pod_with(std::move(status)));
  };
  const PodFacts init = failed({{"initContainerStatuses",
                                 {{{"name", "sidecar"}, {"state", {{"running", json::object()}}}},
                                  {{"name", "prepare"}, {"state", {{"terminated", {{"exitCode", 3}}}}}}}}});
  EXPECT_EQ(init.app().reason, "InitContainerFailed");
  EXPECT_EQ(init.app().message, "init container prepare ended with code 3");
  const PodFacts late = failed({{"reason", "DeadlineExceeded"}, {"message", "Pod was active on the node longer"}});
  EXPECT_THAT(late.app().message, testing::HasSubstr("spec.template.spec.activeDeadlineSeconds"));
  const PodFacts full =
      failed({{"reason", "Evicted"}, {"message", "Usage of EmptyDir volume \"w\" exceeds the limit"}});
  EXPECT_THAT(full.app().message, testing::HasSubstr("\"w\" exceeds the limit (emptyDir.sizeLimit of the volume"));
  const PodFacts ours =
      failed({{"reason", "Evicted"}, {"message", "Usage of EmptyDir volume \"bsp-run\" exceeds the limit"}});
  EXPECT_THAT(ours.app().message, testing::EndsWith("(spec.checkpoint.sizeLimit)"));
}

TEST(PodFacts, ASidecarThatRanOutOfMemory) {
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

// --- What is kept of objects -------------------------------------------------------------------------------------
TEST(Trim, APodKeepsOnlyTheFieldsWeRead) {
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
  const json conditions =
      json::array({condition("Initialized", "False", "containers with incomplete status"),
                   condition("PodScheduled", "False", "0/3 nodes are available"), condition("Ready", "True", ""),
                   condition("DisruptionTarget", "True", "taint manager")});
  const json runs = {{"running", started}}, waits = {{"waiting", {{"reason", "ErrImagePull"}, {"message", "why"}}}};
  const std::vector<json> statuses{
      {{"phase", "Pending"}, {"conditions", conditions}, {"qosClass", "Burstable"}},
      {{"phase", "Running"},
       {"podIP", "10.0.0.7"},
       {"podIPs", {{{"ip", "10.0.0.7"}}}},
       {"initContainerStatuses", {container("sidecar", runs, ended)}},
       {"containerStatuses", {container("app", runs), container("app-1", ended), container("helper", runs)}}},
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
    pod["metadata"]["annotations"] = {{"note", "long"},
                                      {"migbsp.io/move-to", "fast"},
                                      {"migbsp.io/ranks", "4,6"},
                                      {"scheduling.k8s.io/group-name", "gang"}};
    pod["metadata"]["creationTimestamp"] = "2026-11-21T04:00:00Z";
    for (const char* label : {"generation", "attempt"})
      pod["metadata"]["labels"][std::string("migbsp.io/") + label] = "7";
    pod["spec"]["containers"] = {
        {{"name", "app"}, {"image", "registry/image:1"}, {"resources", {{"requests", {{"cpu", "1"}}}}}}};
    pod["spec"]["initContainers"] = {{{"name", "sidecar"},
                                      {"image", "registry/runtime:1"},
                                      {"command", {"bsp-sidecar"}},
                                      {"restartPolicy", "Always"}}};
    pod["spec"]["terminationGracePeriodSeconds"] = 7;
    pod["metadata"]["deletionGracePeriodSeconds"] = 9;
    pod["spec"]["resources"] = {{"requests", {{"cpu", "3"}, {"hugepages-2Mi", "2Mi"}}}};
    pod["spec"]["volumes"] = {{{"name", "bsp-sets"}, {"hostPath", {{"path", "/sets"}}}}, {{"name", "data"}}};
    pod["spec"]["containers"][0]["volumeMounts"] = {{{"name", "data"}, {"mountPath", "/data"}}};
    json trimmed = pod;
    trim_watched(kPod, trimmed);
    EXPECT_EQ(pod_facts(trimmed).mounts, "/data = emptyDir");
    EXPECT_TRUE(pod_facts(trimmed) == pod_facts(pod)) << pod << "\n" << trimmed;
    ASSERT_EQ(pod_facts(trimmed).apps.size(), 2u) << "its seats";
    EXPECT_EQ(pod_facts(trimmed).apps[1].rank, 6u);
    EXPECT_EQ(pod_facts(trimmed).pod_group, "gang") << "which the rank's next pods join";
    EXPECT_NE(pod_facts(trimmed).created, Time{}) << "from when a rebuilt status counts";
    EXPECT_EQ(pod_facts(trimmed).grace_seconds, 9u) << "for which a pod that vanished is waited for";
    EXPECT_THAT(pod_facts(trimmed).runtime_image, HasSubstr("registry/runtime")) << "of which a target needs the same";
    EXPECT_EQ(requests_of(trimmed["spec"]), requests_of(pod["spec"]));
    EXPECT_EQ(job_key_of(kPod, trimmed), "/job");
    EXPECT_EQ(owner_of(trimmed).uid, "j");
    EXPECT_EQ(secret_name({"job", "uid"}, request_of(trimmed)), secret_name({"job", "uid"}, request_of(pod)));
    EXPECT_EQ(has_ended(trimmed), has_ended(pod));
    for (const char* word : {"startedAt", "containerID", "registry/image", "bsp-sidecar", "Initialized",
                             "lastTransitionTime", "blue", "note", "purple"})
      EXPECT_THAT(trimmed.dump(), Not(HasSubstr(word)));
    json again = trimmed;
    trim_watched(kPod, again);
    EXPECT_EQ(again, trimmed) << "the client has done it, then the cache does";
  }
}

TEST(Trim, ANodeKeepsWhyItsPodsHaveToLeaveIt) {
  for (const char* field : {"deletionTimestamp", "unschedulable", "taints"}) {
    json node = {{"apiVersion", "v1"},
                 {"kind", "Node"},
                 {"metadata", {{"name", "fast-0"}, {"labels", {{"migbsp.io/set", "fast"}}}}},
                 {"spec", {{"providerID", "cloud:///0123456789"}}}};
    if (field == std::string_view("deletionTimestamp"))
      node["metadata"][field] = "2026-11-21T05:00:00Z";
    else
      node["spec"][field] = field == std::string_view("taints")
                                ? json::array({{{"key", "karpenter.sh/disrupted"}, {"effect", "NoSchedule"}}})
                                : json(true);
    json trimmed = node;
    trim_watched(kNode, trimmed);
    EXPECT_THAT(leaving(node, json::object()), Not(testing::IsEmpty())) << field;
    EXPECT_EQ(leaving(trimmed, json::object()), leaving(node, json::object())) << field;
    EXPECT_FALSE(takes_pods_of(trimmed, json::object())) << field;
    EXPECT_FALSE(trimmed["spec"].contains("providerID"));
  }
}

TEST(Trim, AJobKeepsAllButKubectlsCopy) {
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

TEST(PodFacts, AnotherContainersExitIsNotTheRanks) {
  EXPECT_FALSE(pod_facts(pod_with({{"containerStatuses",
                                    {{{"name", "helper"}, {"state", {{"terminated", {{"exitCode", 1}}}}}}}}}))
                   .app()
                   .ended);
}

TEST(PodFacts, WhetherAnotherContainerRuns) {
  const auto pod = [](const char* name, const char* state) {
    return pod_facts(
        pod_with({{"initContainerStatuses", {{{"name", "sidecar"}, {"state", {{"running", json::object()}}}}}},
                  {"containerStatuses", {{{"name", name}, {"state", {{state, json::object()}}}}}}}));
  };
  EXPECT_TRUE(pod("helper", "running").others_run);
  EXPECT_FALSE(pod("helper", "terminated").others_run);
  EXPECT_FALSE(pod("app", "running").others_run);
}

TEST(PodFacts, APodThatItsNodeEvicted) {
  const PodFacts f = pod_facts(pod_with({{"phase", "Failed"}, {"reason", "Evicted"}, {"message", "low on memory"}}));
  EXPECT_TRUE(f.app().pod_ended && f.app().ended);
  EXPECT_EQ(f.app().exit_code, 1);
  EXPECT_EQ(f.app().message, "low on memory");
  EXPECT_FALSE(f.app().cannot_start);
  EXPECT_TRUE(pod_facts(pod_with({{"phase", "Failed"}, {"reason", "CreateContainerError"}})).app().cannot_start);
}

// As kubelets since 1.22 show it: what was killed with the pod is there too, and says less.
TEST(PodFacts, APodThatItsNodeEndedWhileTheProgramRan) {
  const auto ended = [](const char* reason, int code) {
    return pod_facts(
        pod_with({{"phase", "Failed"},
                  {"reason", reason},
                  {"message", "low on memory"},
                  {"containerStatuses",
                   {{{"name", "app"}, {"state", {{"terminated", {{"exitCode", code}, {"reason", "Error"}}}}}}}}}));
  };
  const PodFacts evicted = ended("Evicted", 137);
  EXPECT_TRUE(evicted.app().pod_ended && evicted.app().ended);
  EXPECT_EQ(evicted.app().exit_code, 137);
  EXPECT_EQ(evicted.app().reason, "Evicted");
  EXPECT_EQ(evicted.app().message, "low on memory");
  EXPECT_FALSE(evicted.app().cannot_start);
  EXPECT_THAT(ended("DeadlineExceeded", 143).app().message, HasSubstr("spec.template.spec.activeDeadlineSeconds"));
  EXPECT_FALSE(ended("Evicted", 0).app().pod_ended) << "its program had ended well";
  EXPECT_FALSE(ended("Evicted", 3).app().pod_ended) << "its program had failed by itself";
  EXPECT_FALSE(ended("", 3).app().pod_ended) << "its program failed by itself";
}

// In the words of runc 1.2, crun and containerd.
TEST(PodFacts, AVolumeThatHasNoPlaceInAUserNamespaceComesWithTheRemedy) {
  const char* remedy = "set hostUsers: true in spec.template.spec";
  for (const char* why :
       {"error mounting \"/var/lib/kubelet/pods/u/volumes/nfs\" to rootfs at \"/data\": failed to set MOUNT_ATTR_IDMAP "
        "on "
        "/proc/self/fd/8: invalid argument (maybe the filesystem used doesn't support idmap mounts on this kernel?)",
        "mount_setattr `/data`: Invalid argument", "failed to mount: idmapped mounts are not supported"}) {
    for (const char* reason : {"CreateContainerError", "RunContainerError"}) {
      const PodFacts f = pod_facts(app_state({{"waiting", {{"reason", reason}, {"message", why}}}}));
      EXPECT_THAT(f.start_delay, testing::HasSubstr(why));
      EXPECT_THAT(f.start_delay, testing::HasSubstr(remedy));
    }
    const PodFacts ended =
        pod_facts(app_state({{"terminated", {{"exitCode", 128}, {"reason", "StartError"}, {"message", why}}}}));
    EXPECT_THAT(ended.app().message, testing::HasSubstr(remedy));
    const PodFacts init = pod_facts(
        pod_with({{"phase", "Failed"},
                  {"initContainerStatuses",
                   {{{"name", "stage"},
                     {"state", {{"terminated", {{"exitCode", 128}, {"reason", "StartError"}, {"message", why}}}}}}}}}));
    EXPECT_THAT(init.app().message, testing::HasSubstr("init container stage ended with code 128"));
    EXPECT_THAT(init.app().message, testing::HasSubstr(remedy));
  }
  const PodFacts other =
      pod_facts(app_state({{"waiting", {{"reason", "RunContainerError"}, {"message", "no such file"}}}}));
  EXPECT_THAT(other.start_delay, testing::EndsWith(": RunContainerError: no such file"));
  const PodFacts own_words =
      pod_facts(app_state({{"terminated", {{"exitCode", 1}, {"reason", "Error"}, {"message", "idmap: bad option"}}}}));
  EXPECT_EQ(own_words.app().message, "idmap: bad option") << "the program's own last words";
}

TEST(NodeFacts, SetSpeedAndCordon) {
  const json node = {
      {"metadata", {{"name", "n"}, {"labels", {{"pool", "fast"}}}, {"annotations", {{"migbsp.io/cpu", "0.25"}}}}},
      {"spec", {{"unschedulable", true}}}};
  const auto f = node_facts(node, "pool");
  EXPECT_EQ(f.name, "n");
  EXPECT_EQ(f.set, "fast");
  EXPECT_DOUBLE_EQ(f.speed, 0.25);
  EXPECT_TRUE(f.speed_told);
  EXPECT_TRUE(f.cordoned);
  EXPECT_EQ(node_facts(node, "other").set, "");
  for (const char* speed : {"", "-1", "0", "fast"}) {
    json odd = node;
    odd["metadata"]["annotations"]["migbsp.io/cpu"] = speed;
    EXPECT_DOUBLE_EQ(node_facts(odd, "pool").speed, 1) << speed;
    EXPECT_FALSE(node_facts(odd, "pool").speed_told) << speed;
  }
}

TEST(NodeFacts, Price) {
  json node = {{"metadata",
                {{"name", "n"},
                 {"labels", {{"node.kubernetes.io/instance-type", "m7i.4xlarge"}}},
                 {"annotations", {{"migbsp.io/price-per-hour", "0.81"}}}}}};
  EXPECT_DOUBLE_EQ(node_facts(node, "pool").price, 0.81);
  EXPECT_EQ(node_facts(node, "pool").instance_type, "m7i.4xlarge");
  for (const char* price :
       {"", "-1", "0", "cheap", "inf", "nan", "1e400", "1,5", "0.81 EUR", "0x2", " 3", "0.8.1", "+1"}) {
    node["metadata"]["annotations"]["migbsp.io/price-per-hour"] = price;
    EXPECT_EQ(node_facts(node, "pool").price, 0) << price;
    EXPECT_EQ(node_facts(node, "pool").wrong_price, price);
  }
  node["metadata"]["annotations"] = 3;
  node["metadata"]["labels"] = json();
  EXPECT_EQ(node_facts(node, "pool").price, 0);
}

}  // namespace
}  // namespace bsp::reconcile
