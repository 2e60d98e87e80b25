// Named fault points: places where a test can kill, stop or delay this process.
//
// BSP_FAULTS="transfer.sending=kill,gate.commit=stop:500" makes the process SIGKILL itself when it first reaches
// `transfer.sending`, and sleep 500 ms at `gate.commit`. Names: <module>.<what is about to happen>.
//
// BSP_FAULT_DIRECTORY reaches a process that is already running: write an action into DIRECTORY/<name> to arm a point.
// When it fires, the file is renamed to DIRECTORY/<name>.fired, so it fires once even if the process restarts. With
// neither variable set, a fault point costs one load.
//
// Release builds have no fault points (CMake's BSP_FAULT_POINTS, off in the preset release). Otherwise whoever may set
// a container's environment, or write into /run/bsp as the program may, could kill our processes.
#pragma once

#include <sys/types.h>

#include <string_view>

#ifndef BSP_FAULT_POINTS
#define BSP_FAULT_POINTS 1
#endif

namespace bsp {

#if BSP_FAULT_POINTS
// Carries out the point's action, if it has one: kill (SIGKILL to this process), kill-child (SIGKILL to `child`, the
// process the point is about), stop:<ms> (sleep), exit:<code>.
void fault_point(std::string_view name, pid_t child = 0);

// True once if BSP_FAULTS contains "<name>=fail": the caller then returns an injected error.
bool fault_fails(std::string_view name);
#else
inline void fault_point(std::string_view, pid_t = 0) {}
inline bool fault_fails(std::string_view) { return false; }
#endif

}  // namespace bsp
