// The whole operator but for kubelets and sidecars: its command's object over an API server, as kubectl and a scheduler
// see it.
#include "operator/controller/controller.h"

#include <algorithm>

#include "http_get.h"
#include "operator/kinds.h"
#include "tests/unit/controller/install_crds.h"
#include "tests/unit/kube/world.h"

namespace bsp::controller {
namespace {

using kube::ApiClient;
using kube::Object;
using kube_test::eventually;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ControllerTest : public kube_test::World {
 protected:
  void SetUp() override {
    if (is_real()) GTEST_SKIP() << "needs a server to which nodes can be added";
    client_ = open();
    ASSERT_NO_FATAL_FAILURE(install_crds(*client_));
    add_node("slow-1", "slow");
    add_node("fast-1", "fast");
    add_node("fast-2", "fast");
  }

  void add_node(const std::string& name, const std::string& set, json spec = json::object(), const char* cpu = "2") {
    json node = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}, {"labels", {{"pool", set}}}}}};
    node["spec"] = std::move(spec);
    ASSERT_TRUE(client_->create(node));
    node["status"] = {{"allocatable", {{"cpu", cpu}, {"memory", "4Gi"}, {"pods", "110"}}},
                      {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
    ASSERT_TRUE(client_->update_status(node));
  }

  static json job(const std::string& name, const std::string& name_space = "default", unsigned ranks = 2) {
    return {{"apiVersion", "migbsp.io/v1alpha1"},
            {"kind", "BSPJob"},
            {"metadata", {{"name", name}, {"namespace", name_space}}},
            {"spec",
             {{"ranks", ranks},
              {"sets", {{"label", "pool"}, {"names", {"slow", "fast"}}}},
              {"initialMapping", "RoundRobin"},
              {"template",
               {{"spec",
                 {{"containers",
                   {{{"name", "app"},
                     {"image", "localhost/x"},
                     {"command", {"solver"}},
                     {"resources", {{"requests", {{"cpu", "500m"}}}}}}}}}}}}}}};
  }
  static json& app(json& job_object) { return job_object["spec"]["template"]["spec"]["containers"][0]; }

  std::unique_ptr<Controller> start(Options options = {}) {
    options.health_address = "";
    auto controller = Controller::start(options, config());
    EXPECT_TRUE(controller) << controller.error().message;
    return controller ? std::move(*controller) : nullptr;
  }

  std::vector<std::string> pods_in(const std::string& name_space) {
    std::vector<std::string> names;
    const std::vector<Object> pods = client_->list(kPod, name_space).value();
    for (const Object& pod : pods) names.push_back(pod["metadata"]["name"]);
    return names;
  }
  json read(const std::string& name, const std::string& name_space = "default") {
    return client_->get({kBspJob, name_space, name}).value_or(json::object());
  }
  std::string in_status(const std::string& name, const char* field, const std::string& name_space = "default") {
    return read(name, name_space).value("status", json::object()).value(field, "");
  }
  bool becomes(const std::string& name, const char* field, const std::string& value) {
    return eventually([&] { return in_status(name, field).find(value) != std::string::npos; });
  }
  bool has_pods(std::size_t count, const std::string& name_space = "default") {
    return eventually([&] { return pods_in(name_space).size() == count; });
  }

  std::unique_ptr<ApiClient> client_;
};

