// Named fault points: places where a test may kill, stop or delay this process.
//
// BSP_FAULTS="transfer.sending=kill,gate.commit=stop:500" makes the process SIGKILL itself when it
// passes `transfer.sending` the first time, and sleep 500 ms at `gate.commit`. Without the variable a
// fault point costs one load. Names: <module>.<what is about to happen>.
#pragma once

#include <string_view>

namespace bsp {

// Does what BSP_FAULTS says of this point: nothing, kill (SIGKILL to this process), stop:<ms> (sleep),
// exit:<code>. Each action fires once.
void fault_point(std::string_view name);

// True once if BSP_FAULTS says "<name>=fail": the caller then returns an injected error.
bool fault_fails(std::string_view name);

}  // namespace bsp
