// Many runs at once, each in one of several processes (SimGrid knows one engine per process).
#pragma once

#include <functional>
#include <map>
#include <span>

#include "sim/reproduce/runs.h"

namespace bsp::sim {

// What is told while it goes on; from one thread at a time.
struct Progress {
  std::size_t done, of;
  const RunKey& run;  // that is done
  double seconds;     // since the start
};

// Every key once, the longest runs first. The first error ends it: runs that have begun are finished, no other is
// begun.
Result<std::map<RunKey, RunResult>> run_all(std::span<const RunKey> keys, unsigned processes,
                                            const std::function<void(const Progress&)>& tell);

}  // namespace bsp::sim
