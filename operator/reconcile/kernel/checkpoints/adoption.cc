#include "operator/reconcile/kernel/checkpoints/adoption.h"

#include <algorithm>
#include <format>

#include "base/core/first_few.h"
#include "crds/sets/exported_set.h"
#include "crds/sets/set_keys.h"
#include "operator/reconcile/kernel/checkpoints/checkpoints.h"
#include "operator/reconcile/kernel/checkpoints/resumption.h"

namespace bsp::reconcile {

namespace {

Adoption take_over(const crds::StoredSet& from, std::uint64_t epochs_used, crds::BspJobStatus& status) {
  if (!status.checkpoint) status.checkpoint.emplace();
  crds::StoredSet& set = status.checkpoint->sets.emplace_back(from);
  set.unusable.clear();
  set.suspected.clear();
  set.suspected_on.clear();
  set.tries = 0;
  status.checkpoint->ids_used = set.id;
  status.checkpoint->superstep = set.superstep;
  status.checkpoint->time = set.time;
  status.epochs_used = std::max({status.epochs_used, epochs_used, set.epoch + 1});
  return {};
}

Adoption adopt_exported(const Observed& o, crds::BspJobStatus& status) {
  auto exported = crds::read_exported(o.job.spec.restore_from->exported);
  if (!exported) return {.trouble = "spec.restoreFrom.exported: " + exported.error().message};
  if (const auto ranks = ranks_of(exported->set); ranks != o.job.spec.ranks)
    return {.trouble = std::format("spec.ranks: must be {}, the ranks of the exported checkpoint set", ranks)};
  exported->set.of_job = exported->uid;
  exported->set.grant = crds::kKeyInPod;
  return take_over(exported->set, exported->epochs_used, status);
}

}  // namespace

Adoption adopt_set(const Observed& o, crds::BspJobStatus& status) {
  const auto& from = o.job.spec.restore_from;
  if (!from || (status.checkpoint && status.checkpoint->ids_used > 0)) return {};
  if (!from->exported.empty()) return adopt_exported(o, status);
  const std::string job = from->name_space.empty() ? from->job : from->name_space + "/" + from->job;
  if (!o.source) return {.waits = true, .trouble = std::format("spec.restoreFrom: job {} is not known yet", job)};
  const SourceJob& source = *o.source;
  if (!source.trouble.empty()) return {.waits = true, .trouble = "spec.restoreFrom: " + source.trouble};
  const crds::StoredSet* chosen = nullptr;
  FirstFew others;
  for (const crds::StoredSet& set : source.sets) {
    if (from->set ? set.id == *from->set : set.unusable.empty()) chosen = &set;
    others.add(std::to_string(set.id));
  }
  if (chosen == nullptr)
    return {.trouble = source.sets.empty() ? std::format("spec.restoreFrom: job {} has no checkpoint set", job)
                       : from->set ? std::format("spec.restoreFrom.set: job {} has no checkpoint set {}; it has {}",
                                                 job, *from->set, others.text())
                                   : std::format("spec.restoreFrom: no checkpoint set of job {} can be used", job)};
  if (const auto ranks = ranks_of(*chosen); ranks != o.job.spec.ranks)
    return {.trouble = std::format("spec.ranks: must be {}, the ranks of checkpoint set {} of job {}", ranks,
                                   chosen->id, job)};
  crds::StoredSet set = *chosen;
  // What that job has taken over itself, it was granted in the same namespace; nobody is offered such a set elsewhere.
  if (set.of_job.empty()) {
    set.of_job = source.uid;
    set.grant = source.grant;
  }
  return take_over(set, source.epochs_used, status);
}

bool is_last_adopted(const crds::StoredSet& set, const crds::BspJobStatus& status) {
  return !set.of_job.empty() && is_last_usable(set, status);
}

}  // namespace bsp::reconcile
