// When a pod on a node that does not answer counts as ended. The clock is the test's.
#include "operator/reconcile/kernel/lost_pods.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "crds/fencing.h"

namespace bsp::reconcile {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto kWait = fencing::kLimit + fencing::kMargin;

// Ranks 0 and 1 on node a, rank 2 on node b; all pods are being deleted.
class Lost : public testing::Test {
 protected:
  Lost() {
    for (std::uint32_t r = 0; r < 3; ++r) {
      const std::string name = std::format("job-r{}-g0", r);
      PodFacts pod;
      pod.uid = "u" + std::to_string(r);
      pod.node = r < 2 ? "a" : "b";
      pod.rank = r;
      pod.deleting = true;
      pods[name] = pod;
      epoch.members.push_back({.rank = r, .pod = name, .pod_uid = pod.uid, .address = "", .set = 0});
    }
  }
  // As it is `at` after the start, with those nodes that do not answer.
  void look(std::chrono::seconds at, std::map<std::string, NodeState> nodes) {
    lost.judge(
        pods, [&](const std::string& node) { return nodes.contains(node) ? nodes[node] : NodeState::kAnswers; },
        with_epoch ? &epoch : nullptr, LostPods::Steady{} + 100h + at);
  }
  std::string abandoned() const {
    std::string ranks;
    for (const auto& [name, pod] : pods)
      if (pod.abandoned) ranks += std::to_string(pod.rank);
    return ranks;
  }
  const std::map<std::string, NodeState> a_is_silent{{"a", NodeState::kSilent}},
      all_silent{{"a", NodeState::kSilent}, {"b", NodeState::kSilent}};

  LostPods lost;
  std::map<std::string, PodFacts> pods;
  wire::EpochPlan epoch;
  bool with_epoch = true;
};

TEST_F(Lost, CountsAsEndedOnlyLongAfterTheLastPodElsewhereHasGone) {
  look(0s, a_is_silent);
  EXPECT_TRUE(pods.at("job-r0-g0").lost);
  EXPECT_FALSE(pods.at("job-r2-g0").lost);
  look(10 * kWait, a_is_silent);
  EXPECT_EQ(abandoned(), "") << "rank 2 may still be heard";
  pods.erase("job-r2-g0");
  look(10 * kWait + 1s, a_is_silent);
  look(11 * kWait, a_is_silent);
  EXPECT_EQ(abandoned(), "");
  look(11 * kWait + 1s, a_is_silent);
  EXPECT_EQ(abandoned(), "01");
}

TEST_F(Lost, WaitsAnewOnceTheNodeHasAnswered) {
  pods.erase("job-r2-g0");
  look(0s, a_is_silent);
  look(kWait - 1s, {});  // it is back: its sidecars may have heard somebody
  EXPECT_FALSE(pods.at("job-r0-g0").lost);
  look(kWait, a_is_silent);
  look(kWait + kWait - 1s, a_is_silent);
  EXPECT_EQ(abandoned(), "");
  look(kWait + kWait, a_is_silent);
  EXPECT_EQ(abandoned(), "01");
}

TEST_F(Lost, IsNeverConcludedWhereNoRankWasElsewhere) {
  look(0s, all_silent);
  look(1000 * kWait, all_silent);
  EXPECT_EQ(abandoned(), "");
  // Somebody says that one of the two is off: the other's ranks hear it no more, from then on.
  look(1001 * kWait, {{"a", NodeState::kSilent}, {"b", NodeState::kDead}});
  EXPECT_EQ(abandoned(), "2");
  look(1002 * kWait - 1s, {{"a", NodeState::kSilent}, {"b", NodeState::kDead}});
  EXPECT_EQ(abandoned(), "2");
  look(1002 * kWait, {{"a", NodeState::kSilent}, {"b", NodeState::kDead}});
  EXPECT_EQ(abandoned(), "012");
}

TEST_F(Lost, OfARankAloneIsNeverConcluded) {
  epoch.members.resize(1);
  pods.erase("job-r1-g0");
  pods.erase("job-r2-g0");
  look(0s, a_is_silent);
  look(1000 * kWait, a_is_silent);
  EXPECT_EQ(abandoned(), "");
  look(1001 * kWait, {{"a", NodeState::kDead}});
  EXPECT_EQ(abandoned(), "0");
}

TEST_F(Lost, BeforeThereIsAnEpochTimeAloneCounts) {
  with_epoch = false;
  look(0s, all_silent);
  look(kWait - 1s, all_silent);
  EXPECT_EQ(abandoned(), "");
  look(kWait, all_silent);
  EXPECT_EQ(abandoned(), "012");
}

TEST_F(Lost, StaysEndedWhenTheNextAttemptHasPods) {
  pods.erase("job-r2-g0");
  look(0s, a_is_silent);
  look(kWait, a_is_silent);
  ASSERT_EQ(abandoned(), "01");
  PodFacts next;
  next.uid = "u9";
  next.node = "b";
  next.rank = 2;
  pods["job-r2-g1"] = next;
  look(kWait + 1s, a_is_silent);
  EXPECT_EQ(abandoned(), "01");
  // One that has got the name of an ended one is another.
  pods.at("job-r0-g0").uid = "u8";
  look(kWait + 2s, a_is_silent);
  EXPECT_EQ(abandoned(), "1");
}

TEST_F(Lost, IsNoPodThatNobodyDeletesAndNoneWithoutANode) {
  for (auto& [name, pod] : pods) pod.deleting = false;
  pods.at("job-r0-g0").deleting = true;
  pods.at("job-r0-g0").node = "";
  look(0s, all_silent);
  for (const auto& [name, pod] : pods) EXPECT_FALSE(pod.lost) << name;
}

TEST(NodeState, IsWhatTheNodeSays) {
  EXPECT_EQ(node_state(nullptr), NodeState::kDead);
  json node = {{"metadata", {{"name", "a"}}}, {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
  EXPECT_EQ(node_state(&node), NodeState::kAnswers);
  node["spec"]["taints"] = {{{"key", "node.kubernetes.io/out-of-service"}, {"effect", "NoExecute"}}};
  EXPECT_EQ(node_state(&node), NodeState::kAnswers) << "it says itself that it is not";
  node["status"]["conditions"][0]["status"] = "Unknown";
  EXPECT_EQ(node_state(&node), NodeState::kDead);
  node["spec"]["taints"][0]["key"] = "node.kubernetes.io/unreachable";
  EXPECT_EQ(node_state(&node), NodeState::kSilent);
  node["spec"].erase("taints");
  EXPECT_EQ(node_state(&node), NodeState::kSilent);
}

}  // namespace
}  // namespace bsp::reconcile
