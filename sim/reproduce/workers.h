// Executes runs in several processes at once, because SimGrid supports one engine per process.
#pragma once

#include <functional>
#include <map>
#include <span>

#include "sim/reproduce/runs.h"

namespace bsp::sim {

// Progress reports; called from one thread at a time.
struct Progress {
  std::size_t done, of;
  const RunKey& run;  // the finished run
  double seconds;     // since the start
};

// Runs every key once, the longest runs first. After the first error it finishes the started runs and starts no others.
Result<std::map<RunKey, RunResult>> run_all(std::span<const RunKey> keys, unsigned processes,
                                            const std::function<void(const Progress&)>& report);

}  // namespace bsp::sim
