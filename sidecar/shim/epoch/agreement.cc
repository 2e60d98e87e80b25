#include "sidecar/shim/epoch/agreement.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "sidecar/ring/ring_access.h"
#include "sidecar/shim/handles/handles.h"
#include "sidecar/shim/library/graceful_close.h"
#include "sidecar/shim/library/real.h"
#include "sidecar/shim/messages/counters.h"
#include "sidecar/shim/messages/undelivered.h"
#include "sidecar/shim/objects/files.h"
#include "sidecar/shim/objects/recipes.h"
#include "sidecar/shim/objects/windows.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {
namespace {

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

}  // namespace

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

}  // namespace bsp::shim
