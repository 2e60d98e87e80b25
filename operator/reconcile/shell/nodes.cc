#include "operator/reconcile/shell/nodes.h"

#include <algorithm>
#include <utility>

#include "base/json/fields.h"
#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {
namespace {

// More kinds of jobs than this at once are not worth the memory: each view holds every node.
constexpr std::size_t kMostViews = 32;

kube::Object without_version(kube::Object node) {
  if (part_at(node, "metadata").is_object()) node["metadata"].erase("resourceVersion");
  return node;
}

std::shared_ptr<const SeenNodes> read_nodes(const std::string& label, const std::string& kept,
                                            const nlohmann::json& asked, const std::vector<kube::Object>& nodes) {
  auto seen = std::make_shared<SeenNodes>();
  seen->label = set_label(label, kept, nodes);
  seen->nodes.reserve(nodes.size());
  for (const kube::Object& node : nodes)
    seen->nodes.push_back({.facts = node_facts(node, seen->label),
                           .allocatable = allocatable_of(node),
                           .state = node_state(&node),
                           .takes_pods = takes_pods_of(node, asked),
                           .leaving = leaving(node, asked)});
  return seen;
}

}  // namespace

const SeenNode* SeenNodes::find(const std::string& name) const {
  const auto it = std::ranges::lower_bound(nodes, name, {},
                                           [](const SeenNode& node) -> const std::string& { return node.facts.name; });
  return it != nodes.end() && it->facts.name == name ? &*it : nullptr;
}

void NodeViews::change(const kube::Object* before, const kube::Object* now) {
  if (before && now && without_version(*before) == without_version(*now)) return;
  ++version_;
}

std::shared_ptr<const SeenNodes> NodeViews::seen_by(const std::string& label, const std::string& kept,
                                                    const nlohmann::json& pod_template,
                                                    const std::function<std::vector<kube::Object>()>& list) {
  const nlohmann::json asked = asked_of_nodes(pod_template);
  const std::string key = label + "\n" + kept + "\n" + asked.dump();
  // Noted before the nodes are listed: what changes meanwhile makes this view an old one.
  const std::uint64_t version = version_;
  {
    const std::lock_guard lock(mutex_);
    if (const auto view = views_.find(key); view != views_.end() && view->second.version == version)
      return view->second.nodes;
  }
  // Not under our lock: list() takes the cache's lock, which is held while changes are reported to us.
  auto nodes = read_nodes(label, kept, asked, list());
  const std::lock_guard lock(mutex_);
  if (views_.size() >= kMostViews && !views_.contains(key)) views_.clear();
  View& view = views_[key];
  if (view.version <= version) view = {version, nodes};
  return nodes;
}

}  // namespace bsp::reconcile
