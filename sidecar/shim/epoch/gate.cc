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

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/realtime.h"
#include "crds/names.h"
#include "sidecar/ring/ring_access.h"
#include "sidecar/shim/epoch/blockers.h"
#include "sidecar/shim/epoch/epoch.h"
#include "sidecar/shim/handles/fortran.h"
#include "sidecar/shim/library/graceful_close.h"
#include "sidecar/shim/library/real.h"
#include "sidecar/shim/messages/counters.h"
#include "sidecar/shim/messages/requests.h"
#include "sidecar/shim/messages/undelivered.h"
#include "sidecar/shim/objects/files.h"
#include "sidecar/shim/objects/recipes.h"
#include "sidecar/shim/objects/windows.h"
#include "sidecar/shim/process/file_identity.h"
#include "sidecar/shim/process/leftovers.h"
#include "sidecar/shim/process/message.h"
#include "sidecar/shim/process/moved_clock.h"
#include "sidecar/shim/process/moved_cpu_time.h"
#include "sidecar/shim/process/roomy_stack.h"
#include "sidecar/shim/process/surroundings.h"
#include "sidecar/shim/process/threads.h"
#include "sidecar/shim/process/timer_descriptors.h"

namespace bsp::shim {

EdgeCall edge_call = EdgeCall::kNone;
std::optional<EdgeChoice> edge_choice;

namespace {

#define BSP_EDGE(name) "MPI_" #name,
static_assert(names::kEdgeCalls == std::to_array<std::string_view>({BSP_EDGE_CALLS(BSP_EDGE)}));
#undef BSP_EDGE
static_assert(names::kEdgeCalls.size() == BSP_RING_COLLECTIVES);
static_assert(EdgeChoice::kCalls == BSP_RING_COLLECTIVES);

std::uint64_t stride = 1;
std::uint64_t edge_calls_seen = 0;
std::uint64_t superstep = 0;
std::uint64_t chosen_after = 0;   // superstep after which edge_choice chose the edge
std::uint64_t choosing_from = 0;  // CLOCK_MONOTONIC in ns: its last decision
std::uint32_t postponed = 0;
std::uint64_t dropped = 0;  // superstep of the last gate that the ranks agreed to drop

void set_state(bsp_rank_state s) { BSP_RING_STORE(state.ring->state, static_cast<std::uint32_t>(s)); }

// Waits at an armed gate until it is committed or cancelled; returns the new gate word.
std::uint64_t wait_while_armed(std::uint64_t word) {
  set_state(BSP_RANK_AT_GATE);
  while (bsp_gate_state_of(word) == BSP_GATE_ARMED && bsp_gate_superstep(word) <= superstep) {
    const timespec pause{0, 20000};
    nanosleep(&pause, nullptr);
    word = BSP_RING_LOAD_SEQ(state.ring->gate);
  }
  set_state(BSP_RANK_RUNNING);
  return word;
}

// What the ranks tell each other at a committed gate, as sums over all of them.
struct Tally {
  std::vector<std::int64_t> unreceived;  // element i: messages sent to rank i and not received
  // The number of ranks that have a blocker, a passing one, are making a communicator, vote to drop the gate, don't want to
  // settle messages.
  std::int64_t blocked = 0, waiting = 0, making_comm = 0, votes = 0, reluctant = 0;
  // Not zero while a communicator, window or file is live, or a collective begun, on some of its ranks only.
  std::int64_t half_freed = 0, half_begun = 0;

