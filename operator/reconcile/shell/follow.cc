// What follows an observation besides the step: links and scheduler keep up with it, and sidecars are asked for reports.
#include <algorithm>
#include <format>
#include <utility>

#include "base/core/log.h"
#include "operator/reconcile/kernel/silence.h"
#include "operator/reconcile/kernel/waves.h"
#include "operator/reconcile/shell/job_shell.h"

namespace bsp::reconcile {

using nlohmann::json;

namespace {

bool ranks_run(const crds::BspJobStatus& status) {
  return status.phase == crds::JobPhase::kRunning || status.phase == crds::JobPhase::kMigrating;
}

}  // namespace

// Before the sidecars are read: a lost pod must not hear the operator, and a new wave starts without earlier answers.
void JobShell::keep_up(Cluster& cluster) {
  pods_.take_results();
  const crds::BspJobStatus& status = cluster.job.status;
  lost_.judge(
      cluster.pods,
      [&](const std::string& name) {
        const SeenNode* const node = cluster.nodes->find(name);
        return node ? node->state : NodeState::kDead;
      },
      status.epoch ? &*status.epoch : nullptr, cluster.steady);
  std::erase_if(cluster.reachable, [&](const auto& entry) { return cluster.pods.at(entry.first).lost; });
  sidecars_->track(cluster.reachable);
  sidecars_->begin_wave(status.wave);
  seen_ = cluster.reservations;
  if (!ranks_run(status) || !status.epoch) {
    if (!crds::is_finished(status.phase)) advisor_.forget();
    return;
  }
  advisor_.begin(cluster.job);
  for (const wire::RankReport& report : sidecars_->take_reports())
    if (advisor_.add(report) && report.rank < status.ranks.size())
      sidecars_->note_completed(status.ranks[report.rank].pod, report.completed);
}

// What only a sequence of observations shows: durations, progress, refusals, and what the other jobs hear.
void JobShell::add_history(Observed& o) {
  pods_.add_refused(o);
  progress_.fill(o);
  if (ranks_run(o.job.status) && o.job.status.epoch) o.superstep_seconds = advisor_.superstep_seconds();
  clocks_.fill(o);
  o.everywhere = sidecar_thread_.note_hearing(job_ref_.uid, ranks_run(o.job.status) ? hearing_of(o) : Hearing{});
}

// Other sidecars may hear one that does not answer the operator (silence.h).
void JobShell::ask_who_hears(const Observed& o) {
  constexpr std::size_t kAsked = 3;
  if (!o.job.status.epoch) return;
  std::vector<std::string> silent;
  std::vector<const wire::Member*> others;
  for (const wire::Member& member : o.job.status.epoch->members) {
    const auto it = o.sidecars.find(member.pod);
    if (it == o.sidecars.end()) continue;
    if (it->second.unreachable_since != SteadyTime{})
      silent.push_back(member.pod);
    else if (it->second.status && others.size() < kAsked)
      others.push_back(&member);
  }
  if (silent.empty()) return;
  for (const wire::Member* member : others)
    sidecars_->ask_who_hears(member->pod, std::format("rank {}", member->rank), silent);
}

// Reports come through the Set Managers.
void JobShell::gather(const Observed& o) {
  const auto now = std::chrono::steady_clock::now();
  if (!advisor_.active() || !o.job.status.epoch || now < next_report_) return;
  if (o.job.status.phase != crds::JobPhase::kRunning && o.job.status.phase != crds::JobPhase::kMigrating) return;
  // Once a superstep if they are long; several short ones at once, since each report costs a reconcile. The ring holds 256.
  const double pace = o.superstep_seconds > 0 ? o.superstep_seconds : 0.1;
  const double least = std::clamp(100 * pace, 0.05, 0.25);
  next_report_ = now + std::chrono::duration_cast<std::chrono::milliseconds>(
                           std::chrono::duration<double>(std::clamp(pace, least, 0.5)));
  if (stands_still(o)) return;  // no superstep ends meanwhile, and the move needs the pods' share of a core
  const std::uint64_t every = advisor_.begin_round();
  const auto managers = set_managers(o);
  std::map<std::uint32_t, Sidecars::SetRequest> requests;  // by Set
  for (const wire::Member& member : o.job.status.epoch->members) {
    const auto manager = managers.find(member.set);
    if (manager == managers.end()) continue;
    Sidecars::SetRequest& request = requests[member.set];
    if (request.manager.empty()) request = {manager->second, json::array(), every};
    request.members.push_back({{"rank", member.rank},
                               {"address", member.address},
                               {"pod", member.pod},
                               {"since", advisor_.since(member.rank)}});
  }
  for (const auto& [set, request] : requests) sidecars_->ask_reports(request);
}

void JobShell::note_advice(const Observed& o, const Advice& advice) {
  for (const std::string& line : advice.text) log_debug(line);
  for (const std::string& line : advice.records) options_.record(job_ref_.at.name_space, job_ref_.at.name, line);
  if (!advice.gains.empty()) events_.add(gain_event(advice.gains, o.migrations));
  for (const RealisedGain& gain : advice.gains)
    for (const crds::RankMigration& m : o.migrations)
      if (m.metadata.name == gain.migration) {
        crds::RankMigration with_gain = m;
        with_gain.status.realised_gain_seconds = gain.seconds;
        migrations_.add(with_gain);
      }
}

}  // namespace bsp::reconcile
