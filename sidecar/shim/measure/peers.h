// The ranks that a communicator, window or file consists of.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace bsp::shim {

// The processes of a communicator (of the remote group if it is an intercommunicator). Interned: equal lists share
// one object that is never freed, so requests may point to it.
struct Peers {
  std::vector<int> world;  // world rank of each rank; < 0: not a process of this job

  // What collectives received from all of them but this rank alike; of `measure`, which counts it by Set at once and by rank now and then.
  struct FromAll {
    std::uint64_t epoch = 0;                                      // that `sets` is of; 0: of none
    std::vector<std::pair<std::uint32_t, std::uint32_t>> sets{};  // Set, ranks
    std::uint64_t bytes = 0;                                      // from each, not counted by rank yet
  };
  mutable FromAll from_all{};
};

}  // namespace bsp::shim
