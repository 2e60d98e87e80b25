#include "operator/reconcile/shell/job/progress.h"

#include <algorithm>

#include "operator/reconcile/kernel/status.h"

namespace bsp::reconcile {

void Progress::fill(Observed& o) {
  const crds::BspJobStatus& status = o.job.status;
  if (!ranks_run(status)) {
    superstep_ended_ = newest_at_ = {};
    newest_ = 0;
    return;
  }
  for (const auto& [seat, sidecar] : o.sidecars)
    if (sidecar.completed > newest_) {
      newest_ = sidecar.completed;
      newest_at_ = o.steady;
    }
  std::uint64_t completed = ~0ull;
  bool heard = true;  // else the ranks may be further than it seems
  for (const crds::RankPlace& place : status.ranks) {
    const SidecarFacts* sidecar = o.sidecar(place.seat());
    if (sidecar) completed = std::min(completed, sidecar->completed);
    heard &= sidecar && sidecar->answers() && !sidecar->untrusted;
  }
  if (!heard || superstep_ended_ == SteadyTime{} || completed != completed_ ||
      status.phase != crds::JobPhase::kRunning) {
    completed_ = completed;
    superstep_ended_ = o.steady;
  }
  o.progress = newest_at_;
  o.superstep_ended = superstep_ended_;
}

}  // namespace bsp::reconcile
