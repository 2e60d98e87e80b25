// Named fault points: places where a test may kill, stop or delay this process.
//
// BSP_FAULTS="transfer.sending=kill,gate.commit=stop:500" makes the process SIGKILL itself when it passes
// `transfer.sending` the first time, and sleep 500 ms at `gate.commit`. Names: <module>.<what is about to happen>.
//
// A process that runs already is struck through BSP_FAULT_DIRECTORY: whoever writes an action into the file
// DIRECTORY/<name> arms the point; as it fires, the file is renamed to DIRECTORY/<name>.fired. So it fires once,
// also if its victim is started again. Without either variable a fault point costs one load.
//
// What is released has none of them (CMake's BSP_FAULT_POINTS, off in the preset release): nobody who may set a container's
// environment, or write into /run/bsp as the program may, can strike a process of ours with them.
#pragma once

#include <sys/types.h>

#include <string_view>

#ifndef BSP_FAULT_POINTS
#define BSP_FAULT_POINTS 1
#endif

namespace bsp {

#if BSP_FAULT_POINTS
// Does what was said of this point: nothing, kill (SIGKILL to this process), kill-child (SIGKILL to `child`, the
// process that the point is about), stop:<ms> (sleep), exit:<code>.
void fault_point(std::string_view name, pid_t child = 0);

// True once if BSP_FAULTS says "<name>=fail": the caller then returns an injected error.
bool fault_fails(std::string_view name);
#else
inline void fault_point(std::string_view, pid_t = 0) {}
inline bool fault_fails(std::string_view) { return false; }
#endif

}  // namespace bsp
