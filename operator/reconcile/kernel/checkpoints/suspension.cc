#include "operator/reconcile/kernel/checkpoints/suspension.h"

#include <algorithm>
#include <format>
#include <ranges>

#include "operator/reconcile/kernel/checkpoints/checkpoints.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {
namespace {

Duration grace_of(const crds::BspJob& job) {
  return std::chrono::seconds(crds::duration_seconds(job.spec.checkpoint.grace).value_or(0));
}

std::string supersteps(std::uint64_t n) { return std::format("{} superstep{}", n, n == 1 ? "" : "s"); }
std::string lost(std::uint64_t n) { return supersteps(n) + (n == 1 ? " is lost" : " are lost"); }

// A set whose ranks have yet to stop for it serves as well as another.
std::uint64_t sets_before(const crds::BspJobStatus& status) {
  const std::uint64_t used = status.checkpoint ? status.checkpoint->ids_used : 0;
  const auto wave = stored_wave(status);
  const bool makes_one = wave && *wave && (*wave)->checkpoint && !migrate::is_finished(**wave);
  return makes_one ? (*wave)->checkpoint->set - 1 : used;
}

}  // namespace

bool note_hold(const Observed& o, bool held, std::vector<Event>& events, crds::BspJobStatus& status) {
  const bool noted = status.checkpoint && status.checkpoint->suspending;
  const bool makes_last = held && makes_sets(o.job) && grace_of(o.job) > Duration{};
  if (noted == makes_last) return false;
  if (!makes_last) {
    status.checkpoint->suspending.reset();
    return true;
  }
  if (!status.checkpoint) status.checkpoint.emplace();
  status.checkpoint->suspending = sets_before(status);
  events.push_back({"Normal", kSuspending,
                    std::format("a checkpoint set is made before the pods go; they go in {} at the latest",
                                o.job.spec.checkpoint.grace)});
  return true;
}

bool makes_last_set(const migrate::Wave& wave, const Observed& o) {
  const auto& c = o.job.status.checkpoint;
  return c && c->suspending && wave.checkpoint && wave.checkpoint->set > *c->suspending &&
         o.suspending_for <= grace_of(o.job);
}

LastSet last_set(const Observed& o) {
  const auto& c = o.job.status.checkpoint;
  if (!c || !c->suspending || o.suspending_for > grace_of(o.job)) return LastSet::kSettled;
  if (!c->sets.empty() && c->sets.back().id > *c->suspending) return LastSet::kSettled;
  if (c->pending) return LastSet::kAwaited;
  if (c->ids_used >= *c->suspending + kLastTries) return LastSet::kSettled;
  return can_make_set(o) ? LastSet::kDue : LastSet::kAwaited;
}

void end_hold(crds::BspJobStatus& status) {
  if (!status.checkpoint) return;
  crds::CheckpointStatus& c = *status.checkpoint;
  c.suspending.reset();
  if (c.pending) c.message = std::format("set {} was not stored in time", c.pending->id);
  c.pending.reset();
}

std::string what_is_kept(const crds::BspJobSpec& spec, const crds::BspJobStatus& status) {
  const std::uint64_t superstep = status.superstep.value;
  const auto& c = status.checkpoint;
  const crds::StoredSet* newest = nullptr;
  if (c)
    for (const crds::StoredSet& set : c->sets)
      if (set.unusable.empty()) newest = &set;
  const std::string why = c && !c->message.empty() ? std::format(" ({})", c->message) : "";
  if (newest) {
    const std::uint64_t again = superstep - std::min(superstep, newest->superstep.value);
    return std::format("; it goes on from checkpoint set {}, which was made after superstep {}{}", newest->id,
                       newest->superstep.value,
                       again == 0 ? "" : std::format(", and computes {} again{}", supersteps(again), why));
  }
  if (superstep == 0) return "";
  if (spec.checkpoint.storage)
    return std::format("; no checkpoint set is stored{}, so it starts from its beginning: {}", why, lost(superstep));
  return std::format("; it has no spec.checkpoint.storage, so it starts from its beginning: {}", lost(superstep));
}

}  // namespace bsp::reconcile
