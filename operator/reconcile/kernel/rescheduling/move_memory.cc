#include "operator/reconcile/kernel/rescheduling/move_memory.h"

#include <algorithm>
#include <format>
#include <map>
#include <nlohmann/json.hpp>

#include "base/core/first_few.h"
#include "base/json/fields.h"
#include "operator/reconcile/capacity/resources.h"
#include "operator/reconcile/kernel/seats/free_seats.h"

namespace bsp::reconcile {
namespace {

std::string mebibytes(std::int64_t bytes) { return std::format("{} MiB", bytes >> 20); }

}  // namespace

MoveCapacity::MoveCapacity(const Observed& o)
    : o_(o), asked_(requests_of_rank(o.job.spec.pod_template, o.job.spec.sidecar.resources).memory) {
  for (const auto& [name, pod] : o.pods) held_[pod.node] += static_cast<std::uint32_t>(pod.apps.size());
  for (const auto& [node, seats] : free_seats(o)) held_[node] -= static_cast<std::uint32_t>(seats.size());
}

MoveMemory MoveCapacity::of(const crds::RankPlace& rank) const {
  const auto held = static_cast<std::int64_t>(std::min<std::uint64_t>(rank.memory_bytes, kMostAsked));
  return {.process = std::max(asked_, held), .checkpoint = held};
}

MoveMemory MoveCapacity::of_largest(const std::map<std::uint32_t, std::string>& without) const {
  MoveMemory most{.process = asked_};
  for (const crds::RankPlace& rank : o_.job.status.ranks)
    if (const MoveMemory move = of(rank); move.both() > most.both() && !without.contains(rank.rank.value)) most = move;
  return most;
}

std::map<std::uint32_t, std::string> MoveCapacity::too_large() const {
  const auto& epoch = o_.job.status.epoch;
  struct Room {
    const observe::NodeFacts* node = nullptr;
    std::int64_t memory = 0;
  };
  Room most, second;
  for (const observe::NodeFacts& node : o_.nodes) {
    if (free_slots(node) == 0 || (epoch && !std::ranges::contains(epoch->sets, node.set))) continue;
    Room room{&node, free_memory(node)};
    if (!most.node || room.memory > most.memory) std::swap(room, most);
    if (room.node && (!second.node || room.memory > second.memory)) second = room;
  }
  std::map<std::uint32_t, std::string> why;
  for (const crds::RankPlace& rank : o_.job.status.ranks) {
    const Room& room = most.node && most.node->name == rank.node ? second : most;
    if (const MoveMemory move = of(rank); room.node && move.both() > room.memory)
      why[rank.rank.value] = lack(*room.node, move);
  }
  return why;
}

MoveMemory MoveCapacity::of_largest_that_fits(const std::map<std::uint32_t, std::string>& too_large) const {
  return too_large.size() == o_.job.status.ranks.size() ? of_largest() : of_largest(too_large);
}

std::uint32_t MoveCapacity::free_slots(const observe::NodeFacts& node) const {
  const auto here = held_.find(node.name);
  const std::uint32_t held = node.taken + (here == held_.end() ? 0 : here->second);
  return node.cordoned || held >= node.slots ? 0 : node.slots - held;
}

std::int64_t MoveCapacity::free_memory(const observe::NodeFacts& node) const {
  if (!node.memory) return INT64_MAX;
  const auto here = held_.find(node.name);
  return *node.memory - (here == held_.end() ? 0 : here->second * asked_);
}

std::string MoveCapacity::lack(const observe::NodeFacts& node, const MoveMemory& move) const {
  return std::format(
      "node {} has a free slot, but not the memory that a move takes while it lasts: {} for the rank and {} for its "
      "checkpoint, and {} are left",
      node.name, mebibytes(move.process), mebibytes(move.checkpoint),
      mebibytes(std::max<std::int64_t>(free_memory(node), 0)));
}

std::string MoveCapacity::lack() const {
  const std::map<std::uint32_t, std::string> stay = too_large();
  const MoveMemory move = of_largest_that_fits(stay);
  std::map<std::string, const observe::NodeFacts*> short_of;  // by Set: a node with a slot; null: one has both
  for (const observe::NodeFacts& node : o_.nodes) {
    if (free_slots(node) == 0) continue;
    const bool fits = free_memory(node) >= move.both();
    const auto [at, first] = short_of.emplace(node.set, fits ? nullptr : &node);
    if (!first && fits) at->second = nullptr;
  }
  for (const auto& [set, node] : short_of)
    if (node) return std::format("no rank can move into Set {}: {}", set, lack(*node, move));
  if (stay.empty()) return "";
  FirstFew ranks;
  for (const auto& [rank, why] : stay) ranks.add(std::to_string(rank));
  return std::format("{} can't move: {}", ranks.text("rank"), stay.begin()->second);
}

std::map<std::uint32_t, std::string> keep_memory(std::vector<observe::NodeFacts>& nodes, const Observed& o) {
  const MoveCapacity capacity(o);
  std::map<std::uint32_t, std::string> too_large = capacity.too_large();
  const std::int64_t each = capacity.of_largest_that_fits(too_large).both();
  if (each <= 0) return too_large;
  for (observe::NodeFacts& node : nodes) {
    const std::int64_t fit = std::max<std::int64_t>(capacity.free_memory(node), 0) / each;
    if (const std::uint32_t free = capacity.free_slots(node); fit < free)
      node.taken += free - static_cast<std::uint32_t>(fit);
  }
  return too_large;
}

}  // namespace bsp::reconcile
