// A rank that its own CPU limit holds back, on a node that has more, gets more CPU where it is rather than moving: the pod's `resize`
// subresource raises limit and request of its container alike, in a fraction of a second and without a pause. Pure.
//
//   plan_resizes ─> Asked, stored ─> the API server ─┬─> Resized
//                                    and the node    ├─> Deferred, Infeasible: it gets back what it had, and the rank may move
//                                                    └─> Refused: by a quota, for example, or lowered again by somebody else; no rank
//                                                        is resized for a while
//
// A fresh operator goes on from what is stored and from what the pod asks for. While a resize is under way nothing is decided and no wave
// begins, so no rank is resized while it moves. The rank's next pod has the template's CPU again.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

// By the times of supersteps in which no rank was resized. One of `moves`, the ranks that a plan moves, is resized only if its node has all
// that brings it to the others' pace. None while one is under way.
std::vector<crds::ResizeEntry> plan_resizes(const Observed& o, std::span<const double> compute_seconds,
                                            const std::set<std::uint32_t>& moves);
// A call that resizes ranks rather than moving any; in mode Advise it only says so.
void show_resizes(std::vector<crds::ResizeEntry> resizes, crds::ReschedulingMode mode, Decided& call);
// What was planned is to be done.
void ask_for(const std::vector<crds::ResizeEntry>& planned, Time now, crds::BspJobStatus& status);
// What has become of it. True: something is to be stored.
bool settle_resizes(const Observed& o, crds::BspJobStatus& status, std::vector<Event>& events);
// What the pods are to have by what is stored.
std::vector<PodResize> resizes_to_make(const Observed& o);
// The oldest that is under way; null: there is none. One that is to be undone is, as long as that may succeed.
const crds::RankResize* resize_under_way(const Observed& o);

// The limit that holds a rank back: its container's, else the template's. 0: none.
std::int64_t cpu_limit_of(const Observed& o, const crds::RankPlace& place);
// How much more CPU the rank has than the template gives it, ratio.
double raised_by(const Observed& o, const crds::RankPlace& place);
// So much that it is warned of.
bool is_much_throttled(double share);
// By rank, whether that limit holds it back (not 0): as much as is warned of, and its node would give more to one thread. Of a limit of
// more than a thread's share, nothing is concluded.
std::vector<std::uint8_t> held_back_by_limit(const Observed& o);

}  // namespace bsp::reconcile
