// Whose socket is it: the MPI library's or the program's? Noted when it is made (interpose.cc).
#pragma once

namespace bsp::shim {

bool is_program_socket(int fd);

}  // namespace bsp::shim
