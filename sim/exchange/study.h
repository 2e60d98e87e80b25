// The study: which runs there are, and what is written of them.
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
  std::uint32_t threads = 2;  // that run the study; its results don't depend on it
  GatherParams gather{};      // report_bytes: for one superstep of a rank
  double report_superstep_bytes = 0;
};

struct Study {
  std::string markdown;
  std::string picture;  // SVG
};

// `command`: how this was started, for the document; `picture_name`: how it refers to the picture.
Study run_study(const StudyParams& params, const std::string& command, const std::string& picture_name);

}  // namespace bsp::sim::exchange
