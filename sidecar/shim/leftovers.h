// Descriptors that MPI opens with a session and leaves behind when it closes (an eventpoll, a pipe, an
// eventfd, a deleted /dev/shm file per epoch in Open MPI 5.0).
//
// Only what MPI made is closed: what descriptors.h says is MPI's, and files with a name of MPI's that were opened while the session
// opened. A difference between two moments says nothing: other threads of the program open descriptors all the time.
#pragma once

#include <string>

namespace bsp::shim {

void leftovers_before_open();
void leftovers_after_open();
void leftovers_after_close();

// A socket of the program's own, as "an open socket (descriptor 7)"; "" if there is none.
std::string program_socket();

}  // namespace bsp::shim
