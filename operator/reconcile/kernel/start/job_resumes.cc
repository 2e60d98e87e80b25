// Starting from a checkpoint set: where, and what becomes of an attempt that can't.
#include <algorithm>
#include <format>
#include <utility>

#include "operator/reconcile/kernel/checkpoints/adoption.h"
#include "operator/reconcile/kernel/checkpoints/checkpoints.h"
#include "operator/reconcile/kernel/checkpoints/fitting_nodes.h"
#include "operator/reconcile/kernel/job_kernel.h"
#include "operator/reconcile/kernel/status.h"

namespace bsp::reconcile {

using crds::JobPhase;

// Of the mapping.
std::vector<observe::NodeFacts> JobKernel::nodes_at_start(std::vector<observe::NodeFacts> nodes) const {
  const crds::StoredSet* const set = next_set(change.status);
  return set ? nodes_to_resume_on(*set, o, std::move(nodes)) : std::move(nodes);
}

void JobKernel::keep_off_unfit_nodes(PodRequest& request) const {
  const crds::StoredSet* const set = set_of_start(change.status);
  if (!set) return;
  request.resumes = true;
  request.unfit = unfit_nodes(*set, request.ranks(), request.set, o);
  request.rather_not_on = set->suspected_on;
}

// Every rank is as it was in the set from which the attempt starts, if it starts from one.
bool JobKernel::resumed() {
  const crds::StoredSet* const set = set_of_start(status());
  if (!set) return true;
  Resumption resumption = resume_from(*set, o);
  const bool late = o.start_counts_for > job_limits.start + loading_limit(*set, o.job);
  if (resumption.done) {
    if (!resumption.notes.empty()) notices.events.push_back({"Warning", kSharedFiles, resumption.notes});
    return true;
  }
  if (resumption.unusable.empty() && resumption.unfit.empty() && (late || resumption.suspicion))
    return try_again(*set, resumption), false;
  if (!resumption.unfit.empty() && may_start_elsewhere(*set)) return start_elsewhere(*set, resumption.unfit), false;
  if (!resumption.unfit.empty()) resumption.unusable = std::move(resumption.unfit);
  if (!resumption.unusable.empty()) {
    // No attempt of the program has failed, and there is one set less to try.
    const std::string why =
        std::format("set {} (superstep {}) can't be used: {}", set->id, set->superstep.value, resumption.unusable);
    const bool last = is_last_adopted(*set, status());
    give_up_set(set->id, resumption.unusable, status());
    // Its user wants what another job has computed, not the beginning.
    if (last) return enter(JobPhase::kFailed, kSetUnusable, why), false;
    ++status().attempt;
    enter(JobPhase::kRestarting, kSetUnusable, why);
    return false;
  }
  std::ranges::move(resumption.loads, std::back_inserter(work.actions));
  status().message = resumption.waits;
  if (!resumption.failed.empty() && !is_on(status(), kStartDelayed)) {
    const std::string why = std::format("set {} can't be restored yet: {}", set->id, resumption.failed);
    turn_condition(o, status(), kStartDelayed, true, "RestoreFails", why);
    notices.events.push_back({"Warning", kStartDelayed, why});
    stores = true;
  }
  return false;
}

// Nothing says for certain that the set is damaged, and all that was computed would go with it.
void JobKernel::try_again(const crds::StoredSet& set, const Resumption& resumption) {
  const std::string which = std::format("set {} (superstep {})", set.id, set.superstep.value);
  const auto& suspicion = resumption.suspicion;
  note_try(set.id, resumption, status());
  if (!suspicion)
    return fail_attempt({{}, {}, "StartTimeout", which + " could not be restored in time: " + resumption.waits, false});
  fail_attempt({suspicion->rank,
                {},
                "RestoreFailed",
                std::format("{}: rank {} could not be restored on node {}: {}", which, suspicion->rank, suspicion->node,
                            suspicion->why),
                false});
}

// Attempts that end so say of more nodes what their CPUs have.
bool JobKernel::may_start_elsewhere(const crds::StoredSet& set) const {
  const auto& restarts = change.status.restarts;
  const auto other = std::ranges::find_if(restarts.rbegin(), restarts.rend(), [](const crds::RestartRecord& restart) {
    return restart.reason != kCpuFeaturesDiffer;
  });
  return std::cmp_less(other - restarts.rbegin(), kCpuTries) && may_fit(set, o);
}

// No attempt of the program has failed.
void JobKernel::start_elsewhere(const crds::StoredSet& set, const std::string& unfit) {
  const std::string why =
      std::format("set {} (superstep {}) is restored on other nodes: {}", set.id, set.superstep.value, unfit);
  note_restart(kCpuFeaturesDiffer, why);
  ++status().attempt;
  enter(JobPhase::kRestarting, kCpuFeaturesDiffer, why);
}

}  // namespace bsp::reconcile
