// Resets or replaces what Open MPI's two file components (ompio and ROMIO) keep in static variables, as they expect MPI to be
// opened once.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace bsp::shim {

// Functions of Open MPI that are replaced where it calls them itself.
std::vector<std::pair<std::string_view, void*>> file_component_calls();

// Call while the session is open and MPI_COMM_SELF is filled in (predefined_self.h).
void end_romio();
// Call after the session has been closed.
void reset_ompio_progress();

}  // namespace bsp::shim
