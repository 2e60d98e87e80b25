#include "sim/routes.h"

#include <algorithm>
#include <deque>
#include <format>
#include <map>
#include <optional>

namespace bsp::sim {
namespace {

struct Step {
  std::string before;  // the previous router on the route
  Hop hop;
};

// Breadth-first search from one router to all reachable ones.
std::map<std::string, std::optional<Step>> steps_from(const Platform& platform, const std::string& router) {
  std::map<std::string, std::optional<Step>> reached{{router, std::nullopt}};
  for (std::deque<std::string> next{router}; !next.empty(); next.pop_front())
    for (std::uint32_t t = 0; t < platform.trunks.size(); ++t) {
      const Trunk& trunk = platform.trunks[t];
      const bool forwards = trunk.from == next.front();
      if (!forwards && trunk.to != next.front()) continue;
      const std::string& other = forwards ? trunk.to : trunk.from;
      if (reached.emplace(other, Step{next.front(), {t, forwards}}).second) next.push_back(other);
    }
  return reached;
}

}  // namespace

Result<Routes> find_routes(const Platform& platform) {
  const std::size_t sets = platform.sets.size();
  Routes routes{decide::Grid<std::vector<Hop>>(sets, sets)};
  for (std::size_t a = 0; a < sets; ++a) {
    const auto reached = steps_from(platform, platform.sets[a].router);
    for (std::size_t b = 0; b < sets; ++b) {
      if (a == b) continue;
      std::vector<Hop>& way = routes.trunks[a, b];
      for (std::string at = platform.sets[b].router;;) {
        const auto step = reached.find(at);
        if (step == reached.end())
          return fail(
              ErrorCode::kInvalid,
              std::format("platform: no route from Set {} to Set {}: add a trunk between the routers \"{}\" and \"{}\"",
                          platform.sets[a].name, platform.sets[b].name, platform.sets[a].router,
                          platform.sets[b].router));
        if (!step->second) break;
        way.insert(way.begin(), step->second->hop);
        at = step->second->before;
      }
    }
  }
  return routes;
}

double Routes::seconds_per_byte(const Platform& platform, std::uint32_t a, std::uint32_t b) const {
  const Set &from = platform.sets[a], &to = platform.sets[b];
  if (a == b) return 1 / to.link.bandwidth;
  double between = std::min(from.uplink.bandwidth, to.uplink.bandwidth);
  for (const Hop& hop : trunks[a, b]) between = std::min(between, platform.trunks[hop.trunk].link.bandwidth);
  if (platform.forwarding == Forwarding::kStored) return 1 / between + 1 / to.link.bandwidth;
  return 1 / std::min({between, from.link.bandwidth, to.link.bandwidth});
}

}  // namespace bsp::sim
