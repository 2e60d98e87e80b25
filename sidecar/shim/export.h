// Deliberate interpositions: what the program and its libraries see of the shim besides the functions of mpi.h.
#pragma once

#include <dlfcn.h>

#define BSP_EXPORT __attribute__((visibility("default")))

// What the program would have called without the shim.
#define BSP_NEXT(name) reinterpret_cast<decltype(&name)>(dlsym(RTLD_NEXT, #name))
