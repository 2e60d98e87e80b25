#include "operator/reconcile/kernel/checkpoints/checkpoints.h"

#include <algorithm>
#include <array>
#include <format>
#include <set>

#include "base/core/base64.h"
#include "base/core/first_few.h"
#include "base/core/hex.h"
#include "base/core/significant.h"
#include "crds/names.h"
#include "crds/stored_status.h"
#include "operator/reconcile/kernel/checkpoints/interval.h"
#include "operator/reconcile/kernel/checkpoints/resumption.h"
#include "operator/reconcile/kernel/checkpoints/skew.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {
namespace {

using wire::SavePhase;

constexpr std::chrono::minutes kMovesWait{1};
// Beyond spec.checkpoint.keep, a set takes no more than 43 KB of the status.
constexpr std::uint32_t kMostRanksOfSpared = 1000;

std::optional<std::string> bytes_of_hex(std::string_view hex) {
  if (hex.size() != 2 * kDigest) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    std::array<unsigned, 2> half{};
    for (std::size_t h = 0; h < 2; ++h) {
      const char c = hex[i + h];
      if (c >= '0' && c <= '9')
        half[h] = static_cast<unsigned>(c - '0');
      else if (c >= 'a' && c <= 'f')
        half[h] = static_cast<unsigned>(c - 'a') + 10;
      else
        return std::nullopt;
    }
    bytes += static_cast<char>(half[0] << 4 | half[1]);
  }
  return bytes;
}

std::string size_text(std::uint64_t bytes) { return std::format("{:.3g} MB", static_cast<double>(bytes) * 1e-6); }

crds::CheckpointStatus& checkpoint_of(crds::BspJobStatus& status) {
  if (!status.checkpoint) status.checkpoint.emplace();
  return *status.checkpoint;
}

// A person writes the time; of anything else so many characters will do, and no half of one.
std::string asked_set(const crds::BspJob& job) {
  constexpr std::size_t kMost = 64;
  const auto asked = job.metadata.annotations.find(std::string(names::kAnnotationCheckpoint));
  if (asked == job.metadata.annotations.end()) return "";
  std::string text;
  for (const char c : asked->second)
    if (text.size() < kMost) text += c > ' ' && c <= '~' ? c : '?';
  return text;
}

// Of people's status: the newest set.
void show_newest(crds::CheckpointStatus& c) {
  c.superstep = c.sets.empty() ? Superstep{} : c.sets.back().superstep;
  c.time = c.sets.empty() ? Time{} : c.sets.back().time;
}

std::vector<Event> abandon(std::uint64_t id, const std::string& why, crds::CheckpointStatus& c) {
  const std::string message = std::format("set {} was not stored: {}", id, why);
  c.pending.reset();
  c.message = message;
  return {{"Warning", kCheckpointFailed, message}};
}

// What people can't read in the manifest: when the next one is due.
std::string next_by_itself(const Observed& o, const crds::CheckpointStatus& c) {
  if (o.job.spec.checkpoint.interval != crds::kAutoInterval) return "";
  return std::format("; the next one is due in {}", crds::duration_text(to_seconds(set_interval(o, c))));
}

bool is_storing(const wire::RankStatus& s) {
  return s.save && (s.save->phase == SavePhase::kDumping || s.save->phase == SavePhase::kDumped);
}

// As the node resolved it; "": not known. Of all ranks the same, or they would not be one program.
std::string image_of(const Observed& o) {
  for (const crds::RankPlace& place : o.job.status.ranks)
    if (const PodFacts* pod = o.pod(place.seat()); pod && !pod->image.empty()) return pod->image;
  return "";
}

// On which the images of another set can build: a stored one, of this attempt, whose sidecars know it. 0: there is none.
std::uint64_t base_for(std::uint64_t set, const crds::BspJobStatus& status) {
  const std::uint64_t base = wire::base_of(set);
  const bool is_kept = status.checkpoint && std::ranges::any_of(status.checkpoint->sets, [&](const crds::StoredSet& s) {
                         return s.of_job.empty() && s.attempt == status.attempt && (s.id == base || s.base == base);
                       });
  return is_kept && base < set ? base : 0;
}

