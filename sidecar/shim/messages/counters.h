// Counts messages sent and received, so that the ranks can tell at a gate whether one is still in flight.
//
// Of messages, only point-to-point ones: a collective that has completed everywhere leaves none in flight. A rank that has
// completed its part can't tell, as a broadcast's root may before any other rank has called it. So each rank also counts
// the collectives that it has begun on each communicator, and the ranks compare these counts. A message is received only
// after it was sent, so the totals "sent to me" and "received by me" are equal only if they are equal for every sender.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "sidecar/shim/handles/handles.h"
#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/messages/synchronous_sends.h"

namespace bsp::shim {

struct Counters {
  using ByRank = std::unique_ptr<std::atomic<std::uint64_t>[]>;  // index: world rank
  ByRank sent_to;
  ByRank received_from;
};
extern Counters counters;

inline std::uint64_t bytes_of(std::int64_t count, MPI_Datatype real_type) {
  int size = 0;
  real.Type_size(real_type, &size);
  return count > 0 && size > 0 ? static_cast<std::uint64_t>(count) * static_cast<unsigned>(size) : 0;
}

// World rank of a communicator's rank; -1 for MPI_PROC_NULL and processes outside the job.
inline int world_rank(const Peers* peers, int rank) {
  return peers != nullptr && rank >= 0 && static_cast<std::size_t>(rank) < peers->world.size()
             ? peers->world[static_cast<std::size_t>(rank)]
             : -1;
}

// Without MPI_THREAD_MULTIPLE only one thread at a time is in MPI, and a locked addition would cost more than
// everything else here.
inline void count_one(std::atomic<std::uint64_t>& counter) {
  if (state.multiple) [[unlikely]]
    counter.fetch_add(1, std::memory_order_relaxed);
  else
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

inline void count_sent(int to) {
  if (to >= 0) count_one(counters.sent_to[static_cast<std::size_t>(to)]);
}

inline void count_received(int from) { count_one(counters.received_from[static_cast<std::size_t>(from)]); }

// By this rank, from all others. Only while no other thread is inside MPI.
std::uint64_t messages_received();

// Counts a message handed to MPI. Arguments as the program passed them. Returns its size.
inline std::uint64_t sent(MPI_Comm comm, int dest, int tag, std::int64_t count, MPI_Datatype type) {
  Comm* c = comm_of(comm);
  if (c == nullptr || dest < 0) return 0;
  count_sent(world_rank(c->peers, dest));
  const std::uint64_t bytes = bytes_of(count, to_real(type));
  measure.sent(bytes);
  note_message({c, dest, tag});
  return bytes;
}

// Before a collective: counts it, whether MPI then reports an error or not, as the others do.
inline void begin_collective(MPI_Comm comm) {
  if (Comm* c = comm_of(comm)) count_one(c->collectives);
}
// Of a collective that has failed: whether this rank has begun it. It hasn't if MPI has refused its arguments, before it has sent anything:
// then the program may call it again, rightly, and the first call is counted no more.
bool has_begun_failed(MPI_Comm comm, int rc);
inline bool has_begun(MPI_Comm comm, int rc) { return rc == MPI_SUCCESS || has_begun_failed(comm, rc); }

void count(const Receipt& message);

// Counts a message received in a call that has taken `call_ticks`. `status` is that of the receive.
inline void received(const Peers* peers, const MPI_Status& status, std::uint64_t call_ticks) {
  if (status._cancelled) return;
  const Receipt latest{peers, status.MPI_SOURCE, status._ucount, call_ticks};
  if (state.multiple) [[unlikely]]
    return count(latest);
  settle_receipt();
  receipt = latest;
}
inline void received(const Peers* peers, const MPI_Status& status) { received(peers, status, measure.in_call()); }
inline void received(MPI_Comm comm, const MPI_Status& status, std::uint64_t call_ticks) {
  if (Comm* c = comm_of(comm)) received(c->peers, status, call_ticks);
}
// Copies the status of a call that completes one operation: such calls leave MPI_ERROR unchanged.
inline void put(MPI_Status* to, const MPI_Status& from) {
  if (to == MPI_STATUS_IGNORE) return;
  const int error = to->MPI_ERROR;
  *to = from;
  to->MPI_ERROR = error;
}
bool is_truncation(int rc);
// True if a receive that returned `rc` consumed a message.
inline bool consumed(int rc) { return rc == MPI_SUCCESS || is_truncation(rc); }

// Counts `bytes` that a collective has received in `call_ticks` from rank `from` of the communicator, or equally from all ranks if `from`
// is kAll.
inline constexpr int kAll = -1;
void received_collective(MPI_Comm comm, int from, std::uint64_t bytes, std::uint64_t call_ticks);
// The same with bytes[i] = counts[i] * size of type.
void received_collective(MPI_Comm comm, const int* counts, MPI_Datatype type, std::uint64_t call_ticks);

}  // namespace bsp::shim
