#include "sidecar/shim/measure/measure.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sidecar/ring/ring_access.h"
namespace bsp::shim {

Measure measure;
std::mutex MeasureLock::mutex_;
std::atomic<const ThreadState*> measured_thread{nullptr};

namespace {

constexpr std::uint64_t kMemoryPeriodNs = 1000000000;
constexpr std::uint64_t kPartnersPeriodNs = 1000000000;

// Counts user-space instructions of this thread and of those it starts from now on; -1 if not permitted.
int open_perf_event() {
  perf_event_attr attr;
  std::memset(&attr, 0, sizeof attr);
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_HARDWARE;
  attr.config = PERF_COUNT_HW_INSTRUCTIONS;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.inherit = 1;
  return static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

void Measure::start_meter() {
  if (perf_fd_ < 0) perf_fd_ = open_perf_event();
  meter_ = read_meter();
  short_compute_ = 0;
  short_mpi_ = 0;
  if (state.ring != nullptr)
    BSP_RING_STORE(state.ring->instruction_source,
                   static_cast<std::uint32_t>(perf_fd_ >= 0 ? BSP_INSTRUCTIONS_PERF : BSP_INSTRUCTIONS_CPU_TIME));
}

std::uint64_t Measure::read_meter() const {
  std::uint64_t count = 0;
  if (perf_fd_ >= 0 && read(perf_fd_, &count, sizeof count) == sizeof count) return count;
  return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void Measure::begin_epoch(const std::vector<std::uint32_t>& sets) {
  ++epoch_;
  peers_.resize(sets.size());
  sets_ = 0;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    peers_[i].set = std::min(sets[i], BSP_MAX_SETS - 1);
    sets_ = std::max<std::size_t>(sets_, peers_[i].set + 1);
  }
  epochs_supersteps_ = 0;
  for (FromSet& from : from_) std::ranges::fill(from.floor, 0.f);
  start_meter();
  start_ticks_ = ticks();
  start_ns_ = clock_ns(CLOCK_MONOTONIC_RAW);
  mark_ = start_ticks_;
}

void Measure::end_epoch() {
  if (perf_fd_ >= 0) ::close(perf_fd_);
  perf_fd_ = -1;
}

// Since the last reading there were short stretches of both kinds, then one long stretch of computation.
void Measure::meter_after_computation() {
  const std::uint64_t now = read_meter();
  const double rate = perf_fd_ >= 0 ? meter_per_tick_ : ns_per_tick_;
  const double in_mpi = static_cast<double>(short_mpi_) * rate;
  const std::uint64_t delta = now - meter_;
  const std::uint64_t mpi = std::min(delta, static_cast<std::uint64_t>(in_mpi));
  instructions_ += delta - mpi;
  if (perf_fd_ >= 0 && short_compute_ == 0 && compute_ > 0)
    meter_per_tick_ = static_cast<double>(instructions_) / static_cast<double>(compute_);
  meter_ = now;
  short_compute_ = 0;
  short_mpi_ = 0;
}

// Since the last reading there were short stretches of both kinds, then one long MPI call.
void Measure::meter_after_mpi() {
  const std::uint64_t now = read_meter();
  const double rate = perf_fd_ >= 0 ? meter_per_tick_ : ns_per_tick_;
  instructions_ += std::min(now - meter_, static_cast<std::uint64_t>(static_cast<double>(short_compute_) * rate));
  meter_ = now;
  short_compute_ = 0;
  short_mpi_ = 0;
}

void Measure::FromSet::add(std::uint64_t messages, std::uint64_t bytes_each, std::uint64_t ticks_each) {
  float& lowest = floor[std::min<std::size_t>(std::bit_width(bytes_each), kSizeClasses - 1)];
  const auto size = static_cast<float>(bytes_each);
  const auto took = static_cast<float>(ticks_each);
  const float aged = lowest * 1.02f;
  lowest = lowest == 0 || took < aged * size ? took / size : aged;  // a division costs more than all the rest
  bytes += messages * bytes_each;
  ticks += messages * std::min(ticks_each, static_cast<std::uint64_t>(lowest * size));
}

void Measure::received(int rank, std::uint64_t bytes, std::uint64_t call_ticks) {
  if (rank < 0 || bytes == 0 || static_cast<std::size_t>(rank) >= peers_.size()) return;
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  MeasureLock guard;
  peer.bytes += bytes;
  from_[peer.set].add(1, bytes, call_ticks);
}

void Measure::received_from_all(const Peers& peers, std::uint64_t bytes, std::uint64_t call_ticks, bool as_partners) {
  if (bytes == 0) return;
  MeasureLock guard;
  if (peers.from_all.epoch != epoch_) [[unlikely]]
    find_sets_of(peers);
  for (const auto& [set, ranks] : peers.from_all.sets) from_[set].add(ranks, bytes, call_ticks);
  if (!as_partners) return;
  if (peers.from_all.bytes == 0) from_all_.push_back(&peers);
  peers.from_all.bytes += bytes;
}

void Measure::find_sets_of(const Peers& peers) {
  std::uint32_t ranks[BSP_MAX_SETS] = {};
  for (const int rank : peers.world)
    if (is_other(rank)) ++ranks[peers_[static_cast<std::size_t>(rank)].set];
  peers.from_all.epoch = epoch_;
  peers.from_all.sets.clear();
  for (std::uint32_t set = 0; set < BSP_MAX_SETS; ++set)
    if (ranks[set] > 0) peers.from_all.sets.emplace_back(set, ranks[set]);
}

void Measure::end_superstep(bsp_ring* ring, std::uint64_t superstep) {
  MeasureLock guard;
  const std::uint64_t now_ticks = ticks();
  const std::uint64_t now_ns = clock_ns(CLOCK_MONOTONIC_RAW);
  const std::uint64_t edge = now_ticks - mark_;
  const std::uint64_t reading = read_meter();
  {  // the remainder since the last reading; the edge call counts as MPI
    const double rate = perf_fd_ >= 0 ? meter_per_tick_ : ns_per_tick_;
    instructions_ += std::min(reading - meter_, static_cast<std::uint64_t>(static_cast<double>(short_compute_) * rate));
    meter_ = reading;
    short_compute_ = 0;
    short_mpi_ = 0;
  }
  if (now_ticks > start_ticks_)
    ns_per_tick_ = static_cast<double>(now_ns - start_ns_) / static_cast<double>(now_ticks - start_ticks_);
  auto ns = [&](std::uint64_t t) { return static_cast<std::uint64_t>(static_cast<double>(t) * ns_per_tick_); };
  if (ring != nullptr) {
    bsp_superstep_record* record = bsp_record_begin(ring, superstep);
    bsp_record_set(&record->end_ns, clock_ns(CLOCK_REALTIME));
    bsp_record_set(&record->instructions, instructions_);
    bsp_record_set(&record->compute_ns, ns(compute_));
    bsp_record_set(&record->comm_ns, ns(comm_));
    bsp_record_set(&record->edge_ns, ns(edge));
    bsp_record_set(&record->sent_bytes, sent_bytes_);
    for (std::size_t set = 0; set < BSP_MAX_SETS; ++set) {
      bsp_record_set(&record->recv_bytes[set], set < sets_ ? from_[set].bytes : 0);
      bsp_record_set(&record->recv_ns[set], set < sets_ ? ns(from_[set].ticks) : 0);
    }
    bsp_record_publish(record, superstep);
    BSP_RING_STORE(ring->calls, calls_);
    sample_memory(ring, now_ns);
    sample_partners(ring, superstep, now_ns);
  }
  compute_ = comm_ = instructions_ = sent_bytes_ = 0;
  for (std::size_t set = 0; set < sets_; ++set) from_[set].bytes = from_[set].ticks = 0;
  start_ticks_ = now_ticks;
  start_ns_ = now_ns;
  mark_ = ticks();
}

// M(i): resident memory that isn't shared with a file, sampled once a second.
void Measure::sample_memory(bsp_ring* ring, std::uint64_t now_ns) {
  if (memory_sampled_ns_ != 0 && now_ns - memory_sampled_ns_ < kMemoryPeriodNs) return;
  memory_sampled_ns_ = now_ns;
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char text[128];
  const ssize_t got = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (got <= 0) return;
  text[got] = '\0';
  unsigned long total = 0;
  unsigned long resident = 0;
  unsigned long shared = 0;
  if (std::sscanf(text, "%lu %lu %lu", &total, &resident, &shared) != 3) return;
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  BSP_RING_STORE(ring->memory_bytes, (resident - std::min(shared, resident)) * page);
}

// Visits every rank, so not in each superstep.
void Measure::sample_partners(bsp_ring* ring, std::uint64_t superstep, std::uint64_t now_ns) {
  if (peers_.size() > kMostPeers) return;
  ++partners_supersteps_;
  if (!std::has_single_bit(++epochs_supersteps_) && now_ns - partners_sampled_ns_ < kPartnersPeriodNs) return;
  partners_sampled_ns_ = now_ns;
  for (const Peers* all : from_all_) {
    for (const int rank : all->world)
      if (is_other(rank)) peers_[static_cast<std::size_t>(rank)].bytes += all->from_all.bytes;
    all->from_all.bytes = 0;
  }
  from_all_.clear();
  bsp_partners heaviest{.superstep = superstep, .ranks = {}, .bytes = {}};
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const std::uint64_t bytes = peers_[i].bytes;
    if (bytes == 0) continue;
    peers_[i].bytes = bytes / 2;
    std::size_t at = BSP_RING_PARTNERS;
    for (; at > 0 && heaviest.bytes[at - 1] < bytes; --at) {
      if (at == BSP_RING_PARTNERS) continue;  // the last one drops out
      heaviest.bytes[at] = heaviest.bytes[at - 1];
      heaviest.ranks[at] = heaviest.ranks[at - 1];
    }
    if (at == BSP_RING_PARTNERS) continue;
    heaviest.bytes[at] = bytes;
    heaviest.ranks[at] = static_cast<std::uint32_t>(i);
  }
  for (std::uint64_t& bytes : heaviest.bytes)
    bytes = static_cast<std::uint64_t>(static_cast<double>(bytes) / partners_supersteps_);
  partners_supersteps_ /= 2;
  bsp_partners_set(ring, &heaviest);
}

}  // namespace bsp::shim
