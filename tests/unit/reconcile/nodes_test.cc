// Nodes are read when one of them has changed, not in every reconcile of every job.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "crds/names.h"
#include "operator/reconcile/shell/nodes.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;

json node(const std::string& name, const std::string& pool, const std::string& version) {
  return {{"metadata",
           {{"name", name}, {"resourceVersion", version}, {"labels", {{std::string(names::kPoolLabels[0]), pool}}}}},
          {"spec", json::object()},
          {"status",
           {{"allocatable", {{"cpu", "2"}, {"memory", "4Gi"}, {"pods", "10"}}},
            {"conditions", json::array({{{"type", "Ready"}, {"status", "True"}}})}}}};
}

class Nodes : public testing::Test {
 protected:
  std::shared_ptr<const SeenNodes> read(const json& pod_template = json::object(), const std::string& kept = "") {
    return views_.seen_by(std::string(names::kLabelSet), kept, pod_template, [&] {
      ++lists_;
      return all_;
    });
  }
  void change(std::size_t i, json now) {
    const json before = std::exchange(all_[i], std::move(now));
    views_.change(&before, &all_[i]);
  }

  std::vector<kube::Object> all_ = {node("a", "slow", "1"), node("b", "fast", "2")};
  NodeViews views_;
  int lists_ = 0;
};

TEST_F(Nodes, AreReadOnceForAllReconciles) {
  const auto first = read();
  EXPECT_EQ(first, read());
  EXPECT_EQ(lists_, 1);
  EXPECT_EQ(first->label, names::kPoolLabels[0]);
  ASSERT_NE(first->find("b"), nullptr);
  EXPECT_EQ(first->find("b")->facts.set, "fast");
  EXPECT_EQ(first->find("b")->allocatable, (Resources{2000, std::int64_t{4} << 30, 10}));
  EXPECT_EQ(first->find("b")->state, NodeState::kAnswers);
  EXPECT_TRUE(first->find("b")->takes_pods);
  EXPECT_EQ(first->find("aa"), nullptr);
}

TEST_F(Nodes, AreSeenByTheLabelOfTheJobsPlaces) {
  json labelled = node("c", "fast", "3");
  labelled["metadata"]["labels"] = {{names::kLabelSet, "trial"}};
  all_.push_back(labelled);
  EXPECT_EQ(read()->find("a")->facts.set, "");
  EXPECT_EQ(read({}, std::string(names::kPoolLabels[0]))->find("a")->facts.set, "slow");
  EXPECT_EQ(read()->find("c")->facts.set, "trial");
}

TEST_F(Nodes, AKubeletsHeartbeatIsNoChange) {
  const auto first = read();
  change(0, node("a", "slow", "3"));
  EXPECT_EQ(first, read());
}

TEST_F(Nodes, AChangeIsSeenByEveryKindOfJob) {
  const json tolerant = {{"spec", {{"tolerations", json::array({{{"operator", "Exists"}}})}}}};
  read(), read(tolerant);
  EXPECT_EQ(lists_, 2);
  json tainted = node("b", "fast", "3");
  tainted["spec"]["taints"] = json::array({{{"key", "k"}, {"effect", "NoSchedule"}}});
  change(1, tainted);
  EXPECT_FALSE(read()->find("b")->takes_pods);
  EXPECT_TRUE(read(tolerant)->find("b")->takes_pods);
  EXPECT_EQ(lists_, 4);
}

TEST_F(Nodes, ANodeThatComesOrGoesIsSeen) {
  read();
  all_.push_back(node("c", "fast", "4"));
  views_.change(nullptr, &all_[2]);
  EXPECT_EQ(read()->nodes.size(), 3u);
  const json gone = all_[2];
  all_.pop_back();
  views_.change(&gone, nullptr);
  EXPECT_EQ(read()->nodes.size(), 2u);
}

// A change during the listing may be missing from the list.
TEST_F(Nodes, AChangeDuringAReconcileIsSeenByTheNext) {
  const auto during = views_.seen_by("x", "", json::object(), [&] {
    const auto before_it = all_;
    json cordoned = node("a", "slow", "5");
    cordoned["spec"]["unschedulable"] = true;
    change(0, cordoned);
    return before_it;
  });
  EXPECT_FALSE(during->find("a")->facts.cordoned);
  EXPECT_TRUE(views_.seen_by("x", "", json::object(), [&] { return all_; })->find("a")->facts.cordoned);
}

}  // namespace
}  // namespace bsp::reconcile
