#include "operator/reconcile/kernel/checkpoints/resumption.h"

#include <algorithm>
#include <format>
#include <ranges>

#include "base/core/base64.h"
#include "base/core/first_few.h"
#include "base/core/hex.h"
#include "operator/reconcile/kernel/checkpoints/skew.h"

namespace bsp::reconcile {

const crds::StoredSet* next_set(const crds::BspJobStatus& status) {
  if (!status.checkpoint) return nullptr;
  const crds::StoredSet* chosen = nullptr;
  for (const crds::StoredSet& set : status.checkpoint->sets)
    if (set.unusable.empty() && (!chosen || set.tries / kTries <= chosen->tries / kTries)) chosen = &set;
  return chosen;
}

void choose_set(crds::BspJobStatus& status) {
  if (!status.checkpoint) return;
  crds::CheckpointStatus& c = *status.checkpoint;
  c.pending.reset();  // its images were in memory that is gone
  c.restored.reset();
  c.suspending.reset();
  if (const crds::StoredSet* chosen = next_set(status)) c.restored = chosen->id;
}

const crds::StoredSet* set_of_start(const crds::BspJobStatus& status) {
  if (!status.checkpoint || !status.checkpoint->restored) return nullptr;
  const auto& sets = status.checkpoint->sets;
  const auto set = std::ranges::find(sets, *status.checkpoint->restored, &crds::StoredSet::id);
  return set == sets.end() ? nullptr : &*set;
}

bool is_last_usable(const crds::StoredSet& set, const crds::BspJobStatus& status) {
  return std::ranges::none_of(status.checkpoint->sets, [&](const crds::StoredSet& other) {
    return other.id != set.id && other.unusable.empty();
  });
}

namespace {

// Numbers, as of processes and descriptors, differ from one time to the next.
bool is_alike(std::string_view one, std::string_view other) {
  const auto without_numbers = [](std::string_view text) {
    std::string rest;
    for (const char c : text)
      if (c < '0' || c > '9') rest += c;
    return rest;
  };
  return without_numbers(one) == without_numbers(other);
}

// Where nothing but the image is the same, it is to blame. `others`: ranks are still to say how it went.
void judge(const crds::StoredSet& set, std::vector<Resumption::Suspicion> suspicions, bool others,
           Resumption& resumption) {
  if (suspicions.empty()) return;
  if (!others) resumption.suspicion = suspicions.front();
  if (!set.suspected.empty()) suspicions.push_back({0, set.suspected_on, set.suspected});
  for (const Resumption::Suspicion& one : suspicions)
    for (const Resumption::Suspicion& other : suspicions)
      if (one.node != other.node && is_alike(one.why, other.why)) {
        resumption.unusable =
            std::format("it could not be restored on nodes {} and {}: {}", one.node, other.node, one.why);
        return;
      }
}

}  // namespace

namespace {

// What the ranks say, one after the other.
struct Said {
  FirstFew waiting, failures, notes;
  std::string failed_on;
  std::vector<migrate::Action> accepted, loads;
  std::vector<Resumption::Suspicion> suspicions;
  bool others = false;  // some are still to say how it went

