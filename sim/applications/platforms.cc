#include "sim/applications/platforms.h"

#include <format>
#include <limits>

#include "sim/grid5000/platform.h"

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

}  // namespace

Platform five_sets(const Choice& choice) {
  return calibrated(
      {five_sets_set("Labtec", 'L', 20, kSpeedL, "R1", false), five_sets_set("Corisco", 'C', 16, kSpeedC, "R1", true),
       five_sets_set("Frontal", 'F', 6, kSpeedF, "R2", true), five_sets_set("ICE", 'I', 112, kSpeedI, "R2", false),
       five_sets_set("Aquario", 'A', 20, kSpeedA, "R3", false)},
      {trunk("R1", "R2"), trunk("R2", "R3")}, choice);
}

Platform grid5000_platform(const Choice& choice) {
  std::vector<Set> sets;
  for (const grid5000::Site& site : grid5000::kSiteOf) {
    Set set{.name = std::string(site.name), .link = {.bandwidth = grid5000::kBandwidth}, .router = "RENATER"};
    for (std::uint32_t m = 1; m <= site.machines; ++m)
      set.nodes.push_back({.name = std::format("{}-{}", site.name, m), .speed = site.speed});
    sets.push_back(std::move(set));
  }
  Platform platform = calibrated(std::move(sets), {}, choice);
  platform.move_repeats = false;
  platform.delivery = Delivery::kAtOnce;
  platform.forwarding = Forwarding::kThrough;
  platform.barrier = {.constant = 6 * grid5000::kLatency};  // a message and the barrier inside a site
  platform.call.factor = kCallOnGrid5000;
  return platform;
}

std::vector<ProcessorId> grid5000_mapping(decide::Mapping mapping) {
  std::vector<ProcessorId> placed;
  for (const grid5000::Machine m : grid5000::deployment(mapping).on) {
    std::uint32_t before = 0;
    for (std::uint32_t s = 0; s < m.site; ++s) before += grid5000::kSiteOf[s].machines;
    placed.push_back({before + m.number});
  }
  return placed;
}

}  // namespace bsp::sim