TEST_F(ControllerTest, AJobBecomesPodsThatTheSchedulerMayPlaceWithinTheirSet) {
  const auto controller = start();
  ASSERT_TRUE(client_->create(job("lbm")));
  ASSERT_TRUE(has_pods(2));
  EXPECT_THAT(pods_in("default"), ElementsAre("lbm-r0-g0", "lbm-r1-g0"));
  const json pod = client_->get({kPod, "default", "lbm-r1-g0"}).value();
  EXPECT_FALSE(pod["spec"].contains("nodeName"));
  const json terms =
      pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  EXPECT_EQ(terms, json::parse(R"([{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["fast"]}]}])"));
  EXPECT_EQ(pod["spec"]["hostUsers"], false);
  EXPECT_EQ(pod["spec"]["terminationGracePeriodSeconds"], 30) << "the user's, or as Kubernetes has it";
  EXPECT_EQ(pod["metadata"]["ownerReferences"][0]["uid"], read("lbm")["metadata"]["uid"]);
  const std::vector<Object> secrets = client_->list(kSecret, "default", {{"migbsp.io/job", "lbm"}}).value();
  ASSERT_EQ(secrets.size(), 1u) << "the pods' own, and none that signs";
  EXPECT_EQ(secrets[0]["metadata"]["name"],
            std::format("lbm-{}-a0-0-tls", read("lbm")["metadata"]["uid"].get<std::string>().substr(0, 8)));
  EXPECT_EQ(in_status("lbm", "phase"), "Starting");
  EXPECT_THAT(read("lbm")["metadata"]["finalizers"], ElementsAre("migbsp.io/pods"));
  EXPECT_TRUE(eventually([&] { return controller->readiness().status == 200; }));
  EXPECT_THAT(controller->metrics().text, HasSubstr("bsp_jobs{phase=\"Starting\"} 1\n"));
}

TEST_F(ControllerTest, AGangWaitsForAnApiThatIsNotServed) {
  const auto controller = start();
  json gang = job("lbm");
  gang["spec"]["scheduling"] = {{"gang", "SchedulerPlugins"}};
  ASSERT_TRUE(client_->create(gang));
  ASSERT_TRUE(becomes("lbm", "message",
                      "spec.scheduling.gang is SchedulerPlugins, and its PodGroup can't be created: the API server "
                      "doesn't serve PodGroup of scheduling.x-k8s.io/v1alpha1; is its CustomResourceDefinition "
                      "installed?; install scheduler-plugins"));
  EXPECT_EQ(in_status("lbm", "phase"), "Pending");
  EXPECT_EQ(in_status("lbm", "reason"), "PodGroupRefused");
  EXPECT_THAT(pods_in("default"), IsEmpty());
  const json any = {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  const json schema = {{"type", "object"}, {"properties", {{"spec", any}, {"status", any}}}};
  ASSERT_TRUE(
      client_->create({{"apiVersion", "apiextensions.k8s.io/v1"},
                       {"kind", "CustomResourceDefinition"},
                       {"metadata", {{"name", "podgroups.scheduling.x-k8s.io"}}},
                       {"spec",
                        {{"group", "scheduling.x-k8s.io"},
                         {"scope", "Namespaced"},
                         {"names", {{"plural", "podgroups"}, {"kind", "PodGroup"}, {"listKind", "PodGroupList"}}},
                         {"versions",
                          {{{"name", "v1alpha1"},
                            {"served", true},
                            {"storage", true},
                            {"schema", {{"openAPIV3Schema", schema}}}}}}}}}));
  ASSERT_TRUE(has_pods(2)) << read("lbm");
  const auto groups = client_->list({"scheduling.x-k8s.io/v1alpha1", "PodGroup"}, "default").value();
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0]["spec"]["minMember"], 2);
  EXPECT_EQ(groups[0]["metadata"]["ownerReferences"][0]["uid"], read("lbm")["metadata"]["uid"]);
  const json pod = client_->get({kPod, "default", "lbm-r0-g0"}).value();
  EXPECT_EQ(pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"], groups[0]["metadata"]["name"]);
}

TEST_F(ControllerTest, TheOptionsReachThePods) {
  Options options;
  options.pods.user_namespace = false;
  options.pods.runtime_image = "registry.example/runtime:2";
  options.pods.pull_policy = "Always";
  const auto controller = start(options);
  ASSERT_TRUE(client_->create(job("lbm")));
  ASSERT_TRUE(has_pods(2));
  const json spec = client_->get({kPod, "default", "lbm-r0-g0"}).value()["spec"];
  EXPECT_FALSE(spec.contains("hostUsers"));
  EXPECT_EQ(spec["initContainers"][0]["image"], "registry.example/runtime:2");
  EXPECT_EQ(spec["initContainers"][0]["imagePullPolicy"], "Always");
  EXPECT_EQ(spec["volumes"][0]["image"]["reference"], "registry.example/runtime:2");
}

