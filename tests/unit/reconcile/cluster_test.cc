// What differs in a cluster: where pods may run, and messages of the API server and the scheduler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/capacity/resources.h"
#include "tests/unit/reconcile/affinity.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// --- Where a pod may run --------------------------------------------------------------------------------------------
crds::BspJob job_of(json spec) {
  crds::BspJob job;
  job.metadata.name = "job";
  job.spec.sets.label = "pool";
  job.spec.pod_template = {{"spec", std::move(spec)}};
  return job;
}
PodRequest to_fast() {
  PodRequest request;
  request.set = "fast";
  request.node = "fast-1";
  return request;
}
json placed(json spec, const PodRequest& request, const PodOptions& options) {
  place_pod(spec, job_of(spec), request, options);
  return spec;
}
json terms_of(const json& spec) {
  return spec.at(
      "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"_json_pointer);
}
const json kInFast = {{"key", "pool"}, {"operator", "In"}, {"values", {"fast"}}};

// Short enough for a hung loop, long enough for a slow node; liveness_probe() gives the reasons.
TEST(Pods, HaveALivenessProbeOfTheSidecarsLoop) {
  const json spec{{"containers", {{{"name", "app"}, {"image", "i"}, {"command", {"c"}}}}}};
  const json pod = make_pod(job_of(spec), to_fast(), {}, {.scheduled = true});
  const json& sidecar = pod.at("/spec/initContainers/0"_json_pointer);
  ASSERT_EQ(sidecar.at("name"), "sidecar");
  const json probe = sidecar.value("livenessProbe", json::object());
  EXPECT_EQ(probe, (json{{"httpGet", {{"path", "/"}, {"port", 7601}}},
                         {"periodSeconds", 15},
                         {"timeoutSeconds", 15},
                         {"failureThreshold", 6},
                         {"terminationGracePeriodSeconds", 1}}));
  EXPECT_THAT(sidecar.at("env"), testing::Contains(json{{"name", "BSP_LIVENESS"}, {"value", "[::]:7601"}}));
  const json alone = make_pod(job_of(spec), to_fast(), {}, {});
  EXPECT_FALSE(alone.at("/spec/initContainers/0"_json_pointer).contains("livenessProbe")) << "there is no kubelet";
}

TEST(PlacePod, AssignsTheNodeOnOneMachine) {
  const json spec = placed(json::object(), to_fast(), {});
  EXPECT_EQ(spec, (json{{"nodeName", "fast-1"}, {"terminationGracePeriodSeconds", 30}}));
}

TEST(PlacePod, RequiresTheSetAndLeavesTheNodeToTheScheduler) {
  const json spec = placed({{"nodeName", "mine"}}, to_fast(), {.scheduled = true});
  EXPECT_FALSE(spec.contains("nodeName"));
  EXPECT_EQ(terms_of(spec), (json::array({{{"matchExpressions", json::array({kInFast})}}})));
  EXPECT_EQ(spec["terminationGracePeriodSeconds"], 30) << "as Kubernetes has it by default";
  EXPECT_FALSE(spec.contains("hostUsers"));
}

TEST(PlacePod, KeepsTheUsersGracePeriod) {
  auto grace = [](json given, bool scheduled) {
    const json spec =
        placed({{"terminationGracePeriodSeconds", std::move(given)}}, to_fast(), {.scheduled = scheduled});
    return spec["terminationGracePeriodSeconds"];
  };
  for (const bool scheduled : {true, false}) {
    EXPECT_EQ(grace(300, scheduled), 300);
    EXPECT_EQ(grace(nullptr, scheduled), 30);
    EXPECT_EQ(grace("soon", scheduled), "soon") << "whoever makes the pod refuses it and names the field";
  }
  EXPECT_EQ(grace(0, true), 1) << "0 would be a forced deletion, and a second copy might start beside this one";
  EXPECT_EQ(grace(0, false), 0) << "our own node waits for the containers";
}

