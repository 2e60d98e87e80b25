#include "operator/reconcile/kernel/went_back.h"

#include <algorithm>
#include <format>

#include "operator/reconcile/kernel/job_kernel.h"
#include "operator/reconcile/kernel/rebuild.h"

namespace bsp::reconcile {

std::string ahead_of_status(const Observed& o) {
  const crds::BspJobStatus& status = o.job.status;
  const std::uint64_t committed = status.epoch ? status.epoch->epoch : 0;
  const bool in_wave = status.phase == crds::JobPhase::kMigrating;
  for (const auto& [seat, sidecar] : o.sidecars) {
    if (!sidecar.status) continue;
    const std::uint64_t epoch = std::max(sidecar.status->admitted_epoch, sidecar.status->epoch);
    if (epoch > committed)
      return std::format("the program in pod {} was let into epoch {}, and the stored status knows epoch {} only",
                         name_of(seat), epoch, committed);
    if (in_wave && sidecar.status->wave > status.wave)
      return std::format("pod {} has taken part in wave {}, and the stored status knows wave {} only", name_of(seat),
                         sidecar.status->wave, status.wave);
  }
  return "";
}

// True: the step is decided.
bool JobKernel::went_back() {
  const std::string ahead = ahead_of_status(o);
  if (ahead.empty()) return false;
  const Rebuilt rebuilt = rebuild_status(o);
  if (std::holds_alternative<RebuildLater>(rebuilt) && o.ahead_for < kRebuildLimit) return true;
  if (const auto* without = std::get_if<RebuildWithout>(&rebuilt)) {
    work.delete_pods = without->pods;
    return true;
  }
  // Numbers that were used since are never used again.
  status().epochs_used = std::max(status().epochs_used, epochs_seen(o));
  status().wave = std::max(status().wave, waves_seen(o) + 1);
  for (const auto& [name, pod] : o.pods) status().attempt = std::max(status().attempt, pod.attempt);
  status().wave_state = nullptr;
  const std::string why = "the stored status is older than the ranks, as after a restored backup: " + ahead;
  const auto* now = std::get_if<crds::BspJobStatus>(&rebuilt);
  if (!now) {
    const auto* later = std::get_if<RebuildLater>(&rebuilt);
    fail_attempt({{},
                  {},
                  kStatusWentBack,
                  std::format("{}; {}", why, later ? later->why : std::get<CannotRebuild>(rebuilt).why),
                  false});
    return true;
  }
  status().ranks = now->ranks;
  status().epoch = now->epoch;
  status().migrations.active = 0;
  notices.events.push_back({"Warning", kStatusWentBack, why + "; the job goes on from what the pods say"});
  enter(crds::JobPhase::kRunning, kStatusWentBack, why + "; it is what the pods say now");
  return true;
}

}  // namespace bsp::reconcile
