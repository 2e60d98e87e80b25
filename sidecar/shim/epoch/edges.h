// Superstep edges: which collective ends a superstep.
#pragma once

#include <optional>

#include "edge_calls.gen.h"  // BSP_EDGE_CALLS(X): the collectives that can be an edge
#include "sidecar/ring/ring_access.h"
#include "sidecar/shim/epoch/edge_choice.h"
#include "sidecar/shim/handles/handles.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {

enum class EdgeCall {
  kNone,
#define BSP_EDGE(name) k##name,
  BSP_EDGE_CALLS(BSP_EDGE)
#undef BSP_EDGE
      kUndecided,
};

extern EdgeCall edge_call;                     // kNone outside epochs; kUndecided: none has been chosen yet
extern std::optional<EdgeChoice> edge_choice;  // with BSP_SUPERSTEP=Auto

// Counts a collective of all ranks. When a decision is due and the ranks choose another edge, a superstep ends here, or if they find
// that they have counted different calls, none does any more: true.
bool choose_edge(EdgeCall call);

// Counts a blocking collective if it included all ranks, and returns whether it may have ended a superstep. With
// MPI_THREAD_MULTIPLE only MPI_COMM_WORLD's collectives are edges: all ranks call them in the same order, while
// threads may use other communicators in any order.
inline bool note_collective(EdgeCall call, MPI_Comm comm) {
  if (edge_call == EdgeCall::kNone) return false;
  if (state.multiple && comm != pre.comm_world) return false;
  Comm* c = comm_of(comm);
  if (c == nullptr || !c->whole) return false;
  std::uint64_t& count = state.ring->collectives[static_cast<std::size_t>(call) - 1];
  BSP_RING_STORE(count, count + 1);
  if (edge_choice && choose_edge(call)) return false;
  return call == edge_call;
}

// Reads BSP_SUPERSTEP ("MPI_Allreduce:10", "Auto"; default MPI_Barrier:1); exits with a message if it is invalid.
void set_up_edges();

// The edge collective has completed. Returns in the same epoch or in a later one.
void superstep_edge();

// Writes what ends a superstep into the ring, which may belong to another pod than before.
void report_edge();

// With BSP_SUPERSTEP=Auto: an epoch has opened, so what is known of the calls' times begins anew; and the time of the next decision
// runs from now.
void restart_choosing();
void choose_from_now();

}  // namespace bsp::shim