TEST(PlacePod, RequiresANodeThatAUserNamed) {
  PodRequest request = to_fast();
  request.pinned = true;
  const json term = terms_of(placed(json::object(), request, {.scheduled = true}))[0];
  EXPECT_EQ(term["matchExpressions"], json::array({kInFast}));
  EXPECT_EQ(term["matchFields"],
            (json::array({{{"key", "metadata.name"}, {"operator", "In"}, {"values", {"fast-1"}}}})));
}

// Nodes of one Set may differ, and what was planned is the move to this one.
TEST(PlacePod, PrefersThePlannedNodeForATarget) {
  PodRequest request = to_fast();
  const char* preferred = "preferredDuringSchedulingIgnoredDuringExecution";
  const auto of = [&](const json& spec) {
    return placed(spec, request, {.scheduled = true})["affinity"]["nodeAffinity"].value(preferred, json());
  };
  EXPECT_EQ(of(json::object()), json()) << "a first pod goes where the scheduler has it";
  request.target = true;
  const json planned = {
      {"weight", 100},
      {"preference",
       {{"matchExpressions", {{{"key", "kubernetes.io/hostname"}, {"operator", "In"}, {"values", {"fast-1"}}}}}}}};
  EXPECT_EQ(of(json::object()), json::array({planned}));
  json spec = json::object();
  spec["affinity"]["nodeAffinity"][preferred] = json::array({{{"weight", 1}}});
  EXPECT_EQ(of(spec), json::array({{{"weight", 1}}, planned}));
  request.pinned = true;
  EXPECT_EQ(of(json::object()), json()) << "it is required";
  request = to_fast();
  request.target = true;
  request.node = "";
  EXPECT_EQ(of(json::object()), json());
}

// The program runs as its image's user, which only the kubelet can read.
TEST(PodOfACluster, AsksTheImageForItsUserIfTheTemplateNamesNone) {
  auto init_of = [](const json& pod_security, const json& own_security, bool scheduled) {
    json spec = {{"containers", {{{"name", "app"}, {"image", "theirs"}, {"command", {"run"}}}}}};
    if (!pod_security.is_null()) spec["securityContext"] = pod_security;
    if (!own_security.is_null()) spec["containers"][0]["securityContext"] = own_security;
    std::vector<std::string> names;
    json asking;
    const json pod = make_pod(job_of(spec), to_fast(), {}, {.scheduled = scheduled});
    for (const json& container : pod.at("spec").at("initContainers")) {
      names.push_back(container.at("name"));
      if (names.back() == "bsp-user") asking = container;
    }
    return std::pair(names, asking);
  };
  const auto [names, asking] = init_of({}, {}, true);
  EXPECT_THAT(names, ::testing::ElementsAre("sidecar", "bsp-user"));
  EXPECT_EQ(asking["image"], "theirs");
  EXPECT_EQ(asking["command"], (json{"/bsp/bsp-init", "--note-user"}));
  EXPECT_FALSE(asking["securityContext"].contains("runAsUser"));
  const json user = {{"runAsUser", 1000}};
  EXPECT_THAT(init_of(user, {}, true).first, ::testing::ElementsAre("sidecar"));
  EXPECT_THAT(init_of({}, user, true).first, ::testing::ElementsAre("sidecar"));
  EXPECT_THAT(init_of({}, {}, false).first, ::testing::ElementsAre("sidecar")) << "Podman's images can be read";
  const auto [with_group, with_ids] = init_of({}, {{"runAsGroup", 2000}}, true);
  EXPECT_THAT(with_group, ::testing::ElementsAre("sidecar", "bsp-user")) << "a group says nothing of the user";
  EXPECT_EQ(with_ids["securityContext"]["runAsGroup"], 2000);
  EXPECT_THAT(init_of({{"runAsGroup", 2000}}, {}, true).first, ::testing::ElementsAre("sidecar", "bsp-user"));
}

