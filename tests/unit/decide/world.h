// A small platform with ranks on it, for the decision tests to change one thing of.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "operator/decide/make_plan.h"
#include "tests/unit/decide/superstep_time.h"

namespace bsp::decide {

struct Pool {
  std::string name;
  std::uint32_t processors = 1;
  double cpu = 1e9;         // instructions/s
  std::uint32_t slots = 0;  // of each processor; 0 = any number of ranks
};

// Sets as the pools say; moving a byte costs 1 ns inside a Set and 10 ns between two; Mig is 1 ms.
inline Platform platform_of(std::initializer_list<Pool> pools) {
  Platform platform;
  for (const Pool& pool : pools) {
    const SetId j{static_cast<std::uint32_t>(platform.sets.size())};
    platform.sets.push_back({.name = pool.name});
    for (std::uint32_t p = 0; p < pool.processors; ++p)
      platform.processors.push_back(
          {.name = pool.name + "-" + std::to_string(p), .set = j, .cpu = pool.cpu, .slots = pool.slots});
  }
  const std::size_t sets = platform.sets.size();
  platform.T = Grid<double>(sets, sets, 10e-9);
  for (std::size_t j = 0; j < sets; ++j) platform.T[j, j] = 1e-9;
  platform.Mig = Grid<double>(1, sets, 1e-3);
  return platform;
}

struct World {
  Snapshot snapshot;
  std::vector<double> instructions;  // of every superstep, by rank
  Grid<double> recv_bytes;           // of every superstep, by rank and Set

  World(std::initializer_list<Pool> pools, std::initializer_list<std::uint32_t> processor_of_rank,
        double instructions_each = 1e9) {
    snapshot.platform = platform_of(pools);
    for (std::uint32_t p : processor_of_rank) snapshot.ranks.push_back({.processor = ProcessorId{p}});
    instructions.assign(snapshot.ranks.size(), instructions_each);
    recv_bytes = Grid<double>(snapshot.ranks.size(), snapshot.platform.sets.size());
  }

  [[nodiscard]] MeasuredSuperstep superstep(std::uint64_t t) const {
    MeasuredSuperstep s{.superstep = Superstep{t}};
    s.instructions = instructions;
    const auto busy = time_by_processor(snapshot, instructions, current_mapping(snapshot));
    for (const Rank& rank : snapshot.ranks) s.compute_seconds.push_back(busy[rank.processor.value]);
    Grid<double> recv_seconds = recv_bytes;
    for (std::uint32_t i = 0; i < snapshot.ranks.size(); ++i)
      for (std::size_t j = 0; j < recv_bytes.cols(); ++j)
        recv_seconds[i, j] *= snapshot.platform.T[snapshot.set(RankId{i}).value, j];
    s.recv_bytes = recv_bytes, s.recv_seconds = recv_seconds;
    return s;
  }

  // The first window, up to its call.
  [[nodiscard]] Window window(const Params& params) const {
    Window window({}, params, snapshot.ranks.size(), snapshot.platform.sets.size());
    for (std::uint64_t t = 1; !window.call_due(); ++t) window.add(superstep(t));
    return window;
  }

  [[nodiscard]] Result<Plan> plan(const Params& params) const { return make_plan(snapshot, window(params), params); }
};

inline std::vector<std::uint32_t> moved_ranks(const Plan& plan) {
  std::vector<std::uint32_t> ranks;
  for (const Move& move : plan.moves) ranks.push_back(move.rank.value);
  return ranks;
}

// Why a rank stays; aborts the test if it does not.
inline const Stay& stay_of(const Plan& plan, std::uint32_t rank) {
  for (const Stay& stay : plan.stays)
    if (stay.rank.value == rank) return stay;
  check(false, "the rank stays");
  return plan.stays.front();
}

}  // namespace bsp::decide
