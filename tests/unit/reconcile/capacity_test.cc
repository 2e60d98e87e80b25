// How many ranks a node can hold, and which nodes take a template's pods, as kube-scheduler counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "operator/reconcile/capacity/resources.h"
#include "operator/reconcile/capacity/stores/usage.h"
#include "tests/unit/reconcile/affinity.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;

json asks(const char* cpu, const char* memory) { return {{"requests", {{"cpu", cpu}, {"memory", memory}}}}; }

TEST(Requests, OfARankIncludeTheOperatorsContainers) {
  const json own = asks("5m", "16Mi");
  json pod_template;
  pod_template["spec"]["containers"] = json::array({{{"resources", asks("250m", "1Mi")}}});
  EXPECT_EQ(requests_of_rank(pod_template, own), (Resources{255, 17 << 20, 1}));
  EXPECT_EQ(requests_of_rank(pod_template, {{"limits", {{"cpu", "10m"}}}}), (Resources{260, 1 << 20, 1}));
  EXPECT_EQ(requests_of_rank(pod_template, json()), (Resources{250, 1 << 20, 1}));
  pod_template["spec"]["containers"][0].erase("resources");
  EXPECT_EQ(requests_of_rank(pod_template, own), (Resources{0, 16 << 20, 1})) << "such a rank counts as a core";
}

TEST(Capacity, OfAPodIsWhatTheSchedulerCounts) {
  EXPECT_EQ(requests_of(json::object()), (Resources{0, 0, 1}));
  json spec;
  spec["containers"] =
      json::array({{{"resources", asks("250m", "1Gi")}}, {{"resources", {{"limits", {{"cpu", 2}}}}}}, json::object()});
  EXPECT_EQ(requests_of(spec), (Resources{2250, 1 << 30, 1})) << "a limit without a request is one";
  spec["initContainers"] = json::array(
      {{{"restartPolicy", "Always"}, {"resources", asks("100m", "0")}}, {{"resources", asks("2300m", "1Mi")}}});
  EXPECT_EQ(requests_of(spec).cpu, 2400) << "the init container and the sidecar before it, since that is more";
  spec["initContainers"].erase(1);
  EXPECT_EQ(requests_of(spec).cpu, 2350);
  spec["overhead"] = {{"cpu", "10m"}, {"memory", "1Ki"}};
  EXPECT_EQ(requests_of(spec), (Resources{2360, (1 << 30) + 1024, 1}));
  EXPECT_EQ(requests_of({{"containers", {{{"resources", asks("much", "-1")}}}}}), (Resources{0, 0, 1}))
      << "nonsense asks for nothing";
}

// KEP-2837: what the pod requests as a whole counts instead of its containers' sum.
TEST(Capacity, OfAPodThatStatesItsResourcesAsAWhole) {
  const json own = asks("5m", "16Mi");
  json spec;
  spec["containers"] = json::array({{{"name", "app"}, {"resources", asks("250m", "1Mi")}}});
  spec["resources"] = asks("2", "1Gi");
  spec["overhead"] = {{"cpu", "10m"}};
  EXPECT_EQ(requests_of(spec), (Resources{2010, 1 << 30, 1}));
  EXPECT_EQ(requests_of_rank({{"spec", spec}}, own), (Resources{2010, 1 << 30, 1})) << "the sidecar's are among them";
  spec["resources"] = {{"requests", {{"cpu", "2"}}}};
  EXPECT_EQ(requests_of_rank({{"spec", spec}}, own), (Resources{2010, 17 << 20, 1})) << "each resource by itself";
  spec["resources"] = {{"limits", {{"cpu", "3"}, {"memory", "1Gi"}}}};
  EXPECT_EQ(requests_of(spec), (Resources{260, 1 << 20, 1})) << "the containers' requests become the pod's";
  spec["containers"][0].erase("resources");
  EXPECT_EQ(requests_of(spec), (Resources{3010, 1 << 30, 1})) << "none has any: a limit without a request is one";
  EXPECT_EQ(cpu_used_by_rank({{"spec", spec}}), 3000);
  spec["resources"] = {{"limits", {{"cpu", "400m"}}}};
  EXPECT_EQ(cpu_used_by_rank({{"spec", spec}}), 400);
  spec["resources"] = asks("4", "1Gi");
  EXPECT_EQ(cpu_used_by_rank({{"spec", spec}}), 4000);
  spec["containers"][0]["resources"] = {{"limits", {{"cpu", "2"}}}};
  EXPECT_EQ(cpu_used_by_rank({{"spec", spec}}), 2000);
  for (const json& nonsense : {json(), json("2"), json(2), json::array({1}), json{{"requests", "all"}},
                               json{{"requests", {{"cpu", "much"}, {"memory", nullptr}}}, {"limits", 3}}}) {
    spec["resources"] = nonsense;
    EXPECT_EQ(requests_of(spec), (Resources{2010, 0, 1})) << nonsense;
  }
  spec["resources"] = asks("7E", "8000Pi");
  EXPECT_EQ(requests_of_rank({{"spec", spec}}, own), (Resources{kMostAsked, kMostAsked, 1}));
}