TEST(PlacePod, NarrowsEachTermOfTheUsersAffinity) {
  const json gpu = {{"key", "gpu"}, {"operator", "Exists"}};
  const json by_name = {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {"bad"}}};
  json spec = json::object();
  spec["affinity"]["podAntiAffinity"] = {{"kept", true}};
  spec["affinity"]["nodeAffinity"] = {
      {"preferredDuringSchedulingIgnoredDuringExecution", json::array({{{"weight", 1}}})},
      {"requiredDuringSchedulingIgnoredDuringExecution",
       {{"nodeSelectorTerms", json::array({{{"matchExpressions", json::array({gpu})}},
                                           {{"matchFields", json::array({by_name})}},
                                           json::object()})}}}};
  const json made = placed(spec, to_fast(), {.scheduled = true});
  EXPECT_EQ(made["affinity"]["podAntiAffinity"], spec["affinity"]["podAntiAffinity"]);
  EXPECT_EQ(made["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"],
            spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]);
  const json terms = terms_of(made);
  ASSERT_EQ(terms.size(), 3u);
  EXPECT_EQ(terms[0]["matchExpressions"], json::array({gpu, kInFast}));
  EXPECT_EQ(terms[1]["matchFields"], json::array({by_name}));
  EXPECT_EQ(terms[1]["matchExpressions"], json::array({kInFast}));
  EXPECT_EQ(terms[2], json::object()) << "an empty term matches nothing, and must not begin to match";
}

TEST(PlacePod, KeepsATermThatMatchesNothingFromMatching) {
  for (const json& term : {json::object(), json{{"matchExpressions", json::array()}},
                           json{{"matchFields", json::array()}, {"matchExpressions", json::array()}}}) {
    PodRequest request = to_fast();
    request.not_on = "fast-0";
    EXPECT_EQ(terms_of(placed(required(json::array({term})), request, {.scheduled = true})), json::array({term}));
  }
}

// The scheduler would be free to choose the node again that the rank is to leave.
TEST(PlacePod, KeepsATargetOffTheNodeThatItsRankLeaves) {
  PodRequest request = to_fast();
  request.not_on = "fast-0";
  const json other = {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {"fast-0"}}};
  const json term = {{"matchExpressions", json::array({kInFast})}, {"matchFields", json::array({other})}};
  EXPECT_EQ(terms_of(placed(json::object(), request, {.scheduled = true})), json::array({term}));
  const json by_name = {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {"bad"}}};
  const json gpu = {{"key", "gpu"}, {"operator", "Exists"}};
  const json terms = terms_of(placed(
      required(json::array({{{"matchExpressions", json::array({gpu})}}, {{"matchFields", json::array({by_name})}}})),
      request, {.scheduled = true}));
  ASSERT_EQ(terms.size(), 2u);
  EXPECT_EQ(terms[0]["matchExpressions"], json::array({gpu, kInFast}));
  EXPECT_EQ(terms[0]["matchFields"], json::array({other})) << "terms are alternatives, so each needs it";
  EXPECT_EQ(terms[1]["matchFields"], json::array({by_name, other}));
  EXPECT_FALSE(placed(json::object(), request, {}).contains("affinity")) << "no scheduler chooses";
}

