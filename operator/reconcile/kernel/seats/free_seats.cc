#include "operator/reconcile/kernel/seats/free_seats.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {
namespace {

bool waits(const AppFacts& app, const SidecarFacts* sidecar) {
  return !app.ended && !app.cannot_start && sidecar && sidecar->answers() && sidecar->status->init_connected &&
         sidecar->status->phase == wire::RankPhase::kWaiting &&
         sidecar->status->transfer.phase == wire::TransferPhase::kIdle;
}

// Pods that have to go: their nodes are drained, or they are evicted, of which a request for each of their ranks tells.
std::set<std::string_view> leaving_pods(const Observed& o) {
  std::set<std::string_view> pods;
  for (const auto& [name, pod] : o.pods)
    if (pod.deleting || o.leaving.contains(pod.node)) pods.insert(name);
  for (const MoveRequest& request : waiting_requests(o))
    if (request.away && request.rank < o.job.status.ranks.size()) pods.insert(o.job.status.ranks[request.rank].pod);
  return pods;
}

// Calls `f` with each seat that no rank has, of pods that have ranks.
template <class F>
void for_each_seat_without_rank(const Observed& o, F f) {
  const auto& epoch = o.job.status.epoch;
  if (!epoch || std::ranges::none_of(o.pods, [](const auto& pod) { return pod.second.apps.size() > 1; })) return;
  std::set<Seat> taken;
  std::set<std::string_view> with_ranks;
  for (const wire::Member& member : epoch->members) {
    taken.insert(seat_of(member));
    with_ranks.insert(member.pod);
  }
  for (const auto& [name, pod] : o.pods) {
    if (pod.attempt != o.job.status.attempt || !with_ranks.contains(name)) continue;
    for (std::uint32_t local = 0; local < pod.apps.size(); ++local)
      if (const Seat seat{name, local}; !taken.contains(seat)) f(seat, pod, pod.apps[local]);
  }
}

}  // namespace

FreeSeats free_seats(const Observed& o) {
  FreeSeats free;
  std::optional<std::set<std::string_view>> leaving;  // not read where no seat is free, as in most jobs
  for_each_seat_without_rank(o, [&](const Seat& seat, const PodFacts& pod, const AppFacts& app) {
    if (!leaving) leaving = leaving_pods(o);
    if (!leaving->contains(seat.pod) && waits(app, o.sidecar(seat))) free[pod.node].push_back(seat);
  });
  return free;
}

std::vector<Leftover> leftovers(const Observed& o) {
  using wire::TransferPhase;
  std::vector<Leftover> left;
  for_each_seat_without_rank(o, [&](const Seat& seat, const PodFacts& pod, const AppFacts& app) {
    const SidecarFacts* sidecar = o.sidecar(seat);
    if (pod.deleting || app.ended || !sidecar || !sidecar->answers() || !sidecar->status->init_connected) return;
    const wire::TransferStatus& transfer = sidecar->status->transfer;
    const bool is_source = transfer.phase == TransferPhase::kDumping || transfer.phase == TransferPhase::kSent;
    if (transfer.phase != TransferPhase::kIdle && !is_source && !transfer.migration.empty())
      left.push_back({seat, transfer.migration});
  });
  return left;
}

}  // namespace bsp::reconcile
