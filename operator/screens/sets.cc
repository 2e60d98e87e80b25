#include "operator/screens/sets.h"

#include <algorithm>
#include <format>
#include <ranges>

#include "operator/cli/table.h"
#include "operator/screens/printable.h"

namespace bsp::screens {
namespace {

std::string size_text(std::uint64_t bytes) { return std::format("{:.3g} MB", static_cast<double>(bytes) * 1e-6); }

bool runs(crds::JobPhase phase) { return phase == crds::JobPhase::kRunning || phase == crds::JobPhase::kMigrating; }

}  // namespace

std::string sets_table(const crds::BspJob& job, Time now) {
  const auto& c = job.status.checkpoint;
  std::string text;
  if (!job.spec.checkpoint.storage)
    text = std::format("job {} makes no checkpoint sets: it has no spec.checkpoint.storage\n", job.metadata.name);
  else if (!c || (c->sets.empty() && !c->pending))
    text = std::format("job {} has no checkpoint set yet\n", job.metadata.name);
  if (!c) return text;
  cli::Table table({"SET", "SUPERSTEP", "AGE", "SIZE", "ATTEMPT", "STATE"});
  if (c->pending)
    table.add({std::to_string(c->pending->id), std::to_string(c->pending->superstep.value),
               cli::age(c->pending->time, now), "", std::to_string(c->pending->attempt), "being stored"});
  for (const crds::StoredSet& set : c->sets | std::views::reverse) {
    std::string state = !set.unusable.empty()   ? printable("unusable: " + set.unusable)
                        : c->restored == set.id ? "stored; this attempt began with it"
                                                : "stored";
    if (set.base != 0 && set.unusable.empty())
      state += std::format("; {}, the rest is in set {}", size_text(set.stored), set.base);
    table.add({std::to_string(set.id), std::to_string(set.superstep.value), cli::age(set.time, now),
               size_text(set.bytes), std::to_string(set.attempt), state});
  }
  if (!table.empty()) text += table.text();
  if (!c->message.empty()) text += "the last one: " + printable(c->message) + "\n";
  return text;
}

Result<WantedSet> want_set(const crds::BspJob& job, Time now) {
  const std::string& name = job.metadata.name;
  if (!job.spec.checkpoint.storage)
    return fail(ErrorCode::kRefused,
                std::format("job {} has no spec.checkpoint.storage, where a checkpoint set could be put", name));
  if (!runs(job.status.phase))
    return fail(ErrorCode::kRefused, std::format("job {} is {}: no ranks run whose state could be stored", name,
                                                 crds::to_string(job.status.phase)));
  const std::uint64_t used = job.status.checkpoint ? job.status.checkpoint->ids_used : 0;
  return WantedSet{.value = to_rfc3339(now), .ids_before = used};
}

std::optional<Result<std::string>> outcome_of(const WantedSet& wanted, const crds::BspJob& job) {
  const auto& c = job.status.checkpoint;
  if (c && c->asked == wanted.value) {
    if (!c->sets.empty() && c->sets.back().id > wanted.ids_before) {
      const crds::StoredSet& set = c->sets.back();
      return std::format("checkpoint set {} of superstep {} stored: {}", set.id, set.superstep.value,
                         size_text(set.bytes));
    }
    if (!c->pending && job.status.phase != crds::JobPhase::kMigrating && !c->message.empty())
      return fail(ErrorCode::kFailed, printable(c->message));
  }
  if (!runs(job.status.phase))
    return fail(ErrorCode::kFailed,
                std::format("job {} is {} now", job.metadata.name, crds::to_string(job.status.phase)));
  return std::nullopt;
}

}  // namespace bsp::screens
