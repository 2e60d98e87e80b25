#include "sidecar/shim/epoch/reports.h"

#include "base/core/realtime.h"
#include "sidecar/ring/ring_access.h"
#include "sidecar/shim/epoch/edges.h"
#include "sidecar/shim/handles/fortran.h"
#include "sidecar/shim/library/real.h"
#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/process/nanoseconds.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {

void set_rank_state(bsp_rank_state now) { BSP_RING_STORE(state.ring->state, static_cast<std::uint32_t>(now)); }

void report_mpi() {
  const auto part = [](int number) { return static_cast<std::uint32_t>(number) & 0xff; };
  BSP_RING_STORE(state.ring->fortran, has_fortran() ? 1u : 0u);
  BSP_RING_STORE(state.ring->thread_level, static_cast<std::uint32_t>(state.thread_level));
  BSP_RING_STORE(state.ring->mpi_version,
                 part(open_mpi_major()) << 16 | part(open_mpi_minor()) << 8 | part(open_mpi_patch()));
}

void report_open(std::uint64_t started_ns, std::uint64_t started_cpu_ns) {
  BSP_RING_STORE(state.ring->open_ns, clock_ns(CLOCK_MONOTONIC) - started_ns);
  BSP_RING_STORE(state.ring->open_cpu_ns, clock_ns(CLOCK_PROCESS_CPUTIME_ID) - started_cpu_ns);
  BSP_RING_STORE(state.ring->opened_ns, realtime_ns());
  bsp_reason_set(state.ring, "");
  BSP_RING_STORE(state.ring->postponed, 0u);
  set_rank_state(BSP_RANK_RUNNING);
  choose_from_now();  // not before: the wait for an epoch is no part of the program's calls
  BSP_RING_STORE(state.ring->first_compute_ns, realtime_ns());
  measure.skip();
}

}  // namespace bsp::shim
