// A start whose pods can't be had: whatever refuses them, the slots of its ranks are of use to others meanwhile.
#include <chrono>
#include <format>

#include "operator/reconcile/kernel/job_kernel.h"
#include "operator/reconcile/kernel/status.h"

namespace bsp::reconcile {

using crds::JobPhase;

namespace {
// It holds slots for so long, and then none for so long.
constexpr std::chrono::seconds kRefusedFor{15}, kRefusedPause{30};
}  // namespace

// The scheduler's words for a claim that isn't there, or that nothing provides a volume for.
bool lacks_claim(const std::string& unscheduled) {
  return unscheduled.contains("persistentvolumeclaim \"") ||
         unscheduled.contains("unbound immediate PersistentVolumeClaims");
}

bool JobKernel::waits_for_pods() const { return o.job.status.reason == kPodsRefused && o.refused_for < kRefusedPause; }

// Of a start whose slots are reserved: other jobs may use them until the pods can be had.
bool JobKernel::gives_slots_back(const NotReady& not_ready) {
  if (not_ready.refused.empty()) {
    if (!not_ready.missing && is_on(status(), kPodsRefused)) {
      turn_condition(o, status(), kPodsRefused, false, "Created", "the pods are there");
      stores = true;
    }
    return false;
  }
  if (!o.capacity_may_come || !group.empty() || status().epoch || o.starting_for < kRefusedFor) return false;
  const std::string why = std::format("{}; its slots are free for other jobs, and the start is tried again {} s later",
                                      not_ready.refused, kRefusedPause.count());
  if (!is_on(status(), kPodsRefused)) notices.events.push_back({"Warning", kPodsRefused, why});
  turn_condition(o, status(), kPodsRefused, true, "Refused", why);
  if (is_on(status(), kStartDelayed))
    turn_condition(o, status(), kStartDelayed, false, kPodsRefused, "the pods are to be created again");
  stores = true;
  status().phase = JobPhase::kPending;  // no event of its own
  status().reason = kPodsRefused;
  status().message = why;
  return true;
}

}  // namespace bsp::reconcile
