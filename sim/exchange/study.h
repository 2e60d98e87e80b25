// The study: its runs, and their results as JSON (page.py makes docs/exchange.md of them).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <vector>

#include "sim/exchange/gather.h"
#include "sim/exchange/solver.h"

namespace bsp::sim::exchange {

struct StudyParams {
  std::vector<std::uint32_t> sizes{16, 32, 64, 128, 256, 512, 1024};
  std::uint64_t seed = 1;
  std::uint32_t repeats = 3;  // workloads for each size up to 128; one beyond
  double threshold = 0.015;   // s of work: the median of the processes' own tasks
  std::uint32_t threads = 2;  // to run the study; the results don't depend on it
  GatherParams gather{};      // report_bytes: for one superstep of a rank
  double report_superstep_bytes = 0;
};

// Times are in seconds.
nlohmann::json run_study(const StudyParams& params);

}  // namespace bsp::sim::exchange
