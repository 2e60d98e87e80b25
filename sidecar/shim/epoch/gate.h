// What happens at the end of a superstep when the operator has set a gate (gate.cc has the protocol).
#pragma once

#include <cstdint>

namespace bsp::shim {

// `superstep` has ended. Returns in the same epoch or in a later one.
void pass_gate(std::uint64_t superstep);

}  // namespace bsp::shim
