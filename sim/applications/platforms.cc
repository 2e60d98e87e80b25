#include "sim/applications/platforms.h"

#include <format>
#include <limits>

namespace bsp::sim {
namespace {

using namespace calibration;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

Link link_of(double seconds_per_byte, bool shared = false) {
  return {.bandwidth = 1 / seconds_per_byte, .latency = 0, .shared = shared};
}

Set five_sets_set(std::string name, char letter, int nodes, double speed, std::string router, bool narrow) {
  Set set{.name = std::move(name),
          .link = link_of(letter == 'L' ? kByteInsideL : kByteInside),
          .uplink = link_of(kByteOfLine, narrow),
          .router = std::move(router)};
  for (int k = 1; k <= nodes; ++k) set.nodes.push_back({.name = std::format("{}{}", letter, k), .speed = speed});
  return set;
}

Platform calibrated(std::vector<Set> sets, std::vector<Trunk> trunks, const Choice& choice) {
  return {.sets = std::move(sets),
          .trunks = std::move(trunks),
          .mig_seconds = choice.mig,
          .image_copies = choice.image_copies,
          .move_repeats = kMoveRepeats,
          .barrier = {.per_outsider = kBarrierPerOutsider, .per_trunk = kBarrierPerTrunk},
          .call = {.points = {kCall.begin(), kCall.end()}},
          .delivery = kDelivery,
          .departure = kDeparture,
          .forwarding = kForwarding};
}

Trunk trunk(std::string from, std::string to) {
  return {std::move(from), std::move(to), {.bandwidth = kUnlimited, .latency = 0, .shared = false}};
}

struct Site {
  std::string name;
  int machines, cores;
  double speed, power;
};
std::vector<Site> sites(const Choice& choice = {}) {
  return {{"Chicon", 10, 4, kSpeedChicon, kPowerChicon},
          {"Capricorne", 15, 2, choice.capricorne_per_chicon * kSpeedChicon, kPowerCapricorne},
          {"Suno", 15, 8, kSunoPerChicon * kSpeedChicon, kPowerSuno}};
}

}  // namespace

Platform five_sets(const Choice& choice) {
  return calibrated(
      {five_sets_set("Labtec", 'L', 20, kSpeedL, "R1", false), five_sets_set("Corisco", 'C', 16, kSpeedC, "R1", true),
       five_sets_set("Frontal", 'F', 6, kSpeedF, "R2", true), five_sets_set("ICE", 'I', 112, kSpeedI, "R2", false),
       five_sets_set("Aquario", 'A', 20, kSpeedA, "R3", false)},
      {trunk("R1", "R2"), trunk("R2", "R3")}, choice);
}

Platform grid5000(const Choice& choice) {
  std::vector<Set> sets;
  for (const Site& site : sites(choice)) {
    Set set{.name = site.name, .link = link_of(kByteInside), .uplink = link_of(kByteOfLine), .router = "RENATER"};
    for (int m = 1; m <= site.machines; ++m)
      for (int c = 0; c < site.cores; ++c)
        set.nodes.push_back({.name = std::format("{}-{}.{}", site.name, m, c), .speed = site.speed});
    sets.push_back(std::move(set));
  }
  Platform platform = calibrated(std::move(sets), {}, choice);
  platform.move_repeats = kMoveRepeatsOnGrid5000;
  platform.call.factor = kCallOnGrid5000;
  return platform;
}

Result<std::vector<ProcessorId>> grid5000_mapping(decide::Mapping mapping, std::uint32_t ranks) {
  decide::Platform machines;  // with their whole power as speed
  std::vector<std::uint32_t> first_core;
  std::uint32_t next = 0;
  for (std::uint32_t j = 0; const Site& site : sites()) {
    machines.sets.push_back({.name = site.name});
    for (int m = 0; m < site.machines; ++m) {
      machines.processors.push_back({.set = {j}, .cpu = site.power});
      first_core.push_back(next);
      next += static_cast<std::uint32_t>(site.cores);
    }
    ++j;
  }
  BSP_TRY(std::vector<ProcessorId> placed, decide::initial_mapping(mapping, ranks, machines));
  for (ProcessorId& p : placed) p.value = first_core[p.value];
  return placed;
}

}  // namespace bsp::sim