// The set in whose damage it shares.
std::uint64_t foundation(const crds::StoredSet& set) { return set.base == 0 ? set.id : set.base; }

// What they take of the storage, with the sets that they build on, of which each counts as the newest would whole.
std::uint64_t bytes_of(const std::vector<crds::StoredSet>& sets) {
  std::uint64_t bytes = 0;
  std::set<std::uint64_t> bases;
  for (const crds::StoredSet& set : sets) {
    bytes += set.stored == 0 ? set.bytes : set.stored;
    if (set.base != 0 && std::ranges::none_of(sets, [&](const crds::StoredSet& s) { return s.id == set.base; }))
      bases.insert(set.base);
  }
  return bytes + bases.size() * sets.back().bytes;
}

// Older sets than spec.checkpoint.keep go, first those from which no attempt starts. As long as all that stay build on one set, whose
// damage would cost them all, the last that doesn't is spared, if the next one will still find room in what one more than `keep` would
// take.
void let_older_go(const crds::BspJobSpec& spec, crds::BspJobStatus& status) {
  auto& sets = status.checkpoint->sets;
  const std::size_t keep = spec.checkpoint.keep;
  for (auto set = sets.begin(); set != sets.end() && sets.size() > keep;)
    set = set->unusable.empty() ? std::next(set) : sets.erase(set);
  if (sets.size() <= keep) return;
  const auto kept = sets.end() - static_cast<std::ptrdiff_t>(keep);
  const auto shares = [&](const crds::StoredSet& set) {
    return set.of_job == sets.back().of_job && foundation(set) == foundation(sets.back());
  };
  std::optional<crds::StoredSet> spared;
  if (std::all_of(kept, sets.end(), shares))
    for (auto set = sets.begin(); set != kept; ++set)
      if (!shares(*set) && set->unusable.empty()) spared = *set;
  sets.erase(sets.begin(), kept);
  if (!spared || spec.ranks > kMostRanksOfSpared) return;
  sets.insert(sets.begin(), std::move(*spared));
  const std::uint64_t whole = sets.back().bytes;
  const std::uint64_t next = base_for(status.checkpoint->ids_used + 1, status) == 0 ? whole : whole / 2;
  if (bytes_of(sets) + next > (keep + 1) * whole) sets.erase(sets.begin());
}

// Of all of a set's images and of their files.
struct Sizes {
  std::uint64_t images = 0, files = 0;
  // Whatever sidecars say: an API server keeps no larger number than an int64.
  void add(const wire::SaveStatus& save) {
    images = std::min(images + save.bytes, wire::kMostNs);
    files = std::min(files + save.stored, wire::kMostNs);
  }
};
std::string sizes_text(const Sizes& sizes, const crds::StoredSet& set, std::uint32_t ranks) {
  const std::string text = std::format("{} in {} images", size_text(sizes.images), ranks);
  return set.base == 0
             ? text
             : std::format("{}, of which {} are stored, the rest is in set {}", text, size_text(sizes.files), set.base);
}

}  // namespace

bool can_make_set(const Observed& o) {
  if (!makes_sets(o.job) || !o.job.status.epoch) return false;
  if (const auto& c = o.job.status.checkpoint; c && c->pending) return false;
  return std::ranges::all_of(o.job.status.ranks, [&](const crds::RankPlace& place) {
    const wire::RankStatus* s = o.said(place.seat());
    // A storage that still holds an abandoned set's image would only make the next one fail.
    return s && !is_storing(*s) && s->phase == wire::RankPhase::kRunning && s->epoch == o.job.status.epoch->epoch;
  });
}

