// Which ranks of an epoch share a server. The ranks of a pod do, and a server is a node to PMIx: Open MPI uses shared memory
// between its ranks and TCP to all others.
#pragma once

#include <cstdint>
#include <vector>

namespace bsp::pmix {

struct Placement {
  // For each rank, the lowest rank of its server, by which the server is named here.
  std::vector<std::uint32_t> server_of;

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(server_of.size()); }
  // The ranks of a server, ascending.
  [[nodiscard]] std::vector<std::uint32_t> ranks_of(std::uint32_t server) const {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < size(); ++rank)
      if (server_of[rank] == server) ranks.push_back(rank);
    return ranks;
  }
};

}  // namespace bsp::pmix
