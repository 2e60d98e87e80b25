// A job that is to start and can't yet: which Sets it may use, and what it waits for.
#include <algorithm>
#include <format>
#include <string_view>

#include "base/core/counted.h"
#include "operator/decide/model/mapping.h"
#include "operator/reconcile/kernel/job_kernel.h"
#include "operator/reconcile/kernel/start/start_platform.h"
#include "operator/reconcile/kernel/status.h"

namespace bsp::reconcile {

using crds::JobPhase;

// A pool that is scaled to zero, or whose nodes are reclaimed, looks like a name that is wrong. A job whose start the scheduler
// makes has pods that wait for such a pool's first node, which an autoscaler then adds.
void JobKernel::no_such_set(const std::string& name) {
  const std::string none = has_no_node(name);
  if (!o.capacity_may_come) return enter(JobPhase::kFailed, kNoSuchSet, none);
  wait_for_capacity(
      kNoSuchSet,
      none +
          "; the job starts once one does: add or label nodes, or create the job again with Sets that have nodes, or "
          "with another spec.scheduling.gang: its pods then wait for nodes that an autoscaler adds");
}

std::string JobKernel::has_no_node(const std::string& set) const {
  return std::format("spec.sets.names: no node belongs to Set {} (label {})", set, o.job.spec.sets.label);
}

// The ranks go where there is room without other BSPJobs, or else where they may go at all: an end, a preemption or an autoscaler
// makes room there, of which only the scheduler knows.
Result<std::vector<ProcessorId>> JobKernel::map_beyond_room(std::vector<observe::NodeFacts> nodes) const {
  const auto map = [&] {
    return decide::initial_mapping(o.job.spec.initial_mapping, o.job.spec.ranks, platform_at_start(o, nodes));
  };
  if (auto mapping = map()) return mapping;
  for (observe::NodeFacts& node : nodes) node.slots = 0;  // no limit
  if (auto mapping = map()) return mapping;
  for (observe::NodeFacts& node : nodes) node.cordoned = false;
  return map();
}

// Beside jobs that wait for the other Sets, as if these were full.
Result<std::vector<ProcessorId>> JobKernel::map_to(const std::vector<std::string>& sets) const {
  std::vector<observe::NodeFacts> nodes = o.nodes;
  for (observe::NodeFacts& node : nodes) node.cordoned |= !std::ranges::contains(sets, node.set);
  return decide::initial_mapping(o.job.spec.initial_mapping, o.job.spec.ranks, platform_at_start(o, nodes));
}

// Create no pod before all the job's ranks have slots: two jobs that each held some of the slots would wait for each other.
void JobKernel::wait_for_capacity(const char* reason, const std::string& why) {
  if (status().message == why) return;
  const bool waits = reason == std::string_view(kWaitingForSlots);
  // How many slots are free and who holds the others changes constantly, so only the start of the wait is an event.
  const bool counts = waits || reason == std::string_view(kNoRoom);
  if (!counts || status().reason != reason) notices.events.push_back({waits ? "Normal" : "Warning", reason, why});
  if (waits || is_on(status(), kWaitingForSlots))
    turn_condition(o, status(), kWaitingForSlots, waits, waits ? "HeldByOthers" : reason, why);
  status().reason = reason;
  status().message = why;
  stores = true;
}

std::string JobKernel::waits_for_slots(const std::vector<std::string>& sets, bool mapped) const {
  std::string names;
  std::uint64_t free = 0, all = 0;
  for (const std::string& set : sets) {
    names += (names.empty() ? "" : ", ") + set;
    if (const auto slots = o.queue.all.find(set); slots != o.queue.all.end()) all += slots->second;
  }
  if (mapped && !o.queue.ahead.empty()) {
    const std::string& name_space = o.job.metadata.name_space;
    const bool known = o.queue.ahead.starts_with(name_space + "/");
    return std::format("waits for {} in {}: {} starts first (spec.runPolicy.priority, then creation time)",
                       counted(o.job.spec.ranks, "slot"), names,
                       known ? o.queue.ahead.substr(name_space.size() + 1) : "a job of another namespace");
  }
  // It couldn't start even if all others ended, so no job has to wait behind it.
  if (mapped || all < o.job.spec.ranks) return "";
  for (const auto& node : o.nodes)
    if (std::ranges::contains(sets, node.set) && !node.cordoned && node.slots > node.taken)
      free += node.slots - node.taken;
  const std::string held = held_by(o.queue.holders, o.job.metadata.name_space);
  return std::format("waits for {} in {}{} ({} free)", counted(o.job.spec.ranks, "slot"), names,
                     held.empty() ? "" : ", " + held, free);
}

}  // namespace bsp::reconcile
