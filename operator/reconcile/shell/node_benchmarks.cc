#include "operator/reconcile/shell/node_benchmarks.h"

#include <algorithm>

#include "operator/observe/benchmarks.h"

namespace bsp::reconcile {

void NodeBenchmarks::share(Observed& o) {
  const std::lock_guard lock(mutex_);
  if (of_namespace_.size() > kMostNamespaces) of_namespace_.clear();
  auto& machines = of_namespace_[o.job.metadata.name_space];
  if (machines.size() > o.nodes.size() + kMostGone) machines.clear();
  std::map<std::string_view, observe::NodeFacts*> nodes;
  for (observe::NodeFacts& node : o.nodes) nodes[node.name] = &node;
  for (const auto& [seat, s] : o.sidecars) {
    const PodFacts* pod = o.pod(seat);
    if (!pod || !s.status) continue;
    const auto node = nodes.find(pod->node);
    if (node == nodes.end()) continue;
    if (s.status->cpu_features != 0) {
      Machine& machine = machines[node->second->name];
      if (machine.uid != node->second->uid) machine = {.uid = node->second->uid, .cpu = {}};
      machine.features = CpuFeatures(s.status->cpu_features);
    }
    if (!s.status->cpu || !wire::is_plausible(*s.status->cpu)) continue;
    const wire::CpuBenchmark& cpu = *s.status->cpu;
    Machine& machine = machines[node->second->name];
    if (machine.speed == 0 && machine.uid == node->second->uid) {
      machine.cpu = cpu;
    } else if (machine.uid != node->second->uid || machine.cpu.model != cpu.model) {
      machine = {.uid = node->second->uid, .cpu = cpu, .features = CpuFeatures(s.status->cpu_features)};
    } else {
      machine.cpu.integer_ns = std::min(machine.cpu.integer_ns, cpu.integer_ns);
      machine.cpu.floating_ns = std::min(machine.cpu.floating_ns, cpu.floating_ns);
      machine.cpu.memory_ns = std::min(machine.cpu.memory_ns, cpu.memory_ns);
    }
    machine.speed = observe::units_per_second(machine.cpu);
  }
  for (observe::NodeFacts& node : o.nodes)
    if (const auto known = machines.find(node.name); known != machines.end() && known->second.uid == node.uid) {
      if (known->second.speed > 0) node.benchmark = known->second.speed;
      node.cpu_features = known->second.features;
    }
}

}  // namespace bsp::reconcile
