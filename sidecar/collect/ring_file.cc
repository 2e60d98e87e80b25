#include "sidecar/collect/ring_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/core/fd.h"
#include "crds/names.h"
#include "sidecar/ring/ring_access.h"

namespace bsp::collect {
namespace {

Result<bsp_ring*> map(int fd) {
  void* memory = ::mmap(nullptr, sizeof(bsp_ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return fail_errno("mapping the ring");
  return static_cast<bsp_ring*>(memory);
}

Result<bsp_ring*> create(const std::string& path) {
  std::string temporary = path + ".new";
  Fd fd(::open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) return fail_errno("making " + temporary);
  // The program runs under a uid of its own, which nobody has told us yet.
  if (::fchmod(fd.get(), 0666) != 0) return fail_errno("making " + temporary);
  // Allocated now: a full tmpfs is an error here and would be a SIGBUS in the program later.
  if (int error = ::posix_fallocate(fd.get(), 0, sizeof(bsp_ring)); error != 0)
    return fail_errno("making " + temporary, error);
  BSP_TRY(bsp_ring * ring, map(fd.get()));
  bsp_ring_format(ring);
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    ::munmap(ring, sizeof *ring);
    return fail_errno("making " + path);
  }
  return ring;
}

std::vector<std::uint64_t> without_trailing_zeros(const std::uint64_t* values) {
  std::size_t used = BSP_MAX_SETS;
  while (used > 0 && values[used - 1] == 0) --used;
  return {values, values + used};
}

}  // namespace

Result<RingFile> RingFile::open(const std::string& path) {
  if (Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC)); fd) {
    struct stat info{};
    if (::fstat(fd.get(), &info) == 0 && info.st_size == static_cast<off_t>(sizeof(bsp_ring))) {
      BSP_TRY(bsp_ring * ring, map(fd.get()));
      if (bsp_ring_valid(ring)) return RingFile(ring, true);
      ::munmap(ring, sizeof *ring);
    }
  }
  BSP_TRY(bsp_ring * ring, create(path));
  return RingFile(ring, false);
}

RingFile::RingFile(RingFile&& other) noexcept : ring_(std::exchange(other.ring_, nullptr)), adopted_(other.adopted_) {}

RingFile::~RingFile() {
  if (ring_) ::munmap(ring_, sizeof *ring_);
}

wire::RankReport make_report(const bsp_ring& ring, std::uint32_t rank, std::uint64_t since) {
  wire::RankReport report;
  report.rank = rank;
  report.completed = BSP_RING_LOAD_SEQ(ring.completed);
  report.epoch = BSP_RING_LOAD(ring.epoch);
  report.memory_bytes = BSP_RING_LOAD(ring.memory_bytes);
  std::uint64_t oldest = report.completed > BSP_RING_RECORDS ? report.completed - BSP_RING_RECORDS : 0;
  for (std::uint64_t s = std::max(since, oldest) + 1; s <= report.completed; ++s) {
    bsp_superstep_record record;
    if (!bsp_record_read(&ring, s, &record)) continue;
    report.supersteps.push_back({.superstep = s,
                                 .end_ns = record.end_ns,
                                 .instructions = record.instructions,
                                 .compute_ns = record.compute_ns,
                                 .comm_ns = record.comm_ns,
                                 .edge_ns = record.edge_ns,
                                 .sent_bytes = record.sent_bytes,
                                 .recv_bytes = without_trailing_zeros(record.recv_bytes),
                                 .recv_ns = without_trailing_zeros(record.recv_ns)});
  }
  return report;
}

std::string blocked_reason(const bsp_ring& ring) {
  char text[BSP_RING_TEXT];
  for (int attempt = 0; attempt < 100; ++attempt)
    if (bsp_reason_read(&ring, text)) return text;
  return "";  // its writer is at it; the next poll will see it
}

std::string_view most_called(const bsp_ring& ring) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < BSP_RING_COLLECTIVES; ++i)
    if (BSP_RING_LOAD(ring.collectives[i]) > BSP_RING_LOAD(ring.collectives[best])) best = i;
  return BSP_RING_LOAD(ring.collectives[best]) == 0 ? "" : names::kEdgeCalls[best];
}

}  // namespace bsp::collect
