// Ranks that wait in MPI offer their core to others where a pod has more of them than its node has CPUs, as under an mpirun that is
// told to oversubscribe. There PRRTE says so to Open MPI, and here nobody does. OMPI_MCA_mpi_yield_when_idle takes precedence.
#pragma once

#include <cstddef>

namespace bsp::shim {

// Call after MPI_Session_init, which sets what the variable says.
void choose_yielding(std::size_t ranks_of_pod);

}  // namespace bsp::shim