  // `said`: null if its sidecar doesn't answer. `load`: asks for the image.
  void add(const crds::RankPlace& place, const std::string& node, const wire::TransferStatus* said,
           migrate::Action load) {
    using enum wire::TransferPhase;
    const std::uint32_t rank = place.rank.value;
    const wire::TransferPhase phase = said ? said->phase : kIdle;
    if (phase == kRestored && !said->note.empty()) notes.add(std::format("rank {}: {}", rank, said->note));
    if (phase == kRestored) return;
    if (phase == kReceived) return accepted.push_back(std::move(load));
    const std::string who = std::format("rank {} ({})", rank, name_of(place.seat()));
    waiting.add(phase == kFailed ? who + ": " + said->error : who);
    if (phase == kFailed) {
      failures.add(who + ": " + said->error);
      if (failed_on.empty()) failed_on = node;
    } else {
      others = true;
    }
    if (phase == kFailed && said->suspect)
      suspicions.push_back({rank, node, said->error});
    else if (said && phase != kReceiving && phase != kRestoring)
      loads.push_back(std::move(load));
  }
};

}  // namespace

Resumption resume_from(const crds::StoredSet& set, const Observed& o) {
  const auto digests = base64_decode(set.digests);
  if (!digests || digests->size() != kDigest * o.job.status.ranks.size())
    return {.unusable = "status.checkpoint doesn't hold a digest for each rank"};
  Said said;
  std::string unfit;
  const wire::TransferStatus nothing{};
  const Skew skew(set, o.job.status.ranks.size());
  for (const crds::RankPlace& place : o.job.status.ranks) {
    const wire::RankStatus* s = o.said(place.seat());
    const PodFacts* pod = o.pod(place.seat());
    if (std::string differs = pod ? skew.of(place, *pod, s) : ""; !differs.empty())
      return {.unusable = std::move(differs)};
    const std::string& node = pod && !pod->node.empty() ? pod->node : place.node;
    if (s && unfit.empty()) unfit = skew.of_cpu(place.rank.value, node, CpuFeatures(s->cpu_features));
    const bool of_set = s && s->transfer.migration == wire::set_name(set.id);
    if (of_set && s->transfer.phase == wire::TransferPhase::kFailed && s->transfer.unusable)
      return {.unusable = std::format("rank {}: {}", place.rank.value, s->transfer.error)};
    auto load = migrate::Action::load(
        place.seat(),
        {.image = {.set = set.id, .epoch = set.epoch, .attempt = set.attempt, .job = set.of_job, .grant = set.grant},
         .digest = hex_of(std::string_view(*digests).substr(kDigest * place.rank.value, kDigest)),
         .ignore_files = o.job.spec.checkpoint.shared_files == crds::SharedFiles::kIgnore});
    said.add(place, node, s ? (of_set ? &s->transfer : &nothing) : nullptr, std::move(load));
  }
  if (!unfit.empty()) return {.unfit = std::move(unfit)};
  Resumption resumption{.notes = said.notes.text(), .loads = std::move(said.loads)};
  judge(set, std::move(said.suspicions), said.others, resumption);
  if (!resumption.unusable.empty()) return {.unusable = std::move(resumption.unusable)};
  resumption.done = said.waiting.empty() && said.accepted.empty();
  resumption.failed = said.failures.text();
  resumption.failed_on = std::move(said.failed_on);
  if (resumption.done) return resumption;
  // Asked again, a rank cuts off files that are ahead of it. Not before all have accepted the set: if one refuses it, the ranks go back
  // to an older one, and files must be as they were found.
  if (said.waiting.empty()) {
    resumption.waits = std::format("files on shared volumes are cut off as they were in set {} (superstep {})", set.id,
                                   set.superstep.value);
    resumption.loads = std::move(said.accepted);
  } else {
    resumption.waits = std::format("the ranks are restored from set {} (superstep {}); not yet: {}", set.id,
                                   set.superstep.value, said.waiting.text());
  }
  return resumption;
}

std::uint32_t ranks_of(const crds::StoredSet& set) {
  const auto digests = base64_decode(set.digests);
  return digests ? static_cast<std::uint32_t>(digests->size() / kDigest) : 0;
}

void give_up_set(std::uint64_t id, const std::string& why, crds::BspJobStatus& status) {
  if (!status.checkpoint) return;
  for (crds::StoredSet& set : status.checkpoint->sets)
    if (set.id == id) set.unusable = why;
}

void give_up_newer(std::uint64_t id, crds::BspJobStatus& status) {
  if (!status.checkpoint) return;
  for (crds::StoredSet& set : status.checkpoint->sets)
    if (set.id > id && set.unusable.empty()) set.unusable = std::format("the job has gone on from set {}", id);
}

void note_try(std::uint64_t id, const Resumption& resumption, crds::BspJobStatus& status) {
  for (crds::StoredSet& set : status.checkpoint->sets) {
    if (set.id != id) continue;
    ++set.tries;
    if (const auto& suspicion = resumption.suspicion) {
      set.suspected = suspicion->why;
      set.suspected_on = suspicion->node;
    } else if (set.suspected.empty()) {
      set.suspected_on = resumption.failed_on;
    }
  }
}

Duration loading_limit(const crds::StoredSet& set, const crds::BspJob& job) {
  const double of_rank = static_cast<double>(set.bytes) / std::max(1u, job.spec.ranks);
  return kStoring + from_seconds(of_rank / kLeastBytesPerSecond);
}

std::uint32_t failed_attempts(crds::BspJobStatus& status) {
  if (!status.checkpoint || status.checkpoint->ids_used == 0) return status.attempt;
  crds::CheckpointStatus& c = *status.checkpoint;
  if (!c.sets.empty() && c.sets.back().of_job.empty() && c.sets.back().attempt == status.attempt)
    c.without_progress = 0;
  return c.without_progress;
}

}  // namespace bsp::reconcile
