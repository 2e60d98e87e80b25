// Workloads and platforms small enough to compute by hand.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/platform.h"
#include "sim/supersteps.h"
#include "sim/workload.h"

namespace bsp::sim::test {

// Repeats the same few supersteps.
class Script : public Workload {
 public:
  Script(std::vector<Demand> demands, std::uint64_t supersteps, double memory_bytes = 1e6)
      : demands_(std::move(demands)), supersteps_(supersteps), memory_bytes_(memory_bytes) {}
  [[nodiscard]] std::string name() const override { return "script"; }
  [[nodiscard]] std::uint32_t ranks() const override {
    return static_cast<std::uint32_t>(demands_[0].instructions.size());
  }
  [[nodiscard]] std::uint64_t supersteps() const override { return supersteps_; }
  void demand(std::uint64_t t, Demand& out) const override { out = demands_[(t - 1) % demands_.size()]; }
  [[nodiscard]] double memory_bytes(RankId, std::uint64_t) const override { return memory_bytes_; }

 private:
  std::vector<Demand> demands_;
  std::uint64_t supersteps_;
  double memory_bytes_;
};

inline Message message(std::uint32_t from, std::uint32_t to, double bytes) { return {{from}, {to}, bytes}; }

inline std::vector<ProcessorId> on(std::initializer_list<std::uint32_t> processors) {
  std::vector<ProcessorId> out;
  for (const std::uint32_t p : processors) out.push_back({p});
  return out;
}

// Set a: nodes 0, 1 of 10⁹ instructions/s. Set b: nodes 2, 3 of 2·10⁹. Links of 100 MB/s and 1 ms; a's uplink has 50
// MB/s.
inline Platform two_sets() {
  Platform platform;
  for (const auto& [name, speed] : {std::pair{"a", 1e9}, std::pair{"b", 2e9}}) {
    Set set{.name = name, .link = {.bandwidth = 100e6, .latency = 1e-3}};
    for (int i = 0; i < 2; ++i) set.nodes.push_back({.name = std::string(name) + std::to_string(i), .speed = speed});
    platform.sets.push_back(set);
  }
  platform.sets[0].uplink.bandwidth = 50e6;
  return platform;
}

// Simulates one superstep; reports a failure.
inline Simulated simulated(const Platform& platform, const Demand& demand, const std::vector<ProcessorId>& mapping) {
  const auto nodes = decision_platform(platform);
  if (!nodes) {
    ADD_FAILURE() << nodes.error().message;
    return {};
  }
  auto supersteps = Supersteps::start(platform, *nodes, true);
  if (!supersteps) {
    ADD_FAILURE() << supersteps.error().message;
    return {};
  }
  const auto result = supersteps->run(demand, mapping);
  if (!result) {
    ADD_FAILURE() << result.error().message;
    return {};
  }
  return **result;
}

}  // namespace bsp::sim::test
