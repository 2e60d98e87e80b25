#include "sidecar/agent/collect/ring_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/core/own_file.h"
#include "crds/names.h"
#include "sidecar/ring/ring_access.h"

namespace bsp::collect {
namespace {

// The process's mappings, for the signal handler: an entry is never freed while the ring is mapped.
struct Mapping {
  std::atomic<char*> memory{nullptr};
  std::atomic<bool> lost{false};
};
std::array<Mapping, wire::kMostSeats + 4> mappings;  // one for each seat of a pod; tests have more
constexpr std::size_t kMapped = (sizeof(bsp_ring) + 4095) / 4096 * 4096;

// The program may truncate the file at any time, or punch a hole into it while the tmpfs is full. Touching a missing
// page then raises SIGBUS. The size can't be sealed: only memfds support seals, and the shim finds the ring by name.
// So the handler replaces the whole mapping by zero pages and continues; intact() is false from then on.
void replace_lost_pages(int, siginfo_t* info, void*) {
  auto* const at = static_cast<char*>(info->si_addr);
  for (Mapping& mapping : mappings) {
    char* const memory = mapping.memory.load();
    if (memory == nullptr || at < memory || at >= memory + kMapped) continue;
    if (::mmap(memory, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
      break;
    mapping.lost.store(true);
    return;
  }
  ::signal(SIGBUS, SIG_DFL);  // not in a ring: the repeated signal ends the process
}

Result<bsp_ring*> map(int fd) {
  static const bool handled = [] {
    struct sigaction action{};
    action.sa_sigaction = replace_lost_pages;
    action.sa_flags = SA_SIGINFO;
    return ::sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  check(handled, "a SIGBUS handler can be set");
  const auto place = std::ranges::find(mappings, nullptr, [](const Mapping& m) { return m.memory.load(); });
  check(place != mappings.end(), "a process maps few rings");
  void* memory = ::mmap(nullptr, sizeof(bsp_ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return fail_errno("mapping the ring");
  place->lost = false;
  place->memory = static_cast<char*>(memory);
  return static_cast<bsp_ring*>(memory);
}

Mapping& mapping_of(const bsp_ring* ring) {
  const auto place = std::ranges::find(mappings, reinterpret_cast<const char*>(ring),
                                       [](const Mapping& m) { return m.memory.load(); });
  check(place != mappings.end(), "the ring is mapped");
  return *place;
}

void unmap(bsp_ring* ring) {
  mapping_of(ring).memory = nullptr;
  ::munmap(ring, sizeof *ring);
}

Result<bsp_ring*> create(const std::string& path) {
  BSP_TRY(NewFile file, NewFile::beside(path));
  // Allocated now, because a full tmpfs is an error here but would be a SIGBUS in the program later.
  if (int error = ::posix_fallocate(file.fd(), 0, sizeof(bsp_ring)); error != 0)
    return fail_errno("making " + path, error);
  BSP_TRY(bsp_ring * ring, map(file.fd()));
  bsp_ring_format(ring);
  // The program runs under its own uid, which isn't known here yet.
  if (auto published = file.publish(0666); !published) {
    unmap(ring);
    return std::unexpected(published.error());
  }
  return ring;
}

static_assert(BSP_RING_RECORDS == wire::kMostRecords && BSP_MAX_SETS == wire::kMostSets &&
              BSP_RING_PARTNERS == wire::kMostPartners);

// Bounds the values to what the wire format accepts; a rank that reports wrong values harms only itself.
std::uint64_t clamped(std::uint64_t value) { return std::min(value, wire::kMostNs); }

std::vector<std::uint64_t> without_trailing_zeros(const std::uint64_t* values) {
  std::size_t used = BSP_MAX_SETS;
  while (used > 0 && values[used - 1] == 0) --used;
  std::vector<std::uint64_t> kept(values, values + used);
  std::ranges::transform(kept, kept.begin(), clamped);
  return kept;
}

// Those found after superstep `since`: earlier ones have been reported.
void add_partners(const bsp_ring& ring, std::uint64_t since, wire::RankReport& report) {
  bsp_partners partners;
  int attempt = 0;
  while (bsp_partners_read(&ring, &partners) == 0)
    if (++attempt == 100) return;  // they are being written; the next poll will see them
  if (partners.superstep <= since) return;
  for (std::size_t i = 0; i < BSP_RING_PARTNERS; ++i) {
    if (partners.bytes[i] == 0) continue;
    report.partners.push_back(partners.ranks[i]);
    report.partner_bytes.push_back(clamped(partners.bytes[i]));
  }
}

}  // namespace

Result<RingFile> RingFile::open(const std::string& path) {
  auto fd = open_own_file(path, O_RDWR);
  if (!fd && fd.error().code != ErrorCode::kNotFound && fd.error().code != ErrorCode::kRefused)
    return std::unexpected(fd.error());
  if (fd) {
    struct stat info{};
    if (::fstat(fd->get(), &info) != 0) return fail_errno("reading " + path);
    if (info.st_size == static_cast<off_t>(sizeof(bsp_ring))) {
      BSP_TRY(bsp_ring * ring, map(fd->get()));
      if (bsp_ring_valid(ring)) return RingFile(ring, true);
      unmap(ring);
    }
  }
  BSP_TRY(bsp_ring * ring, create(path));
  return RingFile(ring, false);
}

bool RingFile::intact() const { return bsp_ring_valid(ring_) && !mapping_of(ring_).lost; }

void RingFile::clear() {
  if (!intact()) return;
  std::memset(ring_, 0, sizeof *ring_);
  bsp_ring_format(ring_);
}

RingFile::RingFile(RingFile&& other) noexcept : ring_(std::exchange(other.ring_, nullptr)), adopted_(other.adopted_) {}

RingFile::~RingFile() {
  if (ring_) unmap(ring_);
}

std::uint64_t completed(const bsp_ring& ring) {
  return std::min(BSP_RING_LOAD_SEQ(ring.completed), wire::kMostSupersteps);
}

wire::RankReport make_report(const bsp_ring& ring, std::uint32_t rank, std::uint64_t since, std::uint64_t every) {
  wire::RankReport report;
  report.rank = rank;
  report.completed = completed(ring);
  report.epoch = std::min<std::uint64_t>(BSP_RING_LOAD(ring.epoch), wire::kMostSupersteps);
  report.memory_bytes = clamped(BSP_RING_LOAD(ring.memory_bytes));
  if (const std::uint32_t edge = BSP_RING_LOAD(ring.edge_call); edge >= 1 && edge <= names::kEdgeCalls.size()) {
    report.edge_call = names::kEdgeCalls[edge - 1];
    report.edge_stride = std::min<std::uint64_t>(BSP_RING_LOAD(ring.edge_stride), wire::kMostSupersteps);
    report.edge_chosen_after = std::min(BSP_RING_LOAD(ring.edge_chosen_after), report.completed);
  }
  add_partners(ring, since, report);
  // At most one turn of the ring, whatever the two numbers are.
  const std::uint64_t after = report.completed - std::min(report.completed, since);
  for (std::uint64_t left = std::min<std::uint64_t>(after, BSP_RING_RECORDS); left > 0; --left) {
    const std::uint64_t s = report.completed - left + 1;
    bsp_superstep_record record;
    if (!wire::sampled(s, every) || !bsp_record_read(&ring, s, &record)) continue;
    report.supersteps.push_back({.superstep = s,
                                 .end_ns = clamped(record.end_ns),
                                 .instructions = clamped(record.instructions),
                                 .compute_ns = clamped(record.compute_ns),
                                 .comm_ns = clamped(record.comm_ns),
                                 .edge_ns = clamped(record.edge_ns),
                                 .sent_bytes = clamped(record.sent_bytes),
                                 .recv_bytes = without_trailing_zeros(record.recv_bytes),
                                 .recv_ns = without_trailing_zeros(record.recv_ns)});
  }
  return report;
}

std::string blocked_reason(const bsp_ring& ring) {
  char text[BSP_RING_TEXT];
  for (int attempt = 0; attempt < 100; ++attempt)
    if (bsp_reason_read(&ring, text)) return text;
  return "";  // it is being written; the next poll will see it
}

std::string_view most_called(const bsp_ring& ring) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < BSP_RING_COLLECTIVES; ++i)
    if (BSP_RING_LOAD(ring.collectives[i]) > BSP_RING_LOAD(ring.collectives[best])) best = i;
  return BSP_RING_LOAD(ring.collectives[best]) == 0 ? "" : names::kEdgeCalls[best];
}

}  // namespace bsp::collect
