#include "operator/reconcile/shell/job/report_rounds.h"

#include <algorithm>
#include <map>

#include "operator/reconcile/kernel/rescheduling/rescheduling.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {

using nlohmann::json;

namespace {

// Once a superstep if they are long; several short ones at once, since each report costs a reconcile. The ring holds 256.
Duration round_for(double superstep_seconds) {
  const double pace = superstep_seconds > 0 ? superstep_seconds : 0.1;
  const double least = std::clamp(100 * pace, 0.05, 0.25);
  return from_seconds(std::clamp(pace, least, 0.5));
}

}  // namespace

void ReportRounds::take(const crds::BspJob& job, Sidecars& sidecars) {
  const crds::BspJobStatus& status = job.status;
  if (!ranks_run(status)) {
    if (!crds::is_finished(status.phase)) advisor_.forget();
    return;
  }
  advisor_.begin(job);
  for (const wire::RankReport& report : sidecars.take_reports())
    if (advisor_.add(report) && report.rank < status.ranks.size())
      sidecars.note_completed(status.ranks[report.rank].seat(), report.completed);
}

void ReportRounds::ask(const Observed& o, Sidecars& sidecars) {
  const auto now = std::chrono::steady_clock::now();
  if (!ranks_run(o.job.status) || !advisor_.active() || now < next_) return;
  next_ = now + round_for(o.superstep_seconds);
  if (stands_still(o)) return;  // no superstep ends meanwhile, and the move needs the pods' share of a core
  const std::uint64_t every = advisor_.begin_round();
  const auto managers = set_managers(o);
  std::map<std::uint32_t, Sidecars::SetRequest> requests;  // by Set
  for (const wire::Member& member : o.job.status.epoch->members) {
    const auto manager = managers.find(member.set);
    if (manager == managers.end()) continue;
    Sidecars::SetRequest& request = requests[member.set];
    if (request.manager.pod.empty()) request = {manager->second, json::array(), every};
    request.members.push_back({{"rank", member.rank},
                               {"address", member.address},
                               {"pod", member.pod},
                               {"since", advisor_.since(member.rank)}});
    if (member.seat != 0) request.members.back()[wire::kSeat] = member.seat;
  }
  for (const auto& [set, request] : requests) sidecars.ask_reports(request);
}

}  // namespace bsp::reconcile
