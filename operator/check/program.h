// What a rank's shim has written into its ring (sidecar/ring/ring.h). The program may write anything there, so each value is bounded.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "crds/names.h"

namespace bsp::checking {

struct Program {
  std::string open_mpi;  // "5.0.7"; "" before MPI_Init
  bool fortran = false;
  int thread_level = 0;   // as MPI numbers them
  std::string edge_call;  // "" until one is chosen
  std::uint64_t edge_stride = 0;
  std::uint64_t supersteps = 0;
  std::array<std::uint64_t, names::kEdgeCalls.size()> collectives{};  // blocking, of all ranks, so far
};

// nullopt if there is no ring yet. `run_dir`: the pod's /run/bsp on this machine.
std::optional<Program> read_program(const std::string& run_dir);

}  // namespace bsp::checking
