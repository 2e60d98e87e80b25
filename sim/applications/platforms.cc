#include "sim/applications/platforms.h"

#include <format>
#include <limits>

namespace bsp::sim {
namespace {

using namespace calibration;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

Link link_of(double seconds_per_byte) {
  return {.bandwidth = 1 / seconds_per_byte, .latency = 0, .shared = kSharedLinks};
}

Set five_sets_set(std::string name, char letter, int nodes, double speed, std::string router, const Choice& choice) {
  Set set{.name = std::move(name),
          .link = link_of(kByteInside),
          .uplink = link_of(choice.byte_between),
          .router = std::move(router)};
  for (int k = 1; k <= nodes; ++k) set.nodes.push_back({.name = std::format("{}{}", letter, k), .speed = speed});
  return set;
}

Platform calibrated(std::vector<Set> sets, std::vector<Trunk> trunks, const Choice& choice) {
  return {.sets = std::move(sets),
          .trunks = std::move(trunks),
          .mig_seconds = choice.mig,
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
std::vector<Site> sites(const Choice& choice = {}) {
  return {{"Chicon", 10, 4, kSpeedChicon, kClockChicon},
          {"Capricorne", 15, 2, kSpeedCapricorne, kClockCapricorne},
          {"Suno", 15, 8, choice.suno_per_capricorne * kSpeedCapricorne, kClockSuno}};
}

}  // namespace

Platform five_sets(const Choice& choice) {
  const double corisco = refitted(kSpeedC, 4e8, choice.byte_between);
  const double frontal = refitted(kSpeedF, 2e8, choice.byte_between);
  return calibrated(
      {five_sets_set("Labtec", 'L', 20, kSpeedL, "R1", choice),
       five_sets_set("Corisco", 'C', 16, corisco, "R1", choice),
       five_sets_set("Frontal", 'F', 6, frontal, "R2", choice), five_sets_set("ICE", 'I', 112, kSpeedI, "R2", choice),
       five_sets_set("Aquario", 'A', 20, kSpeedA, "R3", choice)},
      {trunk("R1", "R2"), trunk("R2", "R3")}, choice);
}

Platform grid5000(const Choice& choice) {
  std::vector<Set> sets;
  for (const Site& site : sites(choice)) {
    Set set{
        .name = site.name, .link = link_of(kByteInside), .uplink = link_of(choice.byte_between), .router = "RENATER"};
    for (int m = 1; m <= site.machines; ++m)
      for (int c = 0; c < site.cores; ++c)
        set.nodes.push_back({.name = std::format("{}-{}.{}", site.name, m, c), .speed = site.speed});
    sets.push_back(std::move(set));
  }
  Platform platform = calibrated(std::move(sets), {}, choice);
  platform.call.factor = kCallOnGrid5000;
  return platform;
}

Result<std::vector<ProcessorId>> grid5000_mapping(decide::Mapping mapping, std::uint32_t ranks) {
  decide::Platform machines;  // with clock rates as speeds
  std::vector<std::uint32_t> first_core, cores;
  std::uint32_t next = 0;
  for (std::uint32_t j = 0; const Site& site : sites()) {
    machines.sets.push_back({.name = site.name});
    for (int m = 0; m < site.machines; ++m) {
      machines.processors.push_back({.set = {j}, .cpu = site.clock});
      first_core.push_back(next);
      cores.push_back(static_cast<std::uint32_t>(site.cores));
      next += cores.back();
    }
    ++j;
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
