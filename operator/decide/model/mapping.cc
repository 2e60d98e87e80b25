#include "operator/decide/model/mapping.h"

#include <algorithm>
#include <format>
#include <numeric>
#include <queue>

#include "base/core/counted.h"
#include "operator/decide/model/columns.h"

namespace bsp::decide {
namespace {

// How many ranks each processor can take. A processor without a limit takes as many as there are.
std::vector<std::uint32_t> free_slots_of(const Platform& platform, std::uint32_t ranks) {
  std::vector<std::uint32_t> free;
  for (const Processor& p : platform.processors) {
    const bool cordoned = p.cordoned || platform.sets[p.set.value].cordoned;
    free.push_back(cordoned ? 0 : std::min(ranks, free_slots(p, 0)));
  }
  return free;
}

Result<void> enough_slots(const std::vector<std::uint32_t>& free, std::uint32_t ranks) {
  const std::uint64_t slots = std::accumulate(free.begin(), free.end(), std::uint64_t{0});
  if (slots >= ranks) return {};
  const std::string needed = std::format("{} need{} {}, but the Sets have {} free: ", counted(ranks, "rank"),
                                         ranks == 1 ? "s" : "", counted(ranks, "slot"), slots);
  if (slots == 0)
    return fail(ErrorCode::kNoSpace,
                needed +
                    "add nodes that fit a rank to the pools, or let the ranks ask for less "
                    "(requests, affinity, nodeSelector of spec.template) and tolerate more (tolerations)");
  return fail(ErrorCode::kNoSpace, needed + std::format("add {} to the pools, or create the job with {}",
                                                        counted(ranks - slots, "slot"), counted(slots, "rank")));
}

std::vector<ProcessorId> by_index(const Platform& platform) {
  std::vector<ProcessorId> order;
  for (std::uint32_t p = 0; p < platform.processors.size(); ++p) order.push_back(ProcessorId{p});
  return order;
}

std::vector<ProcessorId> by_set(const Platform& platform) {
  std::vector<ProcessorId> order = by_index(platform);
  std::ranges::stable_sort(order, {}, [&](ProcessorId p) { return platform.processor(p).set; });
  return order;
}

std::vector<ProcessorId> by_cpu(const Platform& platform, bool fastest_first) {
  std::vector<ProcessorId> order = by_index(platform);
  std::ranges::stable_sort(
      order, {}, [&](ProcessorId p) { return fastest_first ? -platform.processor(p).cpu : platform.processor(p).cpu; });
  return order;
}

// The first processor of each Set in turn, then the second of each, …
std::vector<ProcessorId> across_sets(const Platform& platform) {
  std::vector<ProcessorId> order = by_set(platform);
  std::vector<std::size_t> seen(platform.sets.size(), 0), turn(platform.processors.size());
  for (ProcessorId p : order) turn[p.value] = seen[platform.processor(p).set.value]++;
  std::ranges::stable_sort(order, {}, [&](ProcessorId p) { return turn[p.value]; });
  return order;
}

// One rank to each processor of the order that has a free slot, again and again.
std::vector<ProcessorId> cyclic(const std::vector<ProcessorId>& order, std::vector<std::uint32_t> free,
                                std::uint32_t ranks) {
  std::vector<ProcessorId> placed;
  while (placed.size() < ranks) {
    for (ProcessorId p : order) {
      if (placed.size() == ranks || free[p.value] == 0) continue;
      --free[p.value];
      placed.push_back(p);
    }
  }
  return placed;
}

// Every slot of a processor, then the next processor; Set by Set.
std::vector<ProcessorId> contiguous(const Platform& platform, const std::vector<std::uint32_t>& free,
                                    std::uint32_t ranks) {
  std::vector<ProcessorId> slots;  // one entry for each slot, in the order in which they fill up
  std::vector<std::uint32_t> times(free.size(), 0);
  for (ProcessorId p : by_set(platform)) {
    const bool unlimited = platform.processor(p).slots == 0;
    times[p.value] = unlimited ? std::min(free[p.value], 1u) : free[p.value];
    slots.insert(slots.end(), times[p.value], p);
  }
  std::vector<ProcessorId> placed;
  std::vector<std::uint32_t> left = free;
  while (placed.size() < ranks) {  // wraps around where processors have no limit
    for (ProcessorId p : slots) {
      if (placed.size() == ranks || left[p.value] == 0) continue;
      --left[p.value];
      placed.push_back(p);
    }
  }
  return placed;
}

std::vector<ProcessorId> by_share_of_cpu(const Platform& platform, std::vector<std::uint32_t> free,
                                         std::uint32_t ranks) {
  struct Offer {
    double share;  // cpu / (ranks already there + 1)
    std::uint32_t processor, there;
    bool operator<(const Offer& o) const { return share != o.share ? share < o.share : processor > o.processor; }
  };
  std::priority_queue<Offer> offers;
  for (std::uint32_t p = 0; p < free.size(); ++p)
    if (free[p] > 0) offers.push({platform.processors[p].cpu, p, 0});
  std::vector<ProcessorId> placed;
  while (placed.size() < ranks) {
    const Offer best = offers.top();
    offers.pop();
    placed.push_back(ProcessorId{best.processor});
    if (--free[best.processor] == 0) continue;
    const std::uint32_t there = best.there + 1;
    offers.push({platform.processors[best.processor].cpu / (there + 1), best.processor, there});
  }
  return placed;
}

}  // namespace

Result<Mapping> mapping_named(std::string_view name) {
  if (const auto mapping = enum_named<Mapping>(name)) return *mapping;
  return fail(ErrorCode::kInvalid, std::format("unknown initial mapping '{}': use one of Contiguous, "
                                               "Ascending, Descending, CPU, RoundRobin",
                                               name));
}

Result<std::vector<ProcessorId>> initial_mapping(Mapping mapping, std::uint32_t ranks, const Platform& platform) {
  const std::vector<std::uint32_t> free = free_slots_of(platform, ranks);
  BSP_CHECK_OK(enough_slots(free, ranks));
  switch (mapping) {
    case Mapping::kContiguous:
      return contiguous(platform, free, ranks);
    case Mapping::kAscending:
      return cyclic(by_cpu(platform, false), free, ranks);
    case Mapping::kDescending:
      return cyclic(by_cpu(platform, true), free, ranks);
    case Mapping::kCpu:
      return by_share_of_cpu(platform, free, ranks);
    case Mapping::kRoundRobin:
      return cyclic(across_sets(platform), free, ranks);
  }
  check(false, "every initial mapping is made");
  return {};
}

}  // namespace bsp::decide
