// Programs that take MPI's functions from libmpi's own handle, such as dlsym(dlopen("libmpi.so.40"), "MPI_Send") in
// Python's ctypes and in Julia, and plug-ins that prefer their own libraries' symbols (RTLD_DEEPBIND).
//
// Such a lookup passes by preloaded libraries. The shim and MPI can't share one program: a communicator of the one is
// no communicator of the other. So in libmpi's symbol table the functions that the shim replaces have the shim's
// addresses. It is the process's private copy; what is already bound doesn't change.
//
// libmpi may also be loaded after the program has started. The shim's dlsym looks for it before the first symbol is
// taken from a handle.
#pragma once

#include <string_view>

namespace bsp::shim {

// Gives every MPI_* and PMPI_* function of libmpi that the shim exports too the shim's address. Call once `real` is
// filled in.
void redirect_symbols();

// The library's own function of that name, if its symbol is redirected; otherwise nullptr.
void* redirected(std::string_view symbol);

}  // namespace bsp::shim
