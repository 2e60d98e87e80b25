// The cluster's nodes as jobs see them. Parsing a node costs more than deciding with it, a cluster may have a thousand, and
// every reconcile needs them all; so they are parsed again only when one has changed, once for all jobs with the same
// demands on nodes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "operator/kube/client.h"
#include "operator/observe/snapshot.h"
#include "operator/reconcile/capacity/resources.h"
#include "operator/reconcile/kernel/pods/lost_pods.h"

namespace bsp::reconcile {

struct SeenNode {
  observe::NodeFacts facts;  // its slots are not known yet: they depend on the pods; its Set is "" if it is in none
  Resources allocatable;
  NodeState state = NodeState::kAnswers;
  bool takes_pods = false;  // of these jobs (resources.h)
  std::string leaving;      // why its pods have to leave it (resources.h)
};

struct SeenNodes {
  std::string label;                                                  // by which these jobs' Sets are found
  std::vector<SeenNode> nodes;                                        // all of the cluster, by name
  [[nodiscard]] const SeenNode* find(const std::string& name) const;  // nullptr: there is none
};

// Thread-safe.
class NodeViews {
 public:
  // As kube::CacheOptions::on_change says it. A version that says the same, as a kubelet's sign of life does, is no
  // change.
  void change(const kube::Object* before, const kube::Object* now);
  // For jobs with that spec.sets.label and spec.template, whose ranks got their places by label `kept` ("": they have none);
  // `list` gives all nodes, by name, and is asked only when needed.
  std::shared_ptr<const SeenNodes> seen_by(const std::string& label, const std::string& kept,
                                           const nlohmann::json& pod_template,
                                           const std::function<std::vector<kube::Object>()>& list);

 private:
  struct View {
    std::uint64_t version = 0;
    std::shared_ptr<const SeenNodes> nodes;
  };
  std::atomic<std::uint64_t> version_ = 1;  // of all nodes together
  std::mutex mutex_;
  std::map<std::string, View> views_;  // by what is asked of nodes
};

}  // namespace bsp::reconcile
