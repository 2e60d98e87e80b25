// The study: its runs and its document.
#pragma once

#include <cstdint>
#include <string>
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

struct Study {
  std::string markdown;
  std::string picture;  // SVG
};

// The document contains `command`, the command line, and refers to the figure as `picture_name`.
Study run_study(const StudyParams& params, const std::string& command, const std::string& picture_name);

}  // namespace bsp::sim::exchange
