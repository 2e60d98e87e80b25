// The workloads that can be selected by name: the four applications of the sources.
#pragma once

#include <span>

#include "sim/workload.h"

namespace bsp::sim {

// lattice-boltzmann, smith-waterman, lu, fractal; for make_workload() of sim/workload.h.
std::span<const Application> applications();

}  // namespace bsp::sim
