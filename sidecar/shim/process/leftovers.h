// Removes what MPI opens with a session and leaks when it closes.
//
// Shared memory among the ranks of a pod: Open MPI 5.0 closes OPAL's part of it before btl/sm, which then can neither unmap nor remove
// its segments. Every rank of the pod has passed the close by then, so none is about to map one.
//
// Descriptors: closes those that MPI opens with a session and leaks when it closes (an eventpoll, a pipe, an eventfd and a
// deleted /dev/shm file per epoch in Open MPI 5.0).
//
// Closes only what MPI created: descriptors that descriptors.h attributes to MPI, and files with one of MPI's names
// that were opened while the session opened. Comparing two points in time isn't enough, because other threads of the
// program open descriptors all the time.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sidecar/shim/process/file_identity.h"

namespace bsp::shim {

void leftovers_before_open();
void leftovers_after_open();
void leftovers_after_close();

// This process's descriptors of regular files, MPI's too; nothing, with errno, if they can't be listed.
std::optional<std::vector<std::pair<int, FileIdentity>>> regular_files();

// A socket of the program, as "an open socket (descriptor 7)"; "" if there is none. Where descriptors can't be listed, as
// without a free one, it can't tell, and says so.
std::string program_socket();

}  // namespace bsp::shim
