// MPI's tool interface (MPI_T).
#pragma once

#include <string>

namespace bsp::shim {

// While MPI_T is initialised, Open MPI 5.0 keeps what its components have registered, finds no transport when a session opens again,
// and ends the process. "" if it isn't.
std::string tools_blocker();

}  // namespace bsp::shim
