// Descriptors that MPI opens with a session and leaves behind when it closes (an eventpoll, a pipe, an
// eventfd, a deleted /dev/shm file per epoch in Open MPI 5.0).
//
// Only what appeared while the session was opening is MPI's: whatever the program opens later is its
// own. Before such a descriptor is closed it must still be the same file as then.
#pragma once

#include <string>

namespace bsp::shim {

void leftovers_before_open();
void leftovers_after_open();
void leftovers_after_close();

// A socket of the program's own, as "an open socket (descriptor 7)"; "" if there is none.
std::string program_socket();

}  // namespace bsp::shim
