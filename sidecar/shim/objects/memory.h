// Memory that MPI_Alloc_mem and windows hand out.
#pragma once

#include "sidecar/shim/library/real.h"

namespace bsp::shim {

// Aligned as `info` asks; free() releases it. Returns an MPI error class.
int allocate_memory(MPI_Aint size, MPI_Info info, void** memory);

}  // namespace bsp::shim