  template <class Reduce>
  bool reduce(Reduce call) {
    std::vector<std::int64_t> sums = unreceived;
    const std::array others{&blocked, &waiting, &making_comm, &votes, &reluctant, &half_freed, &half_begun};
    for (const std::int64_t* other : others) sums.push_back(*other);
    if (!call(sums)) return false;
    const auto rest = sums.end() - others.size();
    for (std::size_t i = 0; i < others.size(); ++i) *others[i] = rest[static_cast<std::ptrdiff_t>(i)];
    unreceived.assign(sums.begin(), rest);
    return true;
  }
  // Something that no waiting ends.
  [[nodiscard]] bool lasts() const { return blocked != 0 || votes != 0 || half_begun != 0; }
  [[nodiscard]] bool all_received() const {
    return std::ranges::all_of(unreceived, [](std::int64_t messages) { return messages == 0; });
  }
};

// This rank's part.
Tally own_part(const Blocker& blocker, bool drop, bool settles) {
  Tally own;
  for (int i = 0; i < state.size; ++i)
    own.unreceived.push_back(
        static_cast<std::int64_t>(counters.sent_to[static_cast<std::size_t>(i)].load(std::memory_order_relaxed)));
  own.unreceived[static_cast<std::size_t>(state.rank)] -= static_cast<std::int64_t>(messages_received());
  const bool has_one = !blocker.reason.empty();
  own.blocked = has_one && !blocker.passing ? 1 : 0;
  own.waiting = has_one && blocker.passing ? 1 : 0;
  own.making_comm = blocker.makes_comm ? 1 : 0;
  own.votes = drop ? 1 : 0;
  own.reluctant = settles ? 0 : 1;
  if (own.blocked == 0) {
    own.half_freed = share_of_communicators() + share_of_windows() + share_of_files();
    own.half_begun = share_of_collectives();
  }
  return own;
}

// Settling may be in vain, and takes a moment each time. So after a vain one the gate's next 1, 3, 7, … edges do without.
class Settling {
 public:
  // At an edge. `gate`: the superstep that identifies the gate.
  [[nodiscard]] bool is_wanted(std::uint64_t gate) {
    if (gate != gate_) *this = Settling(gate);
    return edges_without_ == 0 || --edges_without_ == 0;
  }
  void was_in_vain(const std::string& why) {
    pause_ = 2 * pause_ + 1;
    edges_without_ = pause_ + 1;
    why_ = why;
  }
  // Why the last one was in vain, as far as this rank knows.
  [[nodiscard]] const std::string& why() const { return why_; }
  explicit Settling(std::uint64_t gate = 0) : gate_(gate) {}

