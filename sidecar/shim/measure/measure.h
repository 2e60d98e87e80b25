// Measures one superstep of this rank: time outside MPI, time inside, instructions, bytes received per Set.
//
// Every outermost MPI call reads the time-stamp counter twice (~20 ns each). Everything more expensive happens at
// superstep edges, where ticks are converted to nanoseconds by the ratio of the two clocks over the superstep.
//
// Instructions I_t(i) must count the computation phase, not MPI's busy waiting. Reading the meter (perf event, else
// CPU time of all threads) costs a system call, so it is read only where a stretch of computation or an MPI call took
// longer than kLongTicks. Shorter stretches of computation are extrapolated from the rate in the long ones (CPU time:
// 1 ns per ns).
//
// Receive time BT_t(i,j) must be the transfer without the wait for a late sender. The receiver can't see when the
// sender began, so the wait is estimated: of the time d that a call spent receiving b bytes from Set j, min(d, b * f)
// counts, where f is the lowest recent time per byte for messages of that size class (a power of two) from that Set.
// f decays by 2 % per message and is reset in each epoch. The estimate is exact if the message had arrived or was on
// the wire. It is too low only for messages of a size that always overlapped computation (nonblocking calls), and
// then the rank really didn't wait.
//
// Partners: the bytes that each rank has sent here add up, until the heaviest are written to the ring: at the edge of an
// epoch's supersteps 1, 2, 4, 8, … and once a second. Then all sums are halved, and so is the number of supersteps that
// they are of. So their quotient is a mean in which what is a second older counts half. Not with more than kMostPeers
// ranks: no decision uses them then (operator/decide/auto/partners.h), and every report would be twice as long. What a collective brings
// from all ranks of a communicator alike is added to each of them at such an edge only, so that no collective takes longer
// with the number of ranks.
//
// With MPI_THREAD_MULTIPLE the time of one thread counts: first of the one that initialised MPI, then of the one that
// calls the superstep edges. The bytes of all threads count.
#pragma once

#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "sidecar/ring/ring.h"
#include "sidecar/shim/library/real.h"
#include "sidecar/shim/measure/peers.h"
#include "sidecar/shim/process/nanoseconds.h"
#include "sidecar/shim/process/state.h"
#include "sidecar/shim/process/threads.h"

namespace bsp::shim {

inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return clock_ns(CLOCK_MONOTONIC_RAW);
#endif
}

inline constexpr std::uint64_t kLongTicks = 200000;  // 50-100 us

// Without MPI_THREAD_MULTIPLE only one thread at a time is in MPI.
class MeasureLock {
 public:
  MeasureLock() {
    if (state.multiple) [[unlikely]]
      mutex_.lock();
  }
  ~MeasureLock() {
    if (state.multiple) [[unlikely]]
      mutex_.unlock();
  }
  MeasureLock(const MeasureLock&) = delete;
  MeasureLock& operator=(const MeasureLock&) = delete;

 private:
  static std::mutex mutex_;
};

// After a receive most of what the shim touches is no longer in the first-level cache, because the kernel has run. So what every
// call reads and writes lies together, and what each Set's messages do.
class alignas(64) Measure {
 public:
  // An epoch has opened, perhaps on another machine. `sets` is the Set number of each world rank.
  void begin_epoch(const std::vector<std::uint32_t>& sets);
  // Closes what CRIU can't dump.
  void end_epoch();

  [[gnu::always_inline]] void enter_mpi() {
    MeasureLock guard;
    const std::uint64_t now = ticks();
    const std::uint64_t stretch = now - mark_;
    compute_ += stretch;
    mark_ = now;
    ++calls_;
    if (stretch > kLongTicks) [[unlikely]]
      meter_after_computation();
    else
      short_compute_ += stretch;
  }
  // Ticks since the call began.
  [[gnu::always_inline]] std::uint64_t leave_mpi() {
    MeasureLock guard;
    const std::uint64_t now = ticks();
    const std::uint64_t stretch = now - mark_;
    comm_ += stretch;
    mark_ = now;
    if (stretch > kLongTicks) [[unlikely]]
      meter_after_mpi();
    else
      short_mpi_ += stretch;
    return stretch;
  }
  // Ticks since this thread's MPI call began.
  [[nodiscard]] std::uint64_t in_call() const { return ticks() - (state.multiple ? thread_state.call_began : mark_); }

  void sent(std::uint64_t bytes) {
    MeasureLock guard;
    sent_bytes_ += bytes;
  }
  // Adds `bytes` received from world rank `rank` in a call that has taken `call_ticks`.
  void received(int rank, std::uint64_t bytes, std::uint64_t call_ticks);
  // The same from each of `peers` but this rank; the time doesn't grow with their number. Not `as_partners`: every other rank of the job
  // sends as much.
  void received_from_all(const Peers& peers, std::uint64_t bytes, std::uint64_t call_ticks, bool as_partners);

  // The edge call has completed: writes the record of `superstep` and starts the next one.
  void end_superstep(bsp_ring* ring, std::uint64_t superstep);
  // Excludes the time since the last reading (the gate).
  void skip() {
    MeasureLock guard;
    mark_ = ticks();
  }