bool set_is_due(const Observed& o) {
  const Duration interval = set_interval(o);
  if (interval <= Duration{}) return false;
  const Duration grace = std::chrono::seconds(crds::duration_seconds(o.job.spec.checkpoint.grace).value_or(0));
  // Ranks are still on a node that is drained, and its pods may be evicted in a moment.
  const bool leaves = !o.leaving.empty() && grace > Duration{} &&
                      o.draining_for + grace >= from_seconds(static_cast<double>(std::min<std::uint64_t>(
                                                    o.job.spec.run_policy.drain_timeout_seconds, 1'000'000'000)));
  const Duration pause = leaves ? std::min(grace, interval) : interval;
  return o.set_for >= pause && can_make_set(o);
}

bool set_is_asked(const Observed& o) {
  const std::string asked = asked_set(o.job);
  return !asked.empty() && (!o.job.status.checkpoint || o.job.status.checkpoint->asked != asked);
}

std::optional<Event> refuse_set(const Observed& o, crds::BspJobStatus& status) {
  if (makes_sets(o.job) || !set_is_asked(o)) return std::nullopt;
  checkpoint_of(status).asked = asked_set(o.job);
  return Event{"Warning", kCheckpointFailed,
               "a checkpoint set was asked for, and the job has no spec.checkpoint.storage to put one"};
}

migrate::Wave begin_set(const Observed& o, crds::BspJobStatus& status) {
  check(status.epoch.has_value(), "a wave begins in an open epoch");
  migrate::Wave wave;
  wave.number = ++status.wave;
  const std::uint64_t set = ++checkpoint_of(status).ids_used;
  wave.checkpoint = migrate::Checkpoint{.set = set, .attempt = status.attempt, .base = base_for(set, status)};
  status.checkpoint->asked = asked_set(o.job);
  wave.base_epoch = status.epoch->epoch;
  wave.next_epoch = status.epochs_used++;
  wave.rollback_epoch = status.epochs_used++;
  wave.phase = migrate::Phase::kPreparing;
  wave.times = {{migrate::Phase::kPending, o.now}, {migrate::Phase::kPreparing, o.now}};
  status.wave_state = migrate::to_json(wave);
  return wave;
}

std::vector<Event> note_set(const migrate::Wave& wave, const Observed& o, crds::BspJobStatus& status) {
  if (!wave.checkpoint) return {};
  crds::CheckpointStatus& c = checkpoint_of(status);
  if (wave.phase != migrate::Phase::kSucceeded) {
    auto events = abandon(wave.checkpoint->set, wave.message.empty() ? wave.reason : wave.message, c);
    // The ranks stopped, or would have, but for one.
    if (wave.reason != "CheckpointFailed" && wave.reason != "Postponed") return events;
    const bool was = is_on(status, kNotCheckpointable);
    turn_condition(o, status, kNotCheckpointable, true, wave.reason, wave.message);
    if (!was)
      events.push_back(
          {"Warning", kNotCheckpointable, crds::find_condition(status.conditions, kNotCheckpointable)->message});
    return events;
  }
  if (is_on(status, kNotCheckpointable))
    turn_condition(o, status, kNotCheckpointable, false, "Dumped", "every rank was dumped");
  c.pending = crds::PendingSet{.id = wave.checkpoint->set,
                               .superstep = {wave.gate.superstep},
                               .epoch = wave.base_epoch,
                               .attempt = wave.checkpoint->attempt,
                               .time = o.now,
                               .pause_seconds = significant(wave.pause.total_ms * 1e-3, 4)};
  return {};
}

std::optional<std::vector<Event>> settle_set(const Observed& o, crds::BspJobStatus& status) {
  if (!status.checkpoint || !status.checkpoint->pending) return std::nullopt;
  crds::CheckpointStatus& c = *status.checkpoint;
  const crds::PendingSet pending = *c.pending;
  FirstFew waiting;
  std::string digests;
  Sizes sizes;
  const std::uint64_t may_build_on = base_for(pending.id, status);
  std::uint64_t base = 0, slowest_ns = 0, most_bytes = 0;
  bool knows_files = true;  // an older sidecar doesn't say
  for (const crds::RankPlace& place : o.job.status.ranks) {
    const wire::RankStatus* s = o.said(place.seat());
    const std::uint32_t rank = place.rank.value;
    if (!s) {
      waiting.add(std::format("rank {} ({})", rank, name_of(place.seat())));
      continue;
    }
    if (!s->save || s->save->set != pending.id)
      return abandon(
          pending.id,
          std::format("the image of rank {} is gone: the rank has moved, or its sidecar was restarted", rank), c);
    const wire::SaveStatus& save = *s->save;
    most_bytes = std::max(most_bytes, save.bytes);
    if (save.phase == SavePhase::kFailed) return abandon(pending.id, std::format("rank {}: {}", rank, save.error), c);
    if (save.phase != SavePhase::kStored) {
      waiting.add(std::format("rank {} ({})", rank, name_of(place.seat())));
      continue;
    }
    const auto digest = bytes_of_hex(save.digest);
    if (!digest) return abandon(pending.id, std::format("the sidecar of rank {} reports no digest", rank), c);
    // Else nothing would keep it.
    if (save.base != 0 && save.base != may_build_on)
      return abandon(pending.id,
                     std::format("the image of rank {} builds on set {}, which it must not", rank, save.base), c);
    digests += *digest;
    base = std::max(base, save.base);
    sizes.add(save);
    knows_files = knows_files && save.stored > 0;
    slowest_ns = std::max(slowest_ns, save.store_ns);
  }
  if (!waiting.empty()) {
    const Duration limit = kStoring + from_seconds(static_cast<double>(most_bytes) / kLeastBytesPerSecond);
    if (o.pending_for <= limit) return std::nullopt;
    return abandon(pending.id,
                   std::format("the storage has not taken it within {:.0f} s: {}", to_seconds(limit), waiting.text()),
                   c);
  }
  crds::StoredSet& set = c.sets.emplace_back();
  set.id = pending.id;
  set.superstep = pending.superstep;
  set.epoch = pending.epoch;
  set.attempt = pending.attempt;
  set.time = pending.time;
  set.pause_seconds = pending.pause_seconds;
  set.bytes = sizes.images;
  set.stored = knows_files ? sizes.files : 0;
  set.base = base;
  set.image = image_of(o);
  set.digests = base64_encode(digests);
  describe_program(o, set);
  // Before anything is: what stays after the job has to be known for certain.
  c.marked = c.marked || o.job.spec.checkpoint.reclaim_policy == crds::ReclaimPolicy::kDelete;
  c.pending.reset();
  c.message.clear();
  let_older_go(o.job.spec, status);
  show_newest(c);
  return std::vector<Event>{
      {"Normal", kCheckpointStored,
       std::format("set {} of superstep {}: {}; the ranks waited {}, storing took {}{}", pending.id,
                   pending.superstep.value, sizes_text(sizes, c.sets.back(), o.job.spec.ranks),
                   crds::duration_text(pending.pause_seconds),
                   crds::duration_text(static_cast<double>(slowest_ns) * 1e-9), next_by_itself(o, c))}};
}

bool moves_wait(const Observed& o) {
  const auto& c = o.job.status.checkpoint;
  return c && c->pending && o.pending_for < kMovesWait && o.leaving.empty() &&
         std::ranges::none_of(waiting_requests(o), &MoveRequest::away);
}

std::optional<migrate::Action> remove_older_sets(const Observed& o) {
  const auto& c = o.job.status.checkpoint;
  if (!c || c->ids_used == 0 || o.job.status.ranks.empty()) return std::nullopt;
  const Seat seat = o.job.status.ranks[0].seat();
  const SidecarFacts* sidecar = o.sidecar(seat);
  if (!sidecar || !sidecar->answers()) return std::nullopt;
  // An abandoned set may still be growing: it goes when no rank stores any of it.
  const auto ended = [&](const crds::RankPlace& place) {
    const wire::RankStatus* s = o.said(place.seat());
    return s && !is_storing(*s);
  };
  wire::KeepSetsRequest request;
  if (c->pending)
    request.below = c->pending->id;
  else if (std::ranges::all_of(o.job.status.ranks, ended))
    request.below = c->ids_used + 1;
  else if (!c->sets.empty())
    request.below = c->sets.back().id;
  // No later status names what a stored one has let go, so an older operator that wakes up late removes nothing that is named.
  if (request.below == 0 || sidecar->has_done(migrate::ActionKind::kKeepSets, request.below)) return std::nullopt;
  for (const crds::StoredSet& set : c->sets) request.keep.push_back(set.id);
  for (const crds::StoredSet& set : c->sets) {
    if (set.base == 0 || !set.of_job.empty() || std::ranges::contains(request.keep, set.base)) continue;
    request.keep.push_back(set.base);
    request.bases.push_back(set.base);
  }
  return migrate::Action::keep_sets(seat, request);
}

}  // namespace bsp::reconcile
