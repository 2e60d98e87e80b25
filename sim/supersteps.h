// Simulates one superstep: from the application's demand and the mapping to what would be measured.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/core/error.h"
#include "operator/decide/model/model.h"
#include "sim/child.h"
#include "sim/inside.h"
#include "sim/platform.h"
#include "sim/workload.h"

namespace bsp::sim {

// A superstep without its barrier.
struct Simulated {
  double seconds = 0;                     // until the last rank has computed and the last message has arrived
  std::vector<double> compute_seconds{};  // CT(i)
  decide::SparseGrid recv_bytes{};        // B(i,j), j the Set of the sender
  decide::SparseGrid recv_seconds{};      // BT(i,j): how long messages from Set j to rank i were in transit
};

class Supersteps {
 public:
  // `platform` and `nodes`, its decision_platform(), must outlive this object.
  static Result<Supersteps> start(const Platform& platform, const decide::Platform& nodes, bool memoise);

  // The result is valid until the next call. kFailed if SimGrid fails.
  Result<const Simulated*> run(const Demand& demand, std::span<const ProcessorId> mapping);

  [[nodiscard]] std::uint64_t simulated() const { return simulated_; }

 private:
  struct Known {
    Demand demand;
    std::vector<ProcessorId> mapping;
    Simulated result;
  };
  static constexpr std::size_t kMaxKnown = 256;  // an irregular application has thousands that never recur

  Supersteps(const decide::Platform& nodes, bool memoise, Child child)
      : nodes_(&nodes), memoise_(memoise), child_(std::move(child)) {}
  Result<Simulated> simulate(const Demand& demand, std::span<const ProcessorId> mapping);

  const decide::Platform* nodes_;
  bool memoise_;
  Child child_;
  std::unordered_multimap<std::size_t, Known> known_;  // by hash
  Simulated last_;                                     // without memoisation
  std::uint64_t simulated_ = 0;
};

}  // namespace bsp::sim
