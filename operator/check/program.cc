#include "operator/check/program.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <format>
#include <memory>

#include "base/core/fd.h"
#include "sidecar/ring/ring_access.h"

namespace bsp::checking {

std::optional<Program> read_program(const std::string& run_dir) {
  // Read, not mapped: the program may truncate the file at any time.
  const Fd file(::open((run_dir + "/ring").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return std::nullopt;
  constexpr std::size_t kHeader = offsetof(bsp_ring, records);
  const auto ring = std::make_unique<bsp_ring>();
  if (::pread(file.get(), ring.get(), kHeader, 0) != static_cast<ssize_t>(kHeader) || bsp_ring_valid(ring.get()) == 0)
    return std::nullopt;
  Program program;
  const std::uint32_t version = ring->mpi_version;
  if (version != 0)
    program.open_mpi = std::format("{}.{}.{}", version >> 16 & 0xff, version >> 8 & 0xff, version & 0xff);
  program.fortran = ring->fortran != 0;
  program.thread_level = static_cast<int>(ring->thread_level & 3);
  if (ring->edge_call >= 1 && ring->edge_call <= names::kEdgeCalls.size()) {
    program.edge_call = names::kEdgeCalls[ring->edge_call - 1];
    program.edge_stride = ring->edge_stride;
  }
  program.supersteps = ring->completed;
  for (std::size_t i = 0; i < program.collectives.size(); ++i) program.collectives[i] = ring->collectives[i];
  return program;
}

}  // namespace bsp::checking
