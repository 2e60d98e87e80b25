// `bsp-operator simulate`: another program, bsp-simulate, which lies beside this one. What looks after jobs does not
// carry a simulator with it.
#pragma once

#include <span>
#include <string>

namespace bsp {

// Becomes bsp-simulate. Returns only if there is none: says so and what to do, and returns the exit status.
int simulate(std::span<const std::string> words);

}  // namespace bsp
