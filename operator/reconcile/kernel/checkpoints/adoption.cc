#include "operator/reconcile/kernel/checkpoints/adoption.h"

#include <algorithm>
#include <format>

#include "base/core/first_few.h"
#include "operator/reconcile/kernel/checkpoints/checkpoints.h"

namespace bsp::reconcile {

Adoption adopt_set(const Observed& o, crds::BspJobStatus& status) {
  const auto& from = o.job.spec.restore_from;
  if (!from || (status.checkpoint && status.checkpoint->ids_used > 0)) return {};
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
                       : from->set
                           ? std::format("spec.restoreFrom.set: job {} has no checkpoint set {}; it has {}", job,
                                         *from->set, others.text())
                           : std::format("spec.restoreFrom: no checkpoint set of job {} can be used", job)};
  if (const auto ranks = ranks_of(*chosen); ranks != o.job.spec.ranks)
    return {.trouble = std::format("spec.ranks: must be {}, the ranks of checkpoint set {} of job {}", ranks,
                                   chosen->id, job)};
  if (!status.checkpoint) status.checkpoint.emplace();
  crds::StoredSet& set = status.checkpoint->sets.emplace_back(*chosen);
  set.unusable.clear();
  // What that job has taken over itself, it was granted in the same namespace; nobody is offered such a set elsewhere.
  if (set.of_job.empty()) {
    set.of_job = source.uid;
    set.grant = source.grant;
  }
  status.checkpoint->ids_used = set.id;
  status.checkpoint->superstep = set.superstep;
  status.checkpoint->time = set.time;
  status.epochs_used = std::max({status.epochs_used, source.epochs_used, set.epoch + 1});
  return {};
}

bool is_last_adopted(const crds::StoredSet& set, const crds::BspJobStatus& status) {
  return !set.of_job.empty() && is_last_usable(set, status);
}

}  // namespace bsp::reconcile
