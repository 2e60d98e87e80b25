#include "sidecar/shim/epoch/edges.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "crds/names.h"
#include "sidecar/shim/epoch/gate.h"
#include "sidecar/shim/library/real.h"
#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/messages/undelivered.h"
#include "sidecar/shim/process/message.h"
#include "sidecar/shim/process/nanoseconds.h"

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
std::uint64_t supersteps = 0;     // that have ended
std::uint64_t chosen_after = 0;   // superstep after which edge_choice chose the edge
std::uint64_t choosing_from = 0;  // CLOCK_MONOTONIC in ns: its last decision

}  // namespace

void report_edge() {
  BSP_RING_STORE(state.ring->edge_chosen_after, chosen_after);
  BSP_RING_STORE(state.ring->edge_stride, stride);
  BSP_RING_STORE(state.ring->edge_call, edge_call == EdgeCall::kUndecided ? 0u : static_cast<std::uint32_t>(edge_call));
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
  ++supersteps;
  if (state.multiple && !is_measured()) measure_this_thread();
  settle_receipt();
  collect_sent_again();
  measure.end_superstep(state.ring, supersteps);
  pass_gate(supersteps);
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
  chosen_after = supersteps + 1;
  report_edge();
  end_superstep();
  return true;
}

void restart_choosing() {
  if (edge_choice) edge_choice->restart();
}

void choose_from_now() { choosing_from = clock_ns(CLOCK_MONOTONIC); }

}  // namespace bsp::shim
