#include "operator/screens/sets.h"

#include <algorithm>
#include <format>
#include <ranges>

#include "base/core/base64.h"
#include "base/core/first_few.h"
#include "crds/names.h"
#include "crds/sets/exported_set.h"
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

Result<SetToExport> set_to_export(const crds::BspJob& job, std::optional<std::uint64_t> set) {
  const std::string& name = job.metadata.name;
  const crds::StoredSet* chosen = nullptr;
  FirstFew others;
  if (const auto& c = job.status.checkpoint)
    for (const crds::StoredSet& one : c->sets) {
      if (set ? one.id == *set : one.unusable.empty()) chosen = &one;
      others.add(std::to_string(one.id));
    }
  if (chosen == nullptr)
    return fail(ErrorCode::kNotFound, set ? std::format("job {} has no checkpoint set {}; it has {}", name, *set,
                                                        others.empty() ? "none" : others.text())
                                          : std::format("job {} has no checkpoint set that can be used", name));
  if (!chosen->of_job.empty())
    return fail(ErrorCode::kRefused, std::format("job {} hasn't made set {}, but begun with it; export it from the job "
                                                 "that made it, or wait for the next set",
                                                 name, chosen->id));
  return SetToExport{.id = chosen->id,
                     .description = crds::export_text(
                         {.uid = job.metadata.uid, .epochs_used = job.status.epochs_used, .set = *chosen})};
}

std::string export_manifest(const crds::BspJob& job, const SetToExport& set, std::string_view key) {
  const std::string secret = std::format("{}-set-{}", job.metadata.name, set.id);
  return std::format(
      "# Checkpoint set {} of job {}/{}. Who has this key and can read the storage can read the memory of its ranks.\n"
      "apiVersion: v1\n"
      "kind: Secret\n"
      "metadata:\n"
      "  name: {}\n"
      "data:\n"
      "  {}: {}\n"
      "# A job of the Secret's namespace begins with the set if it has the other's image, ranks and storage, and "
      "this:\n"
      "# spec:\n"
      "#   restoreFrom:\n"
      "#     keySecret: {}\n"
      "#     exported: {}\n",
      set.id, job.metadata.name_space, job.metadata.name, secret, names::kSetKey, base64_encode(key), secret,
      set.description);
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
