// Messages that the program has matched by MPI_Mprobe or MPI_Improbe and not yet received. A gate takes them with those that
// nobody has received (undelivered.h); after it they are the first to arrive again, and are matched again.
#pragma once

#include <string>

#include "sidecar/shim/handles.h"

namespace bsp::shim {

// "" or why they can't be carried.
std::string matched_blocker();

}  // namespace bsp::shim
