// Messages that the program has matched by MPI_Mprobe or MPI_Improbe and not yet received. A gate takes them with those that
// nobody has received (undelivered.h). They are sent again under a hidden tag, so that no receive which the program has
// posted since gets one, and matched again.
#pragma once

#include <string>

#include "sidecar/shim/handles/handles.h"

namespace bsp::shim {

// "" or why they can't be carried.
std::string matched_blocker();

}  // namespace bsp::shim
