#include "sim/applications/platforms.h"

#include <format>
#include <limits>

#include "sim/applications/calibration.h"

namespace bsp::sim {
namespace {

using namespace calibration;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

Link link_of(double seconds_per_byte) {
  return {.bandwidth = 1 / seconds_per_byte, .latency = 0, .shared = kSharedLinks};
}

Set five_sets_set(std::string name, char letter, int nodes, double speed, std::string router) {
  Set set{.name = std::move(name),
          .link = link_of(kByteInside),
          .uplink = link_of(kByteBetween),
          .router = std::move(router)};
  for (int k = 1; k <= nodes; ++k) set.nodes.push_back({.name = std::format("{}{}", letter, k), .speed = speed});
  return set;
}

Platform calibrated(std::vector<Set> sets, std::vector<Trunk> trunks) {
  return {.sets = std::move(sets),
          .trunks = std::move(trunks),
          .mig_seconds = kMig,
          .move_seconds = kMoveSeconds,
          .barrier = {.per_outsider = kBarrierPerOutsider, .per_trunk = kBarrierPerTrunk},
          .call = {.points = {kCall.begin(), kCall.end()}},
          .delivery = kDelivery,
          .departure = kDeparture};
}

Trunk trunk(std::string from, std::string to) {
  return {std::move(from), std::move(to), {.bandwidth = kUnlimited, .latency = 0, .shared = kSharedLinks}};
}

struct Site {
  std::string name;
  int machines, cores;
  double speed, clock;
};
const std::vector<Site>& sites() {
  static const std::vector<Site> all{{"Chicon", 10, 4, kSpeedChicon, kClockChicon},
                                     {"Capricorne", 15, 2, kSpeedCapricorne, kClockCapricorne},
                                     {"Suno", 15, 8, kSpeedSuno, kClockSuno}};
  return all;
}

}  // namespace

Platform five_sets() {
  return calibrated({five_sets_set("Labtec", 'L', 20, kSpeedL, "R1"), five_sets_set("Corisco", 'C', 16, kSpeedC, "R1"),
                     five_sets_set("Frontal", 'F', 6, kSpeedF, "R2"), five_sets_set("ICE", 'I', 112, kSpeedI, "R2"),
                     five_sets_set("Aquario", 'A', 20, kSpeedA, "R3")},
                    {trunk("R1", "R2"), trunk("R2", "R3")});
}

Platform grid5000() {
  std::vector<Set> sets;
  for (const Site& site : sites()) {
    Set set{.name = site.name, .link = link_of(kByteInside), .uplink = link_of(kByteBetween), .router = "RENATER"};
    for (int m = 1; m <= site.machines; ++m)
      for (int c = 0; c < site.cores; ++c)
        set.nodes.push_back({.name = std::format("{}-{}.{}", site.name, m, c), .speed = site.speed});
    sets.push_back(std::move(set));
  }
  Platform platform = calibrated(std::move(sets), {});
  platform.call.factor = kCallOnGrid5000;
  return platform;
}

Result<std::vector<ProcessorId>> grid5000_mapping(decide::Mapping mapping, std::uint32_t ranks) {
  decide::Platform machines;  // with clock rates as speeds
  std::vector<std::uint32_t> first_core, cores;
  std::uint32_t next = 0;
  for (std::uint32_t j = 0; j < sites().size(); ++j) {
    machines.sets.push_back({.name = sites()[j].name});
    for (int m = 0; m < sites()[j].machines; ++m) {
      machines.processors.push_back({.set = {j}, .cpu = sites()[j].clock});
      first_core.push_back(next);
      cores.push_back(static_cast<std::uint32_t>(sites()[j].cores));
      next += cores.back();
    }
  }
  BSP_TRY(std::vector<ProcessorId> placed, decide::initial_mapping(mapping, ranks, machines));
  std::vector<std::uint32_t> placed_on(machines.processors.size(), 0);
  for (ProcessorId& p : placed) {
    const std::uint32_t machine = p.value;
    p.value = first_core[machine] + placed_on[machine]++ % cores[machine];
  }
  return placed;
}

}  // namespace bsp::sim
