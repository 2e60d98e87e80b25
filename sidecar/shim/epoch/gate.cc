// The gate's protocol. ring.h describes the gate word.
//
//   edge s -> completed = s -> gate word? --none--> continue
//                                 | armed at P <= s: wait here, epoch open, until committed or cancelled
//                                 | committed or dropping: the ranks agree (two reductions)
//                                 |   a rank votes to drop it -> all ignore this gate from now on
//                                 |   a rank can't close -> continue to the next edge, reason recorded
//                                 |   messages or requests are under way -> settle them, agree again
//                                 |   all can -> save objects, close, unmap, SIGSTOP
//                                 |              ... (here the process may be moved) ...
//                                 |              SIGCONT -> next descriptor -> open, restore objects
#include "sidecar/shim/epoch/gate.h"

#include <signal.h>
#include <time.h>

#include <string>

#include "base/core/realtime.h"
#include "sidecar/ring/ring_access.h"
#include "sidecar/shim/epoch/agreement.h"
#include "sidecar/shim/epoch/blockers.h"
#include "sidecar/shim/epoch/edges.h"
#include "sidecar/shim/epoch/epoch.h"
#include "sidecar/shim/epoch/reports.h"
#include "sidecar/shim/library/graceful_close.h"
#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/messages/requests.h"
#include "sidecar/shim/messages/undelivered.h"
#include "sidecar/shim/objects/files.h"
#include "sidecar/shim/objects/recipes.h"
#include "sidecar/shim/objects/windows.h"
#include "sidecar/shim/process/file_identity.h"
#include "sidecar/shim/process/moved_clock.h"
#include "sidecar/shim/process/moved_cpu_time.h"
#include "sidecar/shim/process/nanoseconds.h"
#include "sidecar/shim/process/roomy_stack.h"
#include "sidecar/shim/process/state.h"
#include "sidecar/shim/process/surroundings.h"
#include "sidecar/shim/process/threads.h"
#include "sidecar/shim/process/timer_descriptors.h"

namespace bsp::shim {
namespace {

std::uint32_t postponed = 0;
std::uint64_t dropped = 0;  // superstep of the last gate that the ranks agreed to drop

// Waits at an armed gate until it is committed or cancelled; returns the new gate word.
std::uint64_t wait_while_armed(std::uint64_t word, std::uint64_t superstep) {
  set_rank_state(BSP_RANK_AT_GATE);
  while (bsp_gate_state_of(word) == BSP_GATE_ARMED && bsp_gate_superstep(word) <= superstep) {
    const timespec pause{0, 20000};
    nanosleep(&pause, nullptr);
    word = BSP_RING_LOAD_SEQ(state.ring->gate);
  }
  set_rank_state(BSP_RANK_RUNNING);
  return word;
}

// SIGCONT continues the rank, and isn't meant for the program: its handler would run, or it would find the signal pending. The
// kernel discards a signal whose action is to do nothing: on arrival, or where a thread blocks it, once the action is set.
class ContinuedUnnoticed {
 public:
  ContinuedUnnoticed() { sigaction(SIGCONT, &nothing_, &of_program_); }
  ~ContinuedUnnoticed() {
    sigaction(SIGCONT, &nothing_, nullptr);
    sigaction(SIGCONT, &of_program_, nullptr);
  }
  ContinuedUnnoticed(const ContinuedUnnoticed&) = delete;
  ContinuedUnnoticed& operator=(const ContinuedUnnoticed&) = delete;

 private:
  struct sigaction nothing_{};  // SIG_DFL
  struct sigaction of_program_{};
};

void stop_until_next_epoch(EpochDescriptor& next) {
  const ContinuedUnnoticed guard;
  const Untouchable untouchable;
  do {
    clock_before_stop();
    raise(SIGSTOP);
    clock_after_stop();
  } while (!read_descriptor(next) || next.epoch <= state.epoch);
}

// Reports at how many edges this rank could not close since the gate was set, and why not at the last one ("" if it
// could).
void report_postponed(std::uint32_t edges, const std::string& why, bool for_good = false) {
  postponed = edges;
  BSP_RING_STORE(state.ring->blocked_for_good, for_good ? 1u : 0u);
  bsp_reason_set(state.ring, why.c_str());
  BSP_RING_STORE(state.ring->postponed, postponed);
}

void close_and_reopen(bool settled, std::uint64_t superstep) {
  const std::uint64_t close_start = clock_ns(CLOCK_MONOTONIC);
  set_rank_state(BSP_RANK_CLOSING);
  report_postponed(0, "");
  save_objects();
  close_epoch();
  forget_unused_peers();
  BSP_RING_STORE(state.ring->close_ns, clock_ns(CLOCK_MONOTONIC) - close_start);
  unmap_ring();
  cpu_time_before_stop();
  timers_before_stop();
  identities_before_stop();

  EpochDescriptor next;
  stop_until_next_epoch(next);

  cpu_time_after_stop();
  timers_after_stop();
  identities_after_stop();
  const std::uint64_t open_start = clock_ns(CLOCK_MONOTONIC);
  const std::uint64_t cpu_from = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  map_ring();
  BSP_RING_STORE_SEQ(state.ring->completed, superstep);  // the ring may belong to another pod
  report_edge();
  report_mpi();
  open_epoch(next);
  restore_objects();
  reopen_windows();
  reopen_files();
  restore_requests();
  if (settled) deliver_again();
  restart_choosing();
  report_open(open_start, cpu_from);
}

void committed(std::uint64_t word, std::uint64_t superstep) {
  Blocker found{.reason =
                    "another thread inside MPI, in a collective or a call on a window or file: let threads be out of "
                    "those at some superstep's end"};
  if (keep_others_out_of_mpi(bsp_gate_superstep(word))) found = blocker();
  ignore_link_errors();
  const Agreement agreed = agree(found, word);
  if (agreed.verdict != Verdict::kClose) {
    stop_ignoring_link_errors();
    if (agreed.settled) deliver_again();
  }
  switch (agreed.verdict) {
    case Verdict::kClose:
      close_and_reopen(agreed.settled, superstep);
      break;
    case Verdict::kPostpone:
      report_postponed(postponed + (agreed.reason.empty() ? 0 : 1), agreed.reason, found.for_good);
      break;
    case Verdict::kDrop:
      report_postponed(0, "");
      dropped = bsp_gate_superstep(word);
      BSP_RING_STORE_SEQ(state.ring->gate_dropped, dropped);
      break;
  }
  let_others_into_mpi();
}

}  // namespace

void pass_gate(std::uint64_t superstep) {
  const std::uint64_t word = bsp_gate_check(state.ring, superstep);
  if (bsp_gate_state_of(word) == BSP_GATE_NONE || bsp_gate_superstep(word) > superstep) [[likely]]
    return;
  if (bsp_gate_superstep(word) == dropped) return;  // its sidecar is about to clear it
  BSP_RING_STORE(state.ring->gate_reached_ns, realtime_ns());
  const std::uint64_t verdict = wait_while_armed(word, superstep);
  if (bsp_gate_state_of(verdict) >= BSP_GATE_COMMITTED && bsp_gate_superstep(verdict) <= superstep)
    with_room([&] { committed(verdict, superstep); });
  measure.skip();
}

}  // namespace bsp::shim
