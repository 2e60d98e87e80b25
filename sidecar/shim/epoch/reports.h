// What the rank tells its sidecar of itself, in the ring.
#pragma once

#include <cstdint>

#include "sidecar/ring/ring.h"

namespace bsp::shim {

void set_rank_state(bsp_rank_state now);

// What MPI is. The ring may belong to another pod than before.
void report_mpi();

// That the epoch is open, and how long that took since these readings of CLOCK_MONOTONIC and of the CPU time.
void report_open(std::uint64_t started_ns, std::uint64_t started_cpu_ns);

}  // namespace bsp::shim
