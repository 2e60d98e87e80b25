// A run that was recorded (operator/record), real or simulated, as a workload: what would it have done elsewhere?
//
// Instructions of every superstep are the recorded ones, M(i) that of the last call before. Of messages a record knows
// how many bytes rank i received from which Set, not from whom: they come in equal parts from the ranks that were in
// that Set, i itself left out. What was not recorded (after the last call; supersteps that were lost) is not in the
// workload. A file with several jobs or attempts: the first one's records.
#pragma once

#include <istream>

#include "sim/workload.h"

namespace bsp::sim {

// kInvalid names the line, or says that there is nothing in it.
Result<std::unique_ptr<Workload>> read_trace(std::istream& records, const std::string& name);

// trace:file=RUN.jsonl
Application trace();

}  // namespace bsp::sim