TEST(PlacePod, KeepsARestoredRankOffNodesThatDoNotDo) {
  PodRequest request = to_fast();
  request.unfit = {"fast-0", "fast-2"};
  request.rather_not_on = "fast-1";
  const json pod = placed(json::object(), request, {.scheduled = true});
  const auto other = [](const char* node) {  // the API server takes one name in each
    return json{{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {node}}};
  };
  EXPECT_EQ(terms_of(pod)[0]["matchFields"], json::array({other("fast-0"), other("fast-2")}));
  EXPECT_EQ(pod["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["preference"],
            (json{{"matchExpressions",
                   {{{"key", "kubernetes.io/hostname"}, {"operator", "NotIn"}, {"values", {"fast-1"}}}}}}));
}

// The runtime is built for these alone.
TEST(PlacePod, RequiresLinuxOnX86) {
  const json platform = {{"kubernetes.io/arch", "amd64"}, {"kubernetes.io/os", "linux"}};
  EXPECT_EQ(placed(json::object(), to_fast(), {.scheduled = true})["nodeSelector"], platform);
  json with_zone = platform;
  with_zone["zone"] = "a";
  EXPECT_EQ(placed({{"nodeSelector", {{"zone", "a"}}}}, to_fast(), {.scheduled = true})["nodeSelector"], with_zone);
  const json theirs = {{"nodeSelector", {{"kubernetes.io/arch", "arm64"}}}};
  EXPECT_EQ(placed(theirs, to_fast(), {.scheduled = true})["nodeSelector"]["kubernetes.io/arch"], "arm64")
      << "no node fits, rather than one that the user has excluded";
  EXPECT_FALSE(placed(json::object(), to_fast(), {}).contains("nodeSelector"));
}

TEST(PlacePod, UsesAUserNamespaceUnlessTheTemplateSaysOtherwise) {
  const PodOptions options{.scheduled = true, .user_namespace = true};
  EXPECT_EQ(placed(json::object(), to_fast(), options)["hostUsers"], false);
  EXPECT_EQ(placed({{"hostUsers", true}}, to_fast(), options)["hostUsers"], true);
  for (const char* shared : {"hostNetwork", "hostPID", "hostIPC"}) {
    EXPECT_FALSE(placed({{shared, true}}, to_fast(), options).contains("hostUsers"))
        << "the API server would refuse it";
    EXPECT_TRUE(placed({{shared, false}}, to_fast(), options).contains("hostUsers"));
  }
}

TEST(CheckWithoutImage, NamesTheMissingField) {
  auto check = [](json app, json pod = json::object()) {
    app["name"] = "app";
    pod["containers"] = json::array({std::move(app)});
    const auto checked = check_without_image(job_of(std::move(pod)).spec);
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_EQ(check({{"command", {"p"}}}), "");
  EXPECT_THAT(check({{"args", {"p"}}}), HasSubstr("spec.template.spec.containers[app].command: required"));
  EXPECT_THAT(check({{"command", json::array()}}), HasSubstr("containers[app].command"));
  const json no_root = {{"runAsNonRoot", true}}, no_root_and_uid = {{"runAsNonRoot", true}, {"runAsUser", 7}};
  EXPECT_THAT(check({{"command", {"p"}}, {"securityContext", no_root}}), HasSubstr("securityContext.runAsUser"));
  EXPECT_THAT(check({{"command", {"p"}}}, {{"securityContext", no_root}}), HasSubstr("securityContext.runAsUser"));
  EXPECT_EQ(check({{"command", {"p"}}, {"securityContext", no_root}}, {{"securityContext", {{"runAsUser", 7}}}}), "");
  EXPECT_EQ(check({{"command", {"p"}}, {"securityContext", no_root_and_uid}}), "");
  EXPECT_THAT(check({{"command", {"p"}}, {"securityContext", {{"runAsUser", 0}}}}, {{"securityContext", no_root}}),
              HasSubstr("not 0"));
}

TEST(SetLabel, FallsBackToTheCloudsLabel) {
  auto node = [](const char* label) -> json { return {{"metadata", {{"labels", {{label, "x"}}}}}}; };
  const json bare = {{"metadata", {{"name", "n"}}}};
  EXPECT_EQ(set_label("migbsp.io/set", "", {bare, node("cloud.google.com/gke-nodepool")}),
            "cloud.google.com/gke-nodepool");
  EXPECT_EQ(set_label("migbsp.io/set", "", {node("karpenter.sh/nodepool"), node("eks.amazonaws.com/nodegroup")}),
            "eks.amazonaws.com/nodegroup")
      << "one for all nodes, whatever their order";
  EXPECT_EQ(set_label("migbsp.io/set", "", {node("cloud.google.com/gke-nodepool"), node("migbsp.io/set")}),
            "migbsp.io/set");
  EXPECT_EQ(set_label("pool", "", {node("cloud.google.com/gke-nodepool")}), "pool") << "what the user names is taken";
  EXPECT_EQ(set_label("migbsp.io/set", "", {bare}), "migbsp.io/set");
}

// Somebody labels one node of a cluster in which jobs run, or the last labelled one goes.
TEST(SetLabel, StaysWhileRanksHavePlaces) {
  auto node = [](const char* label) -> json { return {{"metadata", {{"labels", {{label, "x"}}}}}}; };
  const std::vector<json> nodes = {node("cloud.google.com/gke-nodepool"), node("migbsp.io/set")};
  crds::BspJob job;
  job.status.set_label = "cloud.google.com/gke-nodepool";
  job.status.phase = crds::JobPhase::kRunning;
  EXPECT_EQ(set_label("migbsp.io/set", kept_label(job), nodes), "cloud.google.com/gke-nodepool");
  job.status.set_label = "migbsp.io/set";
  EXPECT_EQ(set_label("migbsp.io/set", kept_label(job), {nodes[0]}), "migbsp.io/set");
  job.status.phase = crds::JobPhase::kPending;  // a new attempt
  EXPECT_EQ(set_label("migbsp.io/set", kept_label(job), {nodes[0]}), "cloud.google.com/gke-nodepool");
}

// --- What the kernel makes of it ------------------------------------------------------------------------------------
struct Starting : ::testing::Test {
  sim::World w{{.ranks = 2, .slow = 1, .fast = 1}};
  void SetUp() override {
    w.slow_start = 1000;
    ASSERT_TRUE(w.run_until(crds::JobPhase::kStarting));
    w.tick();
  }
  Step answer(const Observed& o) { return reconcile_job(o, unadvised(o), w.limits, w.job_limits); }
};

TEST_F(Starting, APodThatTheServerFindsInvalidFailsTheJob) {
  Observed o = w.observe();
  o.pods.erase("job-r1-g0");
  o.not_created["job-r1-g0"] = {ErrorCode::kInvalid, "spec.priority: Forbidden"};
  const Step out = answer(o);
  EXPECT_EQ(status_of(out).phase, crds::JobPhase::kFailed);
  EXPECT_EQ(status_of(out).reason, "InvalidPod");
  EXPECT_THAT(status_of(out).message, HasSubstr("the pod of rank 1 is refused: spec.priority: Forbidden"));
}

TEST_F(Starting, ARefusedPodIsRetriedAndReported) {
  Observed o = w.observe();
  o.pods.erase("job-r1-g0");
  o.not_created["job-r1-g0"] = {ErrorCode::kRefused, "exceeded quota"};
  Step out = answer(o);
  EXPECT_EQ(status_of(out).phase, crds::JobPhase::kStarting);
  EXPECT_FALSE(out.change());
  ASSERT_EQ(out.work().create_pods.size(), 1u) << "and tried again";
  EXPECT_THAT(status_of(out).message, HasSubstr("exceeded quota"));
  o.job.status = status_of(out);
  o.not_created.clear();
  EXPECT_THAT(status_of(answer(o)).message, HasSubstr("2 ranks are mapped"));
}

TEST_F(Starting, TheSchedulersMessageIsReportedAndItsChoiceKept) {
  Observed o = w.observe();
  PodFacts& pod = o.pods.at("job-r1-g0");
  pod.address.clear();
  pod.unscheduled = "0/3 nodes are available";
  EXPECT_THAT(status_of(answer(o)).message, HasSubstr("job-r1-g0 of rank 1 finds no node: 0/3 nodes are available"));
  pod.unscheduled.clear();
  pod.node = "fast-9";
  EXPECT_EQ(status_of(answer(o)).ranks[1].node, "fast-9");
}

TEST(Pending, RefusesATemplateWithoutACommandIfTheImageIsUnreadable) {
  sim::World w({.ranks = 1});
  Observed o = w.observe();
  o.job.spec.pod_template = {{"spec", {{"containers", {{{"name", "app"}, {"image", "x"}}}}}}};
  EXPECT_EQ(status_of(reconcile_job(o, unadvised(o), w.limits, w.job_limits)).phase, crds::JobPhase::kStarting);
  o.images_unreadable = true;
  const Step out = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
  EXPECT_EQ(status_of(out).phase, crds::JobPhase::kFailed);
  EXPECT_EQ(status_of(out).reason, "TemplateIncomplete");
  EXPECT_THAT(status_of(out).message, HasSubstr("containers[app].command"));
}

TEST(LostNode, DelaysARestartUntilNothingCanRunThereButNoDeletion) {
  sim::World w({.ranks = 2});
  ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning));
  Observed o = w.observe();
  o.job.status.phase = crds::JobPhase::kRestarting;
  o.job.status.message = "rank 1 is lost";
  o.pods.erase("job-r0-g0");
  PodFacts& stuck = o.pods.at("job-r1-g0");
  stuck.deleting = true;
  Step out = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
  EXPECT_EQ(status_of(out).phase, crds::JobPhase::kRestarting) << "its kubelet is still at it";
  EXPECT_EQ(status_of(out).message, "rank 1 is lost");
  stuck.lost = true;
  out = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
  EXPECT_EQ(status_of(out).phase, crds::JobPhase::kRestarting) << "its program may go on there";
  EXPECT_THAT(
      status_of(out).message,
      HasSubstr("rank 1 is lost; the next attempt waits until nothing of this one can run on node " + stuck.node));
  o.job.status.message = status_of(out).message;
  EXPECT_EQ(status_of(reconcile_job(o, unadvised(o), w.limits, w.job_limits)).message, status_of(out).message)
      << "it is reported once";

  Observed late = o;
  late.job.spec.run_policy.active_deadline_seconds = 1;
  late.started_for = std::chrono::hours(1);
  EXPECT_EQ(status_of(reconcile_job(late, unadvised(late), w.limits, w.job_limits)).reason, "DeadlineExceeded");

  stuck.abandoned = true;
  EXPECT_EQ(status_of(reconcile_job(o, unadvised(o), w.limits, w.job_limits)).phase, crds::JobPhase::kPending);
  o.job.status.phase = crds::JobPhase::kPending;
  const Step next = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
  EXPECT_EQ(status_of(next).phase, crds::JobPhase::kStarting);
  EXPECT_NE(status_of(next).ranks[1].pod, "job-r1-g0") << "its name is not used again";

  o.job.metadata.deletion_timestamp = o.now;
  stuck.abandoned = false;
  EXPECT_TRUE(reconcile_job(o, unadvised(o), w.limits, w.job_limits).work().remove_finalizer);
  stuck.lost = false;
  EXPECT_FALSE(reconcile_job(o, unadvised(o), w.limits, w.job_limits).work().remove_finalizer);
}

TEST(Target, IsPinnedOnlyToANodeThatAUserNamed) {
  for (const bool named : {false, true}) {
    sim::World w({.ranks = 2, .slow = 2, .fast = 2});
    ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning));
    w.migrate_by_hand("mine", 0, named ? "" : "fast", named ? "fast-1" : "");
    ASSERT_TRUE(w.run_until([&] { return !w.created.empty() && w.created.back().target; })) << w.trace;
    EXPECT_EQ(w.created.back().pinned, named);
    EXPECT_EQ(w.created.back().node, named ? "fast-1" : "fast-0");
  }
}

TEST(PodFacts, SayWhyTheSchedulerFoundNoNode) {
  json pod = {
      {"metadata", {{"name", "p"}}},
      {"status",
       {{"conditions", {{{"type", "PodScheduled"}, {"status", "False"}, {"message", "0/3 nodes are available"}}}}}}};
  EXPECT_EQ(pod_facts(pod).unscheduled, "0/3 nodes are available");
  pod["status"]["conditions"][0]["status"] = "True";
  EXPECT_EQ(pod_facts(pod).unscheduled, "");
}

}  // namespace
}  // namespace bsp::reconcile