 private:
  std::string why_;
  std::uint64_t gate_;
  std::uint64_t edges_without_ = 0;
  std::uint64_t pause_ = 0;
};
Settling settling;

// The ranks' verdict on a committed gate, identical on every rank.
enum class Verdict { kClose, kPostpone, kDrop };
struct Agreement {
  Verdict verdict = Verdict::kPostpone;
  std::string reason{};  // of a postponement; "" if it is another rank's alone
  bool settled = false;  // the ranks may have taken messages, to be delivered again
};

// `left`: why this rank has left messages in MPI.
Agreement verdict_on(const Tally& tally, const Blocker& own, const std::string& left = "") {
  if (tally.votes != 0) return {.verdict = Verdict::kDrop};
  if (!own.reason.empty() && !own.passing) return {.reason = own.reason};
  if (const std::int64_t messages = tally.unreceived[static_cast<std::size_t>(state.rank)]; messages != 0)
    return {.reason = std::to_string(messages) + " message(s) sent to this rank and not received" + left};
  if (!own.reason.empty()) return {.reason = own.reason};
  const bool others = tally.blocked != 0 || tally.waiting != 0;
  if (tally.half_freed != 0 && !others)
    return {.reason = "a communicator, window or file that not all of its ranks have freed or closed"};
  if (tally.half_begun != 0 && !others)
    return {.reason = "a collective that not all of its ranks have begun, or a persistent one that not all have freed"};
  const bool closes = !others && tally.half_freed == 0 && tally.half_begun == 0 && tally.all_received();
  return {.verdict = closes ? Verdict::kClose : Verdict::kPostpone};
}

// Decides with reductions, because the ranks are in step here. If messages or requests under way are all that keeps the epoch
// open, the ranks settle them and decide again. The last reduction counts the ranks
// whose files can't be saved. They aren't saved before: while something else postpones a gate, the program needn't wait for
// its storage at each edge.
Agreement agree(Blocker blocker, std::uint64_t gate) {
  const bool drop = bsp_gate_state_of(gate) == BSP_GATE_DROPPING;
  const auto sum = [&](std::vector<std::int64_t>& values) {
    return real.Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), pre.int64, pre.sum,
                          private_world) == MPI_SUCCESS;
  };
  const bool settles = settling.is_wanted(bsp_gate_superstep(gate));
  Tally tally;
  const auto tell = [&] {
    tally = own_part(blocker, drop, settles);
    return tally.reduce(sum);
  };
  if (!tell()) return {.reason = blocker.reason};
  if (tally.making_comm != 0 && tally.reluctant == 0 && !tally.lasts()) {
    wait_for_communicators();
    blocker = bsp::shim::blocker();
    if (!tell()) return {.reason = blocker.reason};
    if (tally.making_comm != 0) settling.was_in_vain(blocker.reason);
  }
  Agreement agreed = verdict_on(tally, blocker);
  if (agreed.verdict != Verdict::kClose && !tally.lasts() && tally.half_freed == 0 && tally.making_comm == 0) {
    if (tally.reluctant != 0) return {.reason = settling.why()};
    agree_on_ids();
    const std::string left = settle_messages(tally.all_received());
    blocker = bsp::shim::blocker();
    if (tell()) agreed = verdict_on(tally, blocker, left);
    agreed.settled = true;
    if (agreed.verdict == Verdict::kPostpone) settling.was_in_vain(agreed.reason);
  }
  if (agreed.verdict != Verdict::kClose) return agreed;
  const std::string unsaved = save_files();
  std::vector<std::int64_t> ranks_unsaved{unsaved.empty() ? 0 : 1};
  if (!sum(ranks_unsaved) || ranks_unsaved[0] != 0) return {.reason = unsaved, .settled = agreed.settled};
  agree_on_ids();
  close_windows();  // by collectives of their own, so before the last one of all ranks
  close_files();
  repeat_for_each_link([&] { tally.reduce(sum); });
  return agreed;
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
void report_postponed(std::uint32_t edges, const std::string& why) {
  postponed = edges;
  bsp_reason_set(state.ring, why.c_str());
  BSP_RING_STORE(state.ring->postponed, postponed);
}

void close_and_reopen(bool settled) {
  const std::uint64_t close_start = clock_ns(CLOCK_MONOTONIC);
  set_state(BSP_RANK_CLOSING);
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
  if (edge_choice) edge_choice->restart();
  report_open(open_start, cpu_from);
}

void committed(std::uint64_t word) {
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
      close_and_reopen(agreed.settled);
      break;
    case Verdict::kPostpone:
      report_postponed(postponed + (agreed.reason.empty() ? 0 : 1), agreed.reason);
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

void report_edge() {
  BSP_RING_STORE(state.ring->edge_chosen_after, chosen_after);
  BSP_RING_STORE(state.ring->edge_stride, stride);
  BSP_RING_STORE(state.ring->edge_call, edge_call == EdgeCall::kUndecided ? 0u : static_cast<std::uint32_t>(edge_call));
}

void report_mpi() {
  const auto part = [](int number) { return static_cast<std::uint32_t>(number) & 0xff; };
  BSP_RING_STORE(state.ring->fortran, has_fortran() ? 1u : 0u);
  BSP_RING_STORE(state.ring->thread_level, static_cast<std::uint32_t>(state.thread_level));
  BSP_RING_STORE(state.ring->mpi_version,
                 part(open_mpi_major()) << 16 | part(open_mpi_minor()) << 8 | part(open_mpi_patch()));
}

void set_up_edges() {
  const char* text = std::getenv(names::kEnvSuperstep.data());
  if (text == nullptr || *text == '\0') {
    edge_call = EdgeCall::kBarrier;
    return;
  }
  if (std::string_view(text) == names::kEdgeAuto) {
    edge_call = EdgeCall::kUndecided;
    edge_choice.emplace();
    return;
  }
  const char* colon = std::strchr(text, ':');
  const std::string name(text, colon != nullptr ? static_cast<std::size_t>(colon - text) : std::strlen(text));
  if (colon != nullptr) stride = std::strtoull(colon + 1, nullptr, 10);
#define BSP_EDGE(call) \
  if (name == "MPI_" #call) edge_call = EdgeCall::k##call;
  BSP_EDGE_CALLS(BSP_EDGE)
#undef BSP_EDGE
  if (edge_call == EdgeCall::kNone || stride == 0)
    refuse(
        "BSP_SUPERSTEP is \"%s\": it must be a blocking collective and a stride, such as "
        "MPI_Allreduce:10",
        text);
}

namespace {

// Returns in the same epoch or in another one.
void end_superstep() {
  ++superstep;
  if (state.multiple && !is_measured()) measure_this_thread();
  settle_receipt();
  collect_sent_again();
  measure.end_superstep(state.ring, superstep);
  const std::uint64_t word = bsp_gate_check(state.ring, superstep);
  if (bsp_gate_state_of(word) == BSP_GATE_NONE || bsp_gate_superstep(word) > superstep) [[likely]]
    return;
  if (bsp_gate_superstep(word) == dropped) return;  // its sidecar is about to clear it
  BSP_RING_STORE(state.ring->gate_reached_ns, realtime_ns());
  const std::uint64_t verdict = wait_while_armed(word);
  if (bsp_gate_state_of(verdict) >= BSP_GATE_COMMITTED && bsp_gate_superstep(verdict) <= superstep)
    with_room([&] { committed(verdict); });
  measure.skip();
}

}  // namespace

void superstep_edge() {
  if (++edge_calls_seen % stride == 0) end_superstep();
}

namespace {

// The sums over all ranks of a number, and of its square: the number is the same on all of them only if the square of the first is the
// second, times the ranks.
bool is_same_everywhere(std::int64_t sum, std::int64_t sum_of_squares) {
  return sum * sum == state.size * sum_of_squares;
}

// The ranks have counted different calls, and would come to different edges. So no gate can close; the program goes on.
void give_up_choosing() {
  edge_choice.reset();
  edge_call = EdgeCall::kNone;
  report_edge();
  bsp_reason_set(
      state.ring,
      "the ranks haven't called the same collectives, so Auto can't tell what ends a superstep: name a call in "
      "spec.superstep");
}

}  // namespace

bool choose_edge(EdgeCall call) {
  if (!edge_choice->count(static_cast<std::size_t>(call) - 1)) return false;
  const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
  // The ranks' mean: a clock may have been set, a rank been stopped.
  const std::int64_t check = edge_choice->check_word();
  std::array sums{static_cast<std::int64_t>(now - std::exchange(choosing_from, now)), check, check * check};
  if (real.Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(sums.size()), pre.int64, pre.sum, private_world) !=
      MPI_SUCCESS)
    return false;
  if (!is_same_everywhere(sums[1], sums[2])) {
    give_up_choosing();
    return true;
  }
  if (!edge_choice->decide(1e-9 * static_cast<double>(sums[0]) / state.size)) return false;
  edge_call = static_cast<EdgeCall>(edge_choice->edge().call + 1);
  stride = edge_choice->edge().stride;
  edge_calls_seen = 0;
  chosen_after = superstep + 1;
  report_edge();
  end_superstep();
  return true;
}

void report_open(std::uint64_t started_ns, std::uint64_t started_cpu_ns) {
  BSP_RING_STORE(state.ring->open_ns, clock_ns(CLOCK_MONOTONIC) - started_ns);
  BSP_RING_STORE(state.ring->open_cpu_ns, clock_ns(CLOCK_PROCESS_CPUTIME_ID) - started_cpu_ns);
  BSP_RING_STORE(state.ring->opened_ns, realtime_ns());
  bsp_reason_set(state.ring, "");
  BSP_RING_STORE(state.ring->postponed, 0u);
  set_state(BSP_RANK_RUNNING);
  choosing_from = clock_ns(CLOCK_MONOTONIC);  // not before: the wait for an epoch is no part of the program's calls
  BSP_RING_STORE(state.ring->first_compute_ns, realtime_ns());
  measure.skip();
}

}  // namespace bsp::shim
