// Lattice Boltzmann in two dimensions, cut into vertical strips: regular (Righi et al. 2010, tables 1 to 3).
//
//   I(i) = W / n            W = 1e10 instructions per superstep of the whole lattice        instructions
//   M(i) = S / n + F        S = 10 MB, the whole lattice; F = 500 KB, the program itself     bytes
//   i → i+1: H              H = 100 KB, a strip's border, for any n; the last rank has no right neighbour
//
// All supersteps have the same demand. 10 ranks: 1e9 instructions, 1.5 MB; 25 ranks: 4e8 instructions, 900 KB.
#pragma once

#include "sim/workload.h"

namespace bsp::sim {

struct LatticeBoltzmann {
  std::uint32_t ranks = 0;
  std::uint64_t supersteps = 0;
  double instructions = 1e10;    // W
  double lattice_bytes = 10e6;   // S
  double program_bytes = 500e3;  // F
  double border_bytes = 100e3;   // H
};

std::unique_ptr<Workload> make(const LatticeBoltzmann& parameters);
Application lattice_boltzmann();

}  // namespace bsp::sim
