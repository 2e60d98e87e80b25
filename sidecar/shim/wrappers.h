// What the generated wrappers call.
#pragma once

#include "sidecar/shim/epoch/blockers.h"
#include "sidecar/shim/epoch/edges.h"
#include "sidecar/shim/handles/errors_after.h"
#include "sidecar/shim/handles/handles.h"
#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/messages/counters.h"
#include "sidecar/shim/messages/interruptible.h"
#include "sidecar/shim/messages/requests.h"
#include "sidecar/shim/objects/files.h"
#include "sidecar/shim/objects/windows.h"

namespace bsp::shim {

// Number of ranks on the other side of a communicator: those that a vector argument describes.
inline int remote_size(MPI_Comm comm) {
  Comm* c = comm_of(comm);
  return c != nullptr && c->peers != nullptr ? static_cast<int>(c->peers->world.size()) : 0;
}

int indegree(MPI_Comm comm);  // neighbours in the communicator's topology
int outdegree(MPI_Comm comm);

// This rank's role in a rooted collective. The root of an intracommunicator is a leaf too.
inline bool is_root(MPI_Comm comm, int root) {
  Comm* c = comm_of(comm);
  if (c == nullptr) return false;
  return c->inter ? root == MPI_ROOT : world_rank(c->peers, root) == state.rank;
}
inline bool is_leaf(MPI_Comm comm, int root) {
  Comm* c = comm_of(comm);
  return c != nullptr && (!c->inter || root >= 0);
}
inline bool takes_part(MPI_Comm comm, int root) { return is_root(comm, root) || is_leaf(comm, root); }

// Of a collective, so far. Unless it may end a superstep, MPI's part of it ends here: that saves a reading of the counter, a third of
// what the shim takes for it.
inline std::uint64_t ticks_of(Call& call, EdgeCall which) {
  return edge_call == which || edge_choice ? measure.in_call() : call.end();
}

inline void received_from_each(MPI_Comm comm, int count, MPI_Datatype type, std::uint64_t call_ticks) {
  Comm* c = comm_of(comm);
  if (c == nullptr || c->peers == nullptr) return;
  const std::uint64_t others = c->peers->world.size() - (c->inter ? 0 : 1);
  received_collective(comm, kAll, bytes_of(count, to_real(type)) * others, call_ticks);
}

// Keeps an array of datatypes alive until the request completes.
void keep_types(Request& request, std::vector<MPI_Datatype> types);

}  // namespace bsp::shim
