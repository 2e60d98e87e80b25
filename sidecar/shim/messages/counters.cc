#include "sidecar/shim/messages/counters.h"

namespace bsp::shim {

Counters counters;

Receipt receipt;

void count(const Receipt& message) {
  const int from = world_rank(message.peers, message.source);
  if (from < 0) return;
  count_received(from);
  measure.received(from, message.bytes, message.call_ticks);
}

void count_receipt() {
  count(receipt);
  receipt.peers = nullptr;
}

std::uint64_t messages_received() {
  settle_receipt();
  std::uint64_t sum = 0;
  for (int from = 0; from < state.size; ++from)
    sum += counters.received_from[static_cast<std::size_t>(from)].load(std::memory_order_relaxed);
  return sum;
}

bool is_truncation(int rc) {
  int error_class = 0;
  real.Error_class(rc, &error_class);
  return error_class == MPI_ERR_TRUNCATE;
}

bool has_begun_failed(MPI_Comm comm, int rc) {
  int error_class = 0;
  real.Error_class(rc, &error_class);
  switch (error_class) {
    case MPI_ERR_BUFFER:
    case MPI_ERR_COUNT:
    case MPI_ERR_TYPE:
    case MPI_ERR_TAG:
    case MPI_ERR_COMM:
    case MPI_ERR_RANK:
    case MPI_ERR_ROOT:
    case MPI_ERR_GROUP:
    case MPI_ERR_OP:
    case MPI_ERR_TOPOLOGY:
    case MPI_ERR_DIMS:
    case MPI_ERR_ARG:
      if (Comm* c = comm_of(comm)) c->collectives.fetch_sub(1, std::memory_order_relaxed);
      return false;
    default:
      return true;
  }
}

void received_collective(MPI_Comm comm, int from, std::uint64_t bytes, std::uint64_t call_ticks) {
  Comm* c = comm_of(comm);
  if (c == nullptr || c->peers == nullptr || bytes == 0) return;
  if (from != kAll) {
    const int rank = world_rank(c->peers, from);
    if (rank != state.rank) measure.received(rank, bytes, call_ticks);
    return;
  }
  const std::size_t others = c->peers->world.size() - (c->inter ? 0 : 1);
  if (others == 0) return;
  const bool of_some = c->peers->world.size() < static_cast<std::size_t>(state.size);
  measure.received_from_all(*c->peers, bytes / others, call_ticks / others, of_some);
}

void received_collective(MPI_Comm comm, const int* counts, MPI_Datatype type, std::uint64_t call_ticks) {
  Comm* c = comm_of(comm);
  if (c == nullptr || c->peers == nullptr || counts == nullptr) return;
  const std::uint64_t size = bytes_of(1, to_real(type));
  const std::size_t ranks = c->peers->world.size();
  const std::uint64_t elapsed = call_ticks / (ranks != 0 ? ranks : 1);
  for (std::size_t i = 0; i < ranks; ++i)
    if (c->peers->world[i] != state.rank && counts[i] > 0)
      measure.received(c->peers->world[i], static_cast<std::uint64_t>(counts[i]) * size, elapsed);
}

}  // namespace bsp::shim