TEST_F(ControllerTest, JobsOfOneNameInTwoNamespacesHaveNothingInCommon) {
  const auto controller = start();
  ASSERT_TRUE(client_->create(job("lbm", "a")));
  ASSERT_TRUE(client_->create(job("lbm", "b", 3)));
  ASSERT_TRUE(has_pods(2, "a"));
  ASSERT_TRUE(has_pods(3, "b"));
  const auto ca_in = [&](const char* space) {
    return client_->list(kSecret, space, {{"migbsp.io/job", "lbm"}}).value().at(0)["data"]["ca.pem"];
  };
  EXPECT_NE(ca_in("a"), ca_in("b"));
  ASSERT_TRUE(client_->remove({kBspJob, "a", "lbm"}, ""));
  ASSERT_TRUE(eventually([&] { return client_->list(kBspJob, "a").value().empty(); })) << "its finalizer is removed";
  EXPECT_THAT(pods_in("a"), IsEmpty());
  EXPECT_EQ(pods_in("b").size(), 3u);
}

TEST_F(ControllerTest, MayReconcileOneNamespaceOnly) {
  Options options;
  options.name_space = "a";
  const auto controller = start(options);
  ASSERT_TRUE(client_->create(job("other", "b")));
  ASSERT_TRUE(client_->create(job("lbm", "a")));
  ASSERT_TRUE(has_pods(2, "a"));
  EXPECT_THAT(pods_in("b"), IsEmpty());
  EXPECT_FALSE(read("other", "b")["metadata"].contains("finalizers"));
}

TEST_F(ControllerTest, WithoutACommandTheConditionNamesTheField) {
  const auto controller = start();
  json bare = job("bare");
  app(bare).erase("command");
  ASSERT_TRUE(client_->create(bare));
  ASSERT_TRUE(becomes("bare", "phase", "Failed"));
  EXPECT_EQ(in_status("bare", "reason"), "TemplateIncomplete");
  EXPECT_THAT(in_status("bare", "message"), HasSubstr("spec.template.spec.containers[app].command: required"));
  json rootless = job("rootless");
  app(rootless)["securityContext"] = {{"runAsNonRoot", true}};
  ASSERT_TRUE(client_->create(rootless));
  ASSERT_TRUE(becomes("rootless", "phase", "Failed"));
  EXPECT_THAT(in_status("rootless", "message"), HasSubstr("securityContext.runAsUser"));
  EXPECT_THAT(pods_in("default"), IsEmpty());
}

TEST_F(ControllerTest, WhatTheSchemaLetsPassIsAnsweredByAConditionOnce) {
  const auto controller = start();
  json bad = job("bad");
  app(bad)["comand"] = {"solver"};
  ASSERT_TRUE(client_->create(bad));
  ASSERT_TRUE(becomes("bad", "phase", "Failed"));
  EXPECT_THAT(in_status("bad", "message"),
              HasSubstr("spec.template.spec.containers[0].comand: unknown field; did you mean command?"));
  const json conditions = read("bad")["status"]["conditions"];
  EXPECT_TRUE(std::any_of(conditions.begin(), conditions.end(),
                          [](const json& c) { return c["type"] == "Failed" && c["status"] == "True"; }));
  const std::string version = read("bad")["metadata"]["resourceVersion"];
  ASSERT_TRUE(client_->create(job("good")));
  ASSERT_TRUE(has_pods(2));
  EXPECT_EQ(read("bad")["metadata"]["resourceVersion"], version);
  ASSERT_TRUE(client_->remove({kBspJob, "default", "bad"}, "")) << "and it can be deleted";
  EXPECT_TRUE(eventually([&] { return client_->list(kBspJob, "default").value().size() == 1; }));
}

