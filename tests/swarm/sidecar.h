// A pod's sidecar in a simulated world. Real are what decides: Epochs with its Followed, Fence with its Freshness, and the gates on
// a ring for each seat. Transfers and images are those of tests/simulated_cluster/pod.h, as are the programs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sidecar/agent/epochs.h"
#include "sidecar/agent/fence.h"
#include "sidecar/agent/gate.h"
#include "tests/simulated_cluster/pod.h"

namespace bsp::simulation {

class Sidecar {
 public:
  // What the next sidecar of the pod finds.
  struct Saved {
    bool any = false;
    std::vector<wire::EpochPlan> plans;
    std::vector<std::optional<std::uint64_t>> opened;
    std::optional<std::uint64_t> latest;
    std::optional<net::SteadyTime> fresh;
  };
  struct Hooks {
    std::function<bool()> computes;
    std::function<void(const std::string& why)> end_program;
    std::function<void(net::SteadyTime)> tell_init;
  };

  // `seats`: their rings are in `rings`, which outlive it.
  Sidecar(net::Transport& network, sidecar::Config config, std::vector<std::unique_ptr<bsp_ring>>& rings, Saved& saved,
          Hooks hooks);

  // A verb of the operator for that seat.
  simulated::Answer answer(simulated::Pod& seat, std::string_view verb, const nlohmann::json& fields,
                           const std::shared_ptr<const wire::EpochPlan>& plan);
  nlohmann::json alive(const nlohmann::json& fields);
  void operator_spoke() { fence_->operator_spoke(); }
  // Timers, and what the program has done to its ring.
  void run_due(std::vector<simulated::Pod>& seats);

  bool disk_full = false;
  bool heeds_tokens = true;  // as older ones don't

 private:
  Result<void> save();
  void show(simulated::Pod& seat);
  Result<simulated::Answer> open(simulated::Pod& seat, const nlohmann::json& fields);
  Result<simulated::Answer> set_gate(simulated::Pod& seat, std::string_view verb, const nlohmann::json& fields);

  const sidecar::Config config_;
  net::Loop loop_;
  std::vector<std::unique_ptr<bsp_ring>>& rings_;
  Saved& saved_;
  bool is_saved_ = true;
  sidecar::Epochs epochs_;
  std::unique_ptr<sidecar::Fence> fence_;
};

}  // namespace bsp::simulation
