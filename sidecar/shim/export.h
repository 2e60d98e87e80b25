// Deliberate interpositions: what the program and its libraries see of the shim besides the functions of mpi.h.
#pragma once

#define BSP_EXPORT __attribute__((visibility("default")))
