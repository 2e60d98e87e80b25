#include "operator/reconcile/shell/job/follower.h"

#include <format>
#include <utility>

#include "operator/reconcile/kernel/silence.h"
#include "operator/reconcile/kernel/status.h"

namespace bsp::reconcile {

Observed Follower::observe(const crds::BspJob& job, Sidecars& sidecars) {
  std::set<std::string> being_resized = pods_.resizes().being_resized();
  Cluster cluster = observer_.read(job, pods_.being_made());
  keep_up(cluster, sidecars);
  Observed o = observer_.observe(std::move(cluster), sidecars);
  o.being_resized = std::move(being_resized);
  add_history(o);
  return o;
}

void Follower::greet(Sidecars& sidecars) const {
  if (!has_observed_) sidecars.track(observer_.reachable());
}

// Before the sidecars are read: a lost pod must not hear the operator, and a new wave starts without earlier answers.
void Follower::keep_up(Cluster& cluster, Sidecars& sidecars) {
  has_observed_ = true;
  pods_.take_results();
  const crds::BspJobStatus& status = cluster.job.status;
  ends_.judge(cluster, sidecars);
  sidecars.track(cluster.reachable);
  sidecars.begin_wave(status.wave);
  reports_.take(cluster.job, sidecars);
}

void Follower::add_history(Observed& o) {
  const bool runs = ranks_run(o.job.status);
  pods_.add_refused(o);
  pods_.resizes().add_refused(o);
  o.pod_group = pod_group_.known();
  benchmarks_.share(o);
  progress_.fill(o);
  if (runs) o.superstep_seconds = advisor_.superstep_seconds();
  clocks_.fill(o);
  o.everywhere = sidecar_thread_.note_hearing(job_ref_.uid, runs ? hearing_of(o) : Hearing{});
}

void Follower::ask(const Observed& o, Sidecars& sidecars) {
  reports_.ask(o, sidecars);
  const Inquiry inquiry = inquiry_about_silence(o);
  for (const wire::Member* member : inquiry.asked)
    sidecars.ask_who_hears(seat_of(*member), std::format("rank {}", member->rank), inquiry.about);
}

}  // namespace bsp::reconcile
