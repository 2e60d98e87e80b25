#include "sim/platform.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <set>

#include "crds/nearest.h"
#include "sim/routes.h"

namespace bsp::sim {
namespace {

std::unexpected<Error> wrong(std::string what) { return fail(ErrorCode::kInvalid, "platform: " + std::move(what)); }

Result<void> validate_link(const Link& link, std::string_view whose) {
  if (!(link.bandwidth > 0))
    return wrong(std::format("{}: the bandwidth must be above 0 bytes/s, is {}", whose, link.bandwidth));
  if (!(link.latency >= 0 && std::isfinite(link.latency)))
    return wrong(std::format("{}: the latency must be at least 0 s, is {}", whose, link.latency));
  return {};
}

Result<void> validate_node(const Node& node) {
  if (!(node.speed > 0 && std::isfinite(node.speed)))
    return wrong(std::format("node {}: the speed must be above 0 instructions/s, is {}", node.name, node.speed));
  if (!(node.load >= 0 && node.load < 1))
    return wrong(std::format("node {}: load must be at least 0 and below 1, is {}", node.name, node.load));
  return {};
}

Result<void> validate_costs_of(const Platform& platform) {
  for (const auto& [name, value] :
       {std::pair{"mig", platform.mig_seconds}, std::pair{"barrier", platform.barrier.constant},
        std::pair{"barrier_per_outsider", platform.barrier.per_outsider},
        std::pair{"barrier per trunk", platform.barrier.per_trunk}, std::pair{"image_copies", platform.image_copies},
        std::pair{"the call's factor", platform.call.factor}})
    if (!(value >= 0 && std::isfinite(value))) return wrong(std::format("{} must be at least 0, is {}", name, value));
  std::uint32_t before = 0;
  for (const CallCost::Point& point : platform.call.points) {
    if (point.ranks <= before || !(point.seconds >= 0 && std::isfinite(point.seconds)))
      return wrong("call: the points need increasing numbers of processes above 0 and seconds of at least 0");
    before = point.ranks;
  }
  return {};
}

}  // namespace

double CallCost::seconds(std::uint32_t ranks) const {
  if (points.empty()) return 0;
  const Point* below = nullptr;
  for (const Point& point : points) {
    if (point.ranks >= ranks) {
      const double at = below == nullptr ? 0 : below->seconds;
      const double from = below == nullptr ? 0 : below->ranks;
      return factor * (at + (point.seconds - at) * (ranks - from) / (point.ranks - from));
    }
    below = &point;
  }
  return factor * below->seconds;
}

Result<void> validate(const Platform& platform) {
  if (platform.sets.empty()) return wrong("it has no Sets");
  std::set<std::string_view> set_names, node_names;
  for (const Set& set : platform.sets) {
    if (!set_names.insert(set.name).second) return wrong(std::format("duplicate Set {}", set.name));
    if (set.nodes.empty()) return wrong(std::format("Set {} has no nodes", set.name));
    for (const Node& node : set.nodes) {
      if (!node_names.insert(node.name).second) return wrong(std::format("duplicate node {}", node.name));
      BSP_CHECK_OK(validate_node(node));
    }
    BSP_CHECK_OK(validate_link(set.link, std::format("Set {}, link of a node", set.name)));
    BSP_CHECK_OK(validate_link(set.uplink, std::format("Set {}, uplink", set.name)));
  }
  for (const Trunk& trunk : platform.trunks)
    BSP_CHECK_OK(validate_link(trunk.link, std::format("trunk {}-{}", trunk.from, trunk.to)));
  return validate_costs_of(platform);
}

Result<Platform> with_sets(const Platform& platform, const std::vector<std::string>& names) {
  std::vector<std::string> wanted = names;
  std::vector<std::string_view> known;
  for (const Set& set : platform.sets) known.push_back(set.name);
  if (wanted.empty()) {
    wanted.assign(known.begin(), known.end());
    std::ranges::sort(wanted);
  }
  Platform out = platform;
  out.sets.clear();
  std::vector<std::size_t> was;
  for (const std::string& name : wanted) {
    const auto found = std::ranges::find(platform.sets, name, &Set::name);
    if (found == platform.sets.end())
      return fail(ErrorCode::kInvalid,
                  std::format("spec.sets.names: the platform has no Set {}{}", name, crds::suggestion(name, known)));
    out.sets.push_back(*found);
    was.push_back(static_cast<std::size_t>(found - platform.sets.begin()));
  }
  if (!platform.file.empty()) {
    out.file_T = decide::Grid<double>(was.size(), was.size());
    for (std::size_t a = 0; a < was.size(); ++a)
      for (std::size_t b = 0; b < was.size(); ++b) out.file_T[a, b] = platform.file_T[was[a], was[b]];
  }
  BSP_CHECK_OK(validate(out));
  return out;
}

Result<decide::Platform> decision_platform(const Platform& platform) {
  BSP_CHECK_OK(validate(platform));
  const std::size_t sets = platform.sets.size();
  decide::Platform out;
  for (std::uint32_t j = 0; j < sets; ++j) {
    out.sets.push_back({.name = platform.sets[j].name});
    for (const Node& node : platform.sets[j].nodes)
      out.processors.push_back({.name = node.name,
                                .set = {j},
                                .cpu = node.speed,
                                .cpu_origin = decide::Origin::kMeasured,
                                .load = node.load,
                                .slots = node.slots,
                                .price = node.price});
  }
  out.T = platform.file_T;
  if (platform.file.empty()) {
    BSP_TRY(const Routes routes, find_routes(platform));
    out.T = decide::Grid<double>(sets, sets);
    for (std::uint32_t a = 0; a < sets; ++a)
      for (std::uint32_t b = 0; b < sets; ++b) out.T[a, b] = routes.seconds_per_byte(platform, a, b);
  }
  out.T_origin = decide::Grid<decide::Origin>(sets, sets, decide::Origin::kMeasured);
  out.Mig = decide::Grid<double>(1, sets, platform.mig_seconds);
  out.Mig_origin = decide::Grid<decide::Origin>(1, sets, decide::Origin::kMeasured);
  return out;
}

}  // namespace bsp::sim