TEST(Capacity, OfOtherResources) {
  json spec;
  spec["containers"] =
      json::array({{{"resources", {{"limits", {{"nvidia.com/gpu", 2}, {"hugepages-2Mi", "4Mi"}, {"rdma/hca", "0"}}}}}},
                   {{"resources", {{"requests", {{"nvidia.com/gpu", "1"}, {"ephemeral-storage", "1Ki"}}}}}}});
  spec["initContainers"] = json::array({{{"resources", {{"limits", {{"nvidia.com/gpu", "1"}, {"example/x", 1}}}}}}});
  const Resources rank = requests_of(spec);
  EXPECT_EQ(
      rank.extended,
      (Extended{{"ephemeral-storage", 1024}, {"example/x", 1}, {"hugepages-2Mi", 4 << 20}, {"nvidia.com/gpu", 3}}));
  spec["resources"] = {{"limits", {{"hugepages-2Mi", "6Mi"}}}};
  EXPECT_EQ(requests_of(spec).extended.at("hugepages-2Mi"), 6 << 20);
  const auto node = [](json allocatable) {
    allocatable.update({{"cpu", "64"}, {"memory", "256Gi"}, {"pods", "110"}});
    return allocatable_of({{"status", {{"allocatable", std::move(allocatable)}}}});
  };
  const Resources gpu = requests_of({{"containers", {{{"resources", {{"limits", {{"nvidia.com/gpu", 2}}}}}}}}});
  EXPECT_EQ(slots_of(node(json::object()), gpu), 0u) << "no GPU";
  EXPECT_EQ(slots_of(node({{"nvidia.com/gpu", "1"}}), gpu), 0u);
  EXPECT_EQ(slots_of(node({{"nvidia.com/gpu", "5"}}), gpu), 2u);
  EXPECT_EQ(slots_of(node({{"nvidia.com/gpu", "many"}}), gpu), 0u);
  const Resources bare = node(json::object()), one_gpu = node({{"nvidia.com/gpu", "1"}});
  EXPECT_EQ(lacking(gpu, {bare, bare}), "no node of them has nvidia.com/gpu");
  EXPECT_EQ(lacking(gpu, {bare, one_gpu}), "no node of them has 2 nvidia.com/gpu, which a rank asks for");
  EXPECT_EQ(lacking(gpu, {bare, node({{"nvidia.com/gpu", "2"}})}), "");
  EXPECT_EQ(lacking(gpu, {}), "") << "there is none to name";
  EXPECT_EQ(
      lacking({65'000, 300ll << 30, 1}, {bare}),
      "no node of them has the CPU that a rank asks for (65000m; 64000m at most), the memory that a rank asks for "
      "(307200 MiB; 262144 MiB at most)");
  Resources free = node({{"nvidia.com/gpu", "4"}});
  free -= gpu;
  EXPECT_EQ(slots_of(free, gpu), 1u) << "what other pods have";
  free -= gpu;
  EXPECT_EQ(slots_of(free, gpu), 0u);
  free -= gpu;
  EXPECT_EQ(slots_of(free, gpu), 0u);
  EXPECT_EQ(slots_of(free, {500, 0, 1}), 107u) << "who asks for none needs none";
  NodeUsage usage;
  const json pod = {{"metadata", {{"name", "p"}}}, {"spec", spec}};
  json there = pod;
  there["spec"]["nodeName"] = "n";
  usage.change(nullptr, &there);
  EXPECT_EQ(usage.of_all("n"), requests_of(spec));
  usage.change(&there, nullptr);
  EXPECT_EQ(usage.of_all("n"), Resources{}) << "and nothing of it stays";
  EXPECT_EQ(requests_of({{"containers", {{{"resources", {{"limits", {{"a/b", "7E"}}}}}}}}}).extended.at("a/b"),
            kMostAsked);
}

// A template may have any number of containers, and a node any number of such pods.
TEST(Capacity, OfImpossibleRequestsIsMoreThanAnyNodeHas) {
  json spec;
  for (const char* list : {"containers", "initContainers"})
    for (int i = 0; i < 5000; ++i)
      spec[list].push_back({{"restartPolicy", "Always"}, {"resources", asks("7E", "8000Pi")}});
  spec["overhead"] = {{"cpu", "7P"}, {"memory", "9Ei"}};
  EXPECT_EQ(requests_of(spec), (Resources{kMostAsked, kMostAsked, 1}));
  EXPECT_EQ(requests_of_rank({{"spec", spec}}, asks("7P", "7000Pi")), (Resources{kMostAsked, kMostAsked, 1}));
  EXPECT_EQ(slots_of({INT64_MAX >> 20, INT64_MAX >> 20, 110}, requests_of(spec)), 0u);
  NodeUsage usage;
  for (int i = 0; i < 10'000; ++i) {
    const json pod = {{"metadata", {{"name", std::to_string(i)}}},
                      {"spec", {{"nodeName", "n"}, {"overhead", spec["overhead"]}}}};
    usage.change(nullptr, &pod);
  }
  EXPECT_GT(usage.of_all("n").memory, 10'000 * (INT64_MAX >> 20));
}

TEST(Capacity, ARankUsesACoreUnlessItIsLimitedOrRequestsMore) {
  const auto uses = [](const json& resources, const json& beside = {}) {
    json pod_template;
    pod_template["spec"]["containers"] =
        json::array({{{"name", "beside"}, {"resources", beside}}, {{"name", "app"}, {"resources", resources}}});
    return cpu_used_by_rank(pod_template);
  };
  EXPECT_EQ(uses(json()), 1000);
  EXPECT_EQ(uses(asks("100m", "1Mi")), 1000) << "nothing keeps it from that";
  EXPECT_EQ(uses(asks("4", "1Mi")), 4000);
  EXPECT_EQ(uses({{"requests", {{"cpu", "100m"}}}, {"limits", {{"cpu", "250m"}}}}), 250);
  EXPECT_EQ(uses({{"limits", {{"cpu", 2}}}}), 2000);
  EXPECT_EQ(uses(asks("1", "1Mi"), {{"requests", {{"cpu", "200m"}}}, {"limits", {{"cpu", "3"}}}}), 1200);
  EXPECT_EQ(uses({{"limits", {{"cpu", "7E"}}}}, asks("7E", "0")), kMostAsked);
  EXPECT_EQ(cpu_used_by_rank(json()), 1);
  EXPECT_EQ(cpu_used_by_rank({{"spec", "text"}}), 1);
}

TEST(Capacity, InRanks) {
  EXPECT_EQ(slots_of({2000, 4 << 20, 110}, {500, 0, 1}), 4u);
  EXPECT_EQ(slots_of({2000, 4 << 20, 110}, {500, 2 << 20, 1}), 2u);
  EXPECT_EQ(slots_of({2000, 4 << 20, 3}, {500, 0, 1}), 3u);
  EXPECT_EQ(slots_of({400, 4 << 20, 110}, {500, 0, 1}), 0u);
  EXPECT_EQ(slots_of({-100, 4 << 20, 110}, {500, 0, 1}), 0u);
  EXPECT_EQ(slots_of({4000, 1, 110}, {0, 0, 1}), 4u) << "a rank keeps a core busy, whether it says so or not";
  EXPECT_EQ(slots_of({250, 1, 110}, {0, 0, 1}), 1u);
  EXPECT_EQ(slots_of({250, 1, 0}, {0, 0, 1}), 0u);
  EXPECT_EQ(allocatable_of({{"status", {{"allocatable", {{"cpu", "1930m"}, {"memory", "5Ki"}, {"pods", "110"}}}}}}),
            (Resources{1930, 5120, 110}));
}

TEST(Capacity, NodesThatTakeNoPodsOfATemplate) {
  const json plain = {{"spec", json::object()}};
  const json tolerant = {
      {"spec", {{"tolerations", {{{"key", "a"}, {"operator", "Equal"}, {"value", "x"}, {"effect", "NoSchedule"}}}}}}};
  auto tainted = [](const char* key, const char* value, const char* effect) -> json {
    return {{"spec", {{"taints", {{{"key", key}, {"value", value}, {"effect", effect}}}}}}};
  };
  EXPECT_TRUE(takes_pods_of(json::object(), plain));
  EXPECT_FALSE(takes_pods_of({{"spec", {{"unschedulable", true}}}}, plain));
  for (const char* status : {"False", "Unknown"})
    EXPECT_FALSE(takes_pods_of({{"status", {{"conditions", {{{"type", "Ready"}, {"status", status}}}}}}}, plain));
  EXPECT_TRUE(
      takes_pods_of({{"status", {{"conditions", {{{"type", "MemoryPressure"}, {"status", "False"}}}}}}}, plain));
  EXPECT_FALSE(takes_pods_of(tainted("a", "x", "NoSchedule"), plain));
  EXPECT_TRUE(takes_pods_of(tainted("a", "x", "PreferNoSchedule"), plain));
  EXPECT_TRUE(takes_pods_of(tainted("a", "x", "NoSchedule"), tolerant));
  EXPECT_FALSE(takes_pods_of(tainted("a", "y", "NoSchedule"), tolerant));
  EXPECT_FALSE(takes_pods_of(tainted("a", "x", "NoExecute"), tolerant));
  EXPECT_TRUE(takes_pods_of(tainted("a", "y", "NoExecute"), {{"spec", {{"tolerations", {{{"operator", "Exists"}}}}}}}));
  const json selects = {{"spec", {{"nodeSelector", {{"zone", "a"}}}}}};
  EXPECT_FALSE(takes_pods_of(json::object(), selects));
  EXPECT_TRUE(takes_pods_of({{"metadata", {{"labels", {{"zone", "a"}}}}}}, selects));
}

json node_with(json labels) { return {{"metadata", {{"name", "n1"}, {"labels", std::move(labels)}}}}; }

TEST(Capacity, NodesOfAnotherArchitectureOrSystemTakeNoRank) {
  const json plain = {{"spec", json::object()}};
  const auto takes = [&](json labels) { return takes_pods_of(node_with(std::move(labels)), plain); };
  EXPECT_TRUE(takes({{"kubernetes.io/arch", "amd64"}, {"kubernetes.io/os", "linux"}}));
  EXPECT_FALSE(takes({{"kubernetes.io/arch", "arm64"}, {"kubernetes.io/os", "linux"}}));
  EXPECT_FALSE(takes({{"kubernetes.io/arch", "amd64"}, {"kubernetes.io/os", "windows"}}));
  EXPECT_TRUE(takes({{"zone", "a"}})) << "each kubelet sets both, so this one says nothing";
  EXPECT_TRUE(takes({{"kubernetes.io/arch", 5}}));
}

TEST(Capacity, NodesThatTheTemplatesAffinityAdmits) {
  const json node = node_with({{"zone", "a"}, {"cores", "8"}, {"odd", "8x"}});
  const auto takes = [&](json terms) { return takes_pods_of(node, asked_of_nodes({{"spec", required(terms)}})); };
  const auto by_label = [](const char* key, const char* op, json values) -> json {
    return {{"matchExpressions", json::array({{{"key", key}, {"operator", op}, {"values", std::move(values)}}})}};
  };
  const auto admits = [&](const char* key, const char* op, json values) {
    return takes(json::array({by_label(key, op, std::move(values))}));
  };
  const json none = json::array();
  EXPECT_TRUE(admits("zone", "In", {"b", "a"}));
  EXPECT_FALSE(admits("zone", "In", {"b"}));
  EXPECT_FALSE(admits("disk", "In", {"b"}));
  EXPECT_TRUE(admits("zone", "NotIn", {"b"}));
  EXPECT_FALSE(admits("zone", "NotIn", {"b", "a"}));
  EXPECT_TRUE(admits("disk", "NotIn", {"b"})) << "a node without the label isn't in";
  EXPECT_TRUE(admits("zone", "Exists", none) && admits("zone", "Exists", nullptr));
  EXPECT_FALSE(admits("disk", "Exists", none));
  EXPECT_TRUE(admits("disk", "DoesNotExist", none));
  EXPECT_FALSE(admits("zone", "DoesNotExist", none));
  EXPECT_TRUE(admits("cores", "Gt", {"7"}) && admits("cores", "Lt", {"9"}));
  EXPECT_FALSE(admits("cores", "Gt", {"8"}) || admits("cores", "Lt", {"8"}) || admits("disk", "Gt", {"0"}));
  EXPECT_FALSE(admits("odd", "Gt", {"7"}) || admits("cores", "Gt", {"7x"}) || admits("cores", "Gt", {"1", "2"}) ||
               admits("cores", "Lt", {"99999999999999999999"}));
  const auto by_name = [](const char* op, json values) -> json {
    return {
        {"matchFields", json::array({{{"key", "metadata.name"}, {"operator", op}, {"values", std::move(values)}}})}};
  };
  EXPECT_TRUE(takes(json::array({by_name("In", {"n1"})})) && takes(json::array({by_name("NotIn", {"n2"})})));
  EXPECT_FALSE(takes(json::array({by_name("In", {"n2"})})) || takes(json::array({by_name("NotIn", {"n1"})})));
  EXPECT_FALSE(takes(json::array({by_name("In", {"n1", "n2"})}))) << "the API server admits one value alone";
  EXPECT_FALSE(takes(json::array({by_name("Exists", none)})));
  json both = by_label("zone", "In", {"a"});
  both.update(by_name("In", {"n2"}));
  EXPECT_FALSE(takes(json::array({both}))) << "both have to hold";
  EXPECT_TRUE(takes(json::array({both, by_label("zone", "In", {"a"})}))) << "terms are alternatives";
  for (const json& empty : {json::object(), json{{"matchExpressions", none}}}) {
    EXPECT_FALSE(takes(json::array({empty})));
    EXPECT_TRUE(takes(json::array({empty, by_label("zone", "Exists", none)})));
  }
  EXPECT_TRUE(takes(none)) << "the Set's requirement becomes the only one";
}

TEST(Capacity, AnAffinityThatMakesNoSenseAdmitsNoNode) {
  const json node = node_with({{"zone", "a"}});
  const json good = {{"key", "zone"}, {"operator", "In"}, {"values", {"a"}}};
  const json wrong[] = {nullptr, "zone", 5, true, json::array({1}), {{"x", 1}}, "Near", json::array()};
  for (const char* part : {"key", "operator", "values"})
    for (const json& value : wrong) {
      json requirement = good;
      requirement[part] = value;
      const json term = {{"matchExpressions", json::array({requirement})}};
      EXPECT_EQ(takes_pods_of(node, {{"spec", required(json::array({term}))}}),
                value == "zone" && part == std::string("key"))
          << term;
      const json field = {{"matchFields", json::array({requirement})}};
      EXPECT_FALSE(takes_pods_of(node, {{"spec", required(json::array({field}))}})) << field;
    }
  for (const char* list : {"matchExpressions", "matchFields"})
    for (const json& value : wrong)
      EXPECT_FALSE(takes_pods_of(node, {{"spec", required(json::array({{{list, value}}}))}}));
  for (const json& term : wrong) EXPECT_FALSE(takes_pods_of(node, {{"spec", required(json::array({term}))}})) << term;
}

}  // namespace
}  // namespace bsp::reconcile
