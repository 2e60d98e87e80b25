#include "operator/reconcile/kernel/job_clocks.h"

#include <algorithm>
#include <format>

#include "operator/reconcile/kernel/checkpoints/reclaim.h"
#include "operator/reconcile/kernel/conditions.h"
#include "operator/reconcile/kernel/rebuild.h"
#include "operator/reconcile/kernel/resize/resize.h"
#include "operator/reconcile/kernel/start/gang.h"
#include "operator/reconcile/kernel/waves.h"
#include "operator/reconcile/kernel/went_back.h"

namespace bsp::reconcile {

Duration JobClocks::Elapsed::of(const std::string& what, Duration before, SteadyTime now) {
  if (what_ != what) {
    what_ = what;
    before_ = std::max(before, Duration{});
    met_ = now;
  }
  return before_ + (now - met_);
}

void JobClocks::fill(Observed& o) {
  const crds::BspJobStatus& status = o.job.status;
  auto since = [&](Elapsed& elapsed, Time stored) {
    return stored == Time{} ? Duration{} : elapsed.of(to_rfc3339(stored), o.now - stored, o.steady);
  };
  o.started_for = since(started_, status.start_time);
  o.ended_for = since(ended_, status.completion_time);
  const std::string start = status.phase == crds::JobPhase::kStarting ? std::format("attempt {}", status.attempt) : "";
  o.starting_for = starting_.of(start, {}, o.steady);
  const bool waits = waits_in_gang(o);
  const Duration counts = start_counts_.of(waits ? "" : start, {}, o.steady);
  o.start_counts_for = waits ? Duration{} : counts;
  const bool refused =
      status.phase == crds::JobPhase::kPending && status.reason == kPodsRefused && !status.ranks.empty();
  o.refused_for = refused_.of(refused ? status.ranks.front().pod : "", {}, o.steady);
  o.restarting_for = since(restarting_, status.restarts.empty() ? Time{} : status.restarts.back().time);
  // The condition says since when, which a new leader reads.
  const crds::Condition* told = crds::find_condition(status.conditions, kDraining);
  const bool is_told = told && told->status == crds::ConditionStatus::kTrue;
  o.draining_for = o.leaving.empty() ? draining_.of("", {}, o.steady)
                   : is_told         ? since(draining_, told->last_transition_time)
                                     : draining_.of("drain", {}, o.steady);
  if (o.leaving.empty()) o.draining_for = {};
  o.blank_for = blank_.of(is_blank(status) && !o.pods.empty() ? "blank" : "", {}, o.steady);
  o.ahead_for = ahead_.of(ahead_of_status(o).empty() ? "" : "ahead", {}, o.steady);
  const bool reclaims = o.job.metadata.deletion_timestamp != Time{} && nothing_runs(o);
  o.reclaiming_for = reclaiming_.of(reclaims ? "reclaim" : "", {}, o.steady);
  if (!reclaims) o.reclaiming_for = {};
  const auto& checkpoint = status.checkpoint;
  const bool runs = status.phase == crds::JobPhase::kRunning || status.phase == crds::JobPhase::kMigrating;
  const std::uint64_t sets = checkpoint ? checkpoint->ids_used : 0;
  o.set_for = set_.of(runs ? std::format("attempt {} set {}", status.attempt, sets) : "", {}, o.steady);
  const bool pending = checkpoint && checkpoint->pending;
  o.pending_for = pending_.of(pending ? std::format("set {}", checkpoint->pending->id) : "", {}, o.steady);
  const bool suspending = checkpoint && checkpoint->suspending && runs;
  o.suspending_for = suspending_.of(
      suspending ? std::format("attempt {} set {}", status.attempt, *checkpoint->suspending) : "", {}, o.steady);
  if (!suspending) o.suspending_for = {};
  const crds::RankResize* resize = resize_under_way(o);
  o.resizing_for = resizing_.of(
      resize ? std::format("{} {}", crds::to_string(resize->phase), to_rfc3339(resize->time)) : "", {}, o.steady);
  if (!resize) o.resizing_for = {};
  const bool moves = status.phase == crds::JobPhase::kMigrating;
  const auto wave = moves ? stored_wave(status) : std::nullopt;
  wave_.note(wave && *wave ? &**wave : nullptr, o.steady);
  o.wave_since = wave_.since();
}

}  // namespace bsp::reconcile
