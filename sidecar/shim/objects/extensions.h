// What Open MPI's extensions (mpi-ext.h) leave behind.
#pragma once

#include <string>

namespace bsp::shim {

// A communicator that the program has revoked: a new one wouldn't be. "" if there is none.
std::string revoked_blocker();

}  // namespace bsp::shim