TEST_F(ControllerTest, APodThatTheServerFindsInvalidFailsTheJobInItsWords) {
  server_.inject(
      {.match = "POST /api/v1/namespaces/default/pods",
       .times = 1000,
       .status = 422,
       .body =
           R"({"kind": "Status", "message": "Pod \"x\" is invalid: spec.priority: Forbidden", "reason": "Invalid"})"});
  const auto controller = start();
  ASSERT_TRUE(client_->create(job("lbm")));
  ASSERT_TRUE(becomes("lbm", "phase", "Failed"));
  EXPECT_EQ(in_status("lbm", "reason"), "InvalidPod");
  EXPECT_THAT(in_status("lbm", "message"), HasSubstr("spec.priority: Forbidden"));
}

TEST_F(ControllerTest, ReportsARefusedPodAndRetries) {
  server_.inject(
      {.match = "POST /api/v1/namespaces/default/pods",
       .times = 100000,
       .status = 403,
       .body = R"({"kind": "Status", "message": "pods \"x\" is forbidden: exceeded quota", "reason": "Forbidden"})"});
  const auto controller = start();
  ASSERT_TRUE(client_->create(job("lbm")));
  ASSERT_TRUE(becomes("lbm", "message", "exceeded quota"));
  EXPECT_EQ(in_status("lbm", "phase"), "Starting");
  server_.clear_faults();
  ASSERT_TRUE(has_pods(2));
  EXPECT_TRUE(becomes("lbm", "message", "2 ranks are mapped")) << "what no longer holds is no longer said";
}

TEST_F(ControllerTest, TheSchedulersWordsAreTheJobs) {
  const auto controller = start();
  ASSERT_TRUE(client_->create(job("lbm")));
  ASSERT_TRUE(has_pods(2));
  json pod = client_->get({kPod, "default", "lbm-r1-g0"}).value();
  pod["status"]["conditions"] = {{{"type", "PodScheduled"},
                                  {"status", "False"},
                                  {"reason", "Unschedulable"},
                                  {"message", "0/3 nodes are available: 3 Insufficient cpu."}}};
  ASSERT_TRUE(client_->update_status(pod));
  ASSERT_TRUE(becomes("lbm", "message", "lbm-r1-g0 of rank 1 finds no node: 0/3 nodes are available"));
  // It is placed after all, and elsewhere than planned.
  pod = client_->get({kPod, "default", "lbm-r1-g0"}).value();
  pod["spec"]["nodeName"] = "fast-2";
  ASSERT_TRUE(client_->update(pod));
  pod["status"]["conditions"] = {{{"type", "PodScheduled"}, {"status", "True"}}};
  pod["metadata"].erase("resourceVersion");
  ASSERT_TRUE(client_->update_status(pod));
  EXPECT_TRUE(eventually([&] { return read("lbm")["status"]["ranks"]["place"]["fast/fast-2"] == "1"; }));
  EXPECT_TRUE(becomes("lbm", "message", "2 ranks are mapped"));
}

TEST_F(ControllerTest, NodesWithoutSlotsOrThatRefuseThePodsTakeNoRank) {
  add_node("fast-3", "tainted", {{"taints", {{{"key", "gpu"}, {"effect", "NoSchedule"}}}}});
  // Half a core is left on slow-1.
  ASSERT_TRUE(
      client_->create({{"apiVersion", "v1"},
                       {"kind", "Pod"},
                       {"metadata", {{"name", "other"}, {"namespace", "kube-system"}}},
                       {"spec",
                        {{"nodeName", "slow-1"},
                         {"containers", {{{"name", "c"}, {"resources", {{"requests", {{"cpu", "1500m"}}}}}}}}}}}));
  const auto controller = start();
  json narrow = job("narrow", "default", 2);
  narrow["spec"]["sets"]["names"] = {"slow"};
  ASSERT_TRUE(client_->create(narrow));
  ASSERT_TRUE(becomes("narrow", "reason", "NoCapacity"));
  EXPECT_EQ(in_status("narrow", "phase"), "Pending") << "capacity may come";
  json tainted = job("tainted", "default", 1);
  tainted["spec"]["sets"]["names"] = {"tainted"};
  ASSERT_TRUE(client_->create(tainted));
  ASSERT_TRUE(becomes("tainted", "reason", "NoCapacity"));
  json tolerant = tainted;
  tolerant["metadata"]["name"] = "tolerant";
  tolerant["spec"]["template"]["spec"]["tolerations"] = {{{"key", "gpu"}, {"operator", "Exists"}}};
  ASSERT_TRUE(client_->create(tolerant));
  ASSERT_TRUE(has_pods(1));
  ASSERT_TRUE(client_->remove({kPod, "kube-system", "other"}, ""));
  EXPECT_TRUE(becomes("narrow", "message", "2 ranks are mapped")) << "it has come";
}

