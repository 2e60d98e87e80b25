// Deliberate interpositions: what the program and its libraries see of the shim besides the functions of mpi.h.
#pragma once

#include <dlfcn.h>

#define BSP_EXPORT __attribute__((visibility("default")))

// Called before a sanitizer is ready, or after it has let go of the thread. What it calls isn't instrumented either.
#define BSP_UNSANITIZED __attribute__((no_sanitize("thread", "address", "undefined")))

// What the program would have called without the shim.
#define BSP_NEXT(name) reinterpret_cast<decltype(&name)>(dlsym(RTLD_NEXT, #name))
