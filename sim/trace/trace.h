// Replays a recorded run (operator/record), real or simulated, as a workload: what would it have done elsewhere?
//
// Each superstep has its recorded instructions; M(i) is that of the preceding call. A record says how many bytes rank i
// received from which Set, but not from which ranks: the workload divides them equally among the four other ranks of
// that Set with the nearest numbers. What wasn't recorded (after the last call, or lost supersteps) is not in the
// workload. The records must be of one run.
#pragma once

#include <istream>

#include "sim/workload.h"

namespace bsp::sim {

// kInvalid names the line, or says that the file has no superstep.
Result<std::unique_ptr<Workload>> read_trace(std::istream& records, const std::string& name);

// trace:file=RUN.jsonl
Application trace();

}  // namespace bsp::sim
