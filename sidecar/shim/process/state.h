// Process-wide state that every part of the shim reads.
#pragma once

#include <atomic>
#include <cstdint>

#include "sidecar/ring/ring.h"

namespace bsp::shim {

struct State {
  std::atomic<bool> loaded = false;  // load_real() has succeeded
  bool epochs = false;          // started by bsp-init: MPI runs in epochs; otherwise plain MPI, handles still virtual
  bool started_by_init = true;  // not by a process of the container, as by a shell
  bool initialized = false;
  bool finalized = false;
  bool multiple = false;  // MPI_THREAD_MULTIPLE was granted
  int thread_level = 0;
  int rank = -1;  // world rank, -1 before MPI_Init
  int size = 0;
  std::uint64_t epoch = 0;
  bool shares_memory = false;  // with other ranks of this pod, in this epoch
  bsp_ring* ring = nullptr;    // mapped while an epoch is open
};

extern State state;

}  // namespace bsp::shim
