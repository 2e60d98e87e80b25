// Files of /dev/shm that the program itself has mapped (shm_open), as many programs do among the ranks of a host. The ranks of a pod have
// one /dev/shm; a copy of such memory that moves is no longer the other ranks' memory, and nobody would notice.
#pragma once

#include <string>
#include <string_view>

namespace bsp::shim {

// At a gate, where ranks share a pod: "", or the program's memory that another process maps, too.
std::string shared_mapping_blocker();

// The first file of /dev/shm in a /proc/PID/smaps with pages that are mapped more than once, "" if there is none. Not MPI's own.
std::string mapped_twice(std::string_view smaps);

}  // namespace bsp::shim