TEST_F(ControllerTest, TheLastLinesOfALogAreRead) {
  server_.inject({.match = "GET /api/v1/namespaces/default/pods/p/log?container=app&tailLines=10&limitBytes=2000",
                  .status = 200,
                  .body = "last words\n"});
  EXPECT_EQ(client_->pod_log("default", "p", {.container = "app"}).value_or("none"), "last words\n");
  EXPECT_EQ(client_->pod_log("default", "p", {.container = "app"}).error().code, ErrorCode::kNotFound);
}

TEST_F(ControllerTest, OneOfTwoWorksAndTheOtherTakesOver) {
  Options options;
  options.leader_elect = true;
  options.lease = {.name_space = "default", .name = "lease", .identity = ""};
  auto first = start(options);
  const auto leads = [](const std::unique_ptr<Controller>& c) {
    return c->metrics().text.find("bsp_operator_leader 1\n") != std::string::npos;
  };
  ASSERT_TRUE(eventually([&] { return leads(first) && first->readiness().status == 200; }));
  auto second = start(options);
  ASSERT_TRUE(eventually([&] { return second->readiness().status == 200; }));
  EXPECT_THAT(second->readiness().text, HasSubstr("stand-by of"));
  EXPECT_FALSE(leads(second));
  ASSERT_TRUE(client_->create(job("lbm")));
  ASSERT_TRUE(has_pods(2));
  first.reset();
  ASSERT_TRUE(eventually([&] { return leads(second); }));
  ASSERT_TRUE(client_->remove({kBspJob, "default", "lbm"}, ""));
  EXPECT_TRUE(eventually([&] { return client_->list(kBspJob, "default").value().empty(); }));
}

TEST_F(ControllerTest, ScrapesInALoopAndIdleConnectionsDoNotCostTheLeadership) {
  const int port = free_port();
  Options options;
  options.leader_elect = true;
  options.lease = {.name_space = "default", .name = "lease", .identity = ""};
  options.lease.period = std::chrono::milliseconds(50);
  options.metrics_address = std::format("127.0.0.1:{}", port);
  const auto controller = start(options);
  const auto leads = [&] { return http_get(port, "/metrics").contains("bsp_operator_leader 1\n"); };
  ASSERT_TRUE(eventually(leads));
  std::vector<Fd> idle;
  for (int i = 0; i < 1000; ++i) {
    idle.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in to = loopback(port);
    ASSERT_EQ(::connect(idle.back().get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0) << i;
  }
  std::atomic<bool> stop = false;
  std::vector<std::jthread> scrapers;
  for (int i = 0; i < 4; ++i)
    scrapers.emplace_back([&] {
      while (!stop) EXPECT_THAT(http_get(port, "/metrics"), HasSubstr("bsp_operator_leader 1\n"));
    });
  const std::string renewal = "PUT /apis/coordination.k8s.io/v1/namespaces/default/leases/lease";
  EXPECT_TRUE(server_.wait_for_requests(renewal, server_.requests(renewal) + 40)) << "renewed again and again";
  stop = true;
  scrapers.clear();
  EXPECT_TRUE(leads());
  EXPECT_EQ(client_->get({{"coordination.k8s.io/v1", "Lease"}, "default", "lease"}).value()["spec"]["leaseTransitions"],
            0);
}

}  // namespace
}  // namespace bsp::controller
