// When a pod on a node that does not answer counts as ended. The clock is the test's.
#include "operator/reconcile/kernel/pods/lost_pods.h"

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
      pod.apps[0].rank = r;
      pod.deleting = true;
      pods[name] = pod;
      epoch.members.push_back({.rank = r, .pod = name, .pod_uid = pod.uid, .address = "", .set = 0});
    }
  }
  // Time `at` after the start, with the nodes that do not answer.
  void reconcile(std::chrono::seconds at, std::map<std::string, NodeState> nodes) {
    lost.judge(
        pods, [&](const std::string& node) { return nodes.contains(node) ? nodes[node] : NodeState::kAnswers; },
        with_epoch ? &epoch : nullptr, LostPods::Steady{} + 100h + at);
  }
  std::string abandoned() const {
    std::string ranks;
    for (const auto& [name, pod] : pods)
      if (pod.abandoned) ranks += std::to_string(pod.app().rank);
    return ranks;
  }
  const std::map<std::string, NodeState> a_is_silent{{"a", NodeState::kSilent}},
      all_silent{{"a", NodeState::kSilent}, {"b", NodeState::kSilent}};

  LostPods lost;
  std::map<std::string, PodFacts> pods;
  wire::EpochPlan epoch;
  bool with_epoch = true;
};

TEST_F(Lost, CountsAsEndedOnlyLongAfterTheLastPodElsewhere) {
  reconcile(0s, a_is_silent);
  EXPECT_TRUE(pods.at("job-r0-g0").lost);
  EXPECT_FALSE(pods.at("job-r2-g0").lost);
  reconcile(10 * kWait, a_is_silent);
  EXPECT_EQ(abandoned(), "") << "rank 2 may still be heard";
  pods.erase("job-r2-g0");
  reconcile(10 * kWait + 1s, a_is_silent);
  reconcile(11 * kWait, a_is_silent);
  EXPECT_EQ(abandoned(), "");
  reconcile(11 * kWait + 1s, a_is_silent);
  EXPECT_EQ(abandoned(), "01");
}

TEST_F(Lost, RestartsTheWaitOnceTheNodeHasAnswered) {
  pods.erase("job-r2-g0");
  reconcile(0s, a_is_silent);
  reconcile(kWait - 1s, {});  // it is back: its sidecars may have heard other ranks
  EXPECT_FALSE(pods.at("job-r0-g0").lost);
  reconcile(kWait, a_is_silent);
  reconcile(kWait + kWait - 1s, a_is_silent);
  EXPECT_EQ(abandoned(), "");
  reconcile(kWait + kWait, a_is_silent);
  EXPECT_EQ(abandoned(), "01");
}

TEST_F(Lost, IsNeverConcludedIfAllRanksWereOnThatNode) {
  reconcile(0s, all_silent);
  reconcile(1000 * kWait, all_silent);
  EXPECT_EQ(abandoned(), "");
  // One of the two is reported as off: from then on the other's ranks no longer hear it.
  reconcile(1001 * kWait, {{"a", NodeState::kSilent}, {"b", NodeState::kDead}});
  EXPECT_EQ(abandoned(), "2");
  reconcile(1002 * kWait - 1s, {{"a", NodeState::kSilent}, {"b", NodeState::kDead}});
  EXPECT_EQ(abandoned(), "2");
  reconcile(1002 * kWait, {{"a", NodeState::kSilent}, {"b", NodeState::kDead}});
  EXPECT_EQ(abandoned(), "012");
}

TEST_F(Lost, IsNeverConcludedOfASingleRank) {
  epoch.members.resize(1);
  pods.erase("job-r1-g0");
  pods.erase("job-r2-g0");
  reconcile(0s, a_is_silent);
  reconcile(1000 * kWait, a_is_silent);
  EXPECT_EQ(abandoned(), "");
  reconcile(1001 * kWait, {{"a", NodeState::kDead}});
  EXPECT_EQ(abandoned(), "0");
}

// Its kubelet may still run what it ran.
TEST_F(Lost, OnANodeThatIsGoneHasTheTimeOfAFence) {
  const std::map<std::string, NodeState> a_is_gone{{"a", NodeState::kGone}};
  reconcile(0s, a_is_gone);
  reconcile(10 * kWait, a_is_gone);
  EXPECT_EQ(abandoned(), "") << "rank 2 may still be heard there";
  const std::map<std::string, NodeState> none_answers{{"a", NodeState::kGone}, {"b", NodeState::kSilent}};
  reconcile(11 * kWait, none_answers);
  reconcile(12 * kWait - 1s, none_answers);
  EXPECT_EQ(abandoned(), "");
  reconcile(12 * kWait, none_answers);
  EXPECT_EQ(abandoned(), "01") << "who deleted the Node vouches for its machine; the others may hear each other";
  reconcile(12 * kWait + 1s, none_answers);
  reconcile(13 * kWait + 1s, none_answers);
  EXPECT_EQ(abandoned(), "012") << "they hear no rank that has ended";
}

TEST_F(Lost, OnlyPodOnANodeThatIsGoneIsGivenTheTimeOfAFence) {
  epoch.members.resize(1);
  pods.erase("job-r1-g0");
  pods.erase("job-r2-g0");
  reconcile(0s, {{"a", NodeState::kGone}});
  reconcile(kWait - 1s, {{"a", NodeState::kGone}});
  EXPECT_EQ(abandoned(), "");
  reconcile(kWait, {{"a", NodeState::kGone}});
  EXPECT_EQ(abandoned(), "0");
}

TEST_F(Lost, VanishedOnANodeThatAnswersEndsWithItsGracePeriod) {
  for (auto& [name, pod] : pods) pod.vanished = true;
  pods.at("job-r0-g0").grace_over = true;
  reconcile(0s, all_silent);
  EXPECT_EQ(abandoned(), "") << "nobody ends it there";
  reconcile(1s, {});
  EXPECT_EQ(abandoned(), "0");
}

TEST_F(Lost, CountsTimeOnlyBeforeTheFirstEpoch) {
  with_epoch = false;
  reconcile(0s, all_silent);
  reconcile(kWait - 1s, all_silent);
  EXPECT_EQ(abandoned(), "");
  reconcile(kWait, all_silent);
  EXPECT_EQ(abandoned(), "012");
}

TEST_F(Lost, StaysEndedInTheNextAttempt) {
  pods.erase("job-r2-g0");
  reconcile(0s, a_is_silent);
  reconcile(kWait, a_is_silent);
  ASSERT_EQ(abandoned(), "01");
  PodFacts next;
  next.uid = "u9";
  next.node = "b";
  next.apps[0].rank = 2;
  pods["job-r2-g1"] = next;
  reconcile(kWait + 1s, a_is_silent);
  EXPECT_EQ(abandoned(), "01");
  // A pod that reuses the name of an ended one is another pod.
  pods.at("job-r0-g0").uid = "u8";
  reconcile(kWait + 2s, a_is_silent);
  EXPECT_EQ(abandoned(), "1");
}

TEST_F(Lost, ExcludesPodsNotBeingDeletedOrWithoutANode) {
  for (auto& [name, pod] : pods) pod.deleting = false;
  pods.at("job-r0-g0").deleting = true;
  pods.at("job-r0-g0").node = "";
  reconcile(0s, all_silent);
  for (const auto& [name, pod] : pods) EXPECT_FALSE(pod.lost) << name;
}

TEST(NodeState, IsReadFromTheNode) {
  EXPECT_EQ(node_state(nullptr), NodeState::kSilent) << "only a request to the API server shows that there is none";
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