 private:
  static constexpr std::size_t kSizeClasses = 40;
  static constexpr std::size_t kMostPeers = 10'000;

  void start_meter();
  [[nodiscard]] std::uint64_t read_meter() const;
  [[gnu::cold]] void meter_after_computation();
  [[gnu::cold]] void meter_after_mpi();
  void sample_memory(bsp_ring* ring, std::uint64_t now_ns);
  void sample_partners(bsp_ring* ring, std::uint64_t superstep, std::uint64_t now_ns);

  std::uint64_t mark_ = 0;  // when the current stretch began
  std::uint64_t compute_ = 0;
  std::uint64_t comm_ = 0;
  std::uint64_t calls_ = 0;
  std::uint64_t short_compute_ = 0;  // ticks since the meter's last reading
  std::uint64_t short_mpi_ = 0;
  std::uint64_t sent_bytes_ = 0;

  int perf_fd_ = -1;
  std::uint64_t meter_ = 0;         // last reading
  std::uint64_t instructions_ = 0;  // of the computation phase, this superstep
  double meter_per_tick_ = 0;       // while computing

  std::uint64_t start_ticks_ = 0;  // of the superstep
  std::uint64_t start_ns_ = 0;
  double ns_per_tick_ = 0.4;
  std::uint64_t memory_sampled_ns_ = 0;

  struct Peer {
    std::uint64_t bytes = 0;  // received from it, faded
    std::uint32_t set = 0;
  };
  std::vector<Peer> peers_;              // by world rank
  std::uint64_t epoch_ = 0;              // how many have begun
  std::vector<const Peers*> from_all_;   // of which bytes aren't counted by rank yet
  std::uint64_t epochs_supersteps_ = 0;  // that have ended in this epoch
  double partners_supersteps_ = 0;       // that the bytes of the peers are of
  std::uint64_t partners_sampled_ns_ = 0;

  struct alignas(64) FromSet {
    std::uint64_t bytes = 0;  // received in this superstep
    std::uint64_t ticks = 0;
    float floor[kSizeClasses] = {};  // ticks per byte; 0: none seen

    void add(std::uint64_t messages, std::uint64_t bytes_each, std::uint64_t ticks_each);
  };
  // Of a communicator's world ranks: another rank of this job.
  [[nodiscard]] bool is_other(int rank) const {
    return rank >= 0 && rank != state.rank && static_cast<std::size_t>(rank) < peers_.size();
  }
  void find_sets_of(const Peers& peers);
  FromSet from_[BSP_MAX_SETS];
  std::size_t sets_ = 0;  // of them that ranks are in
};

extern Measure measure;

// The message that a receive has just returned. The program's answer mustn't wait until it is counted: that is done by the next
// call, after MPI's part of it, and before anybody reads the counts. Never set with MPI_THREAD_MULTIPLE.
struct Receipt {
  const Peers* peers = nullptr;  // nullptr: none
  int source = 0;
  std::uint64_t bytes = 0;
  std::uint64_t call_ticks = 0;
};
extern Receipt receipt;
void count_receipt();  // counters.cc
inline void settle_receipt() {
  if (receipt.peers != nullptr) count_receipt();
}

// --- Being inside MPI ----------------------------------------------------------------------------------

extern std::atomic<const ThreadState*> measured_thread;
inline bool is_measured() { return measured_thread.load(std::memory_order_relaxed) == &thread_state; }
inline void measure_this_thread() { measured_thread.store(&thread_state, std::memory_order_relaxed); }

class Call {
 public:
  [[gnu::always_inline]] Call() {
    if (!state.loaded) [[unlikely]]
      load_real();
    if (thread_state.depth++ != 0) return;
    if (state.multiple) [[unlikely]] {
      enter_threaded();
      thread_state.call_began = ticks();
      if (!is_measured()) return;
    }
    measure.enter_mpi();
  }
  [[gnu::always_inline]] ~Call() {
    if (--thread_state.depth != 0) return;
    if (!ended_ && (!state.multiple || is_measured())) [[likely]] {
      measure.leave_mpi();
      settle_receipt();
    }
    if (state.multiple) [[unlikely]]
      leave_threaded();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // MPI's part is done; returns the ticks since the call began. The shim's work after this counts as computation,
  // which saves another read of the counter.
  std::uint64_t end() {
    if (ended_ || thread_state.depth != 1 || (state.multiple && !is_measured())) return measure.in_call();
    ended_ = true;
    return measure.leave_mpi();
  }

 private:
  bool ended_ = false;
};

// In place of Call, for what MPI answers from its own memory: not measured, so it costs next to nothing. But it keeps this
// thread out of MPI, too, while another one closes the epoch: between two sessions MPI aborts even in such a call.
class BriefCall {
 public:
  [[gnu::always_inline]] BriefCall() : threaded_(state.multiple) {
    if (!state.loaded) [[unlikely]]
      load_real();
    if (threaded_ && thread_state.depth++ == 0) enter_threaded();
  }
  [[gnu::always_inline]] ~BriefCall() {
    if (threaded_ && --thread_state.depth == 0) leave_threaded();
  }
  BriefCall(const BriefCall&) = delete;
  BriefCall& operator=(const BriefCall&) = delete;

 private:
  const bool threaded_;
};

}  // namespace bsp::shim
