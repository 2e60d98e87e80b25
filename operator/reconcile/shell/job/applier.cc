#include "operator/reconcile/shell/job/applier.h"

#include <algorithm>
#include <format>

#include "base/core/base64.h"
#include "base/core/fault.h"
#include "base/core/log.h"
#include "base/json/utf8.h"
#include "base/net/pki.h"
#include "crds/sets/set_keys.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {

using nlohmann::json;

namespace {

// The kernels know no secret: the key of a set is derived where its request is sent.
std::optional<migrate::Action> with_key(const migrate::Action& action, const Prepared& prepared) {
  const auto needed = action.needs_key();
  if (!needed) return action;
  std::string sets = prepared.signer->sets;
  if (!needed->of_job.empty()) {
    // Of an exported set, which may be another cluster's: its sidecars have been given the key.
    if (needed->grant == crds::kKeyInPod) return action.with_key("");
    if (!prepared.signer->sets_of) return std::nullopt;
    auto granted = prepared.signer->sets_of(needed->of_job, needed->grant);
    if (!granted) log_warning("a checkpoint set isn't restored", {{"reason", granted.error().message}});
    if (!granted) return std::nullopt;
    sets = std::move(*granted);
  }
  const auto key = net::derive_key(sets, crds::set_of_sets(needed->set));
  if (!key) return std::nullopt;
  return action.with_key(base64_encode(*key));
}

}  // namespace

std::optional<Duration> Applier::apply(const Observed& o, const Advice& advice, const StatusChange& change) {
  notices_.add(o, advice);
  crds::BspJobStatus status = change.status;
  if (!append_logs(change.show_logs_of, status.message)) return kRetry;
  if (const auto reserved = reservation_.reserve(o, change); !reserved) {
    if (reserved.error().code == ErrorCode::kConflict) return std::nullopt;
    return kIdle;
  }
  if (!status_.store(o.job, status)) return std::max<Duration>(kRetry, status_.until_next_try());
  meter_.stored(o.job.status, status);
  // Only now: if this operator is killed before, the next one makes the call again.
  if (advice.call) notices_.add_reported(*advice.call);
  advisor_.stored();
  for (const Event& event : change.notices.events)
    fault_point("operator." + event.reason);  // stored; nothing of it done yet
  notices_.add(change.notices);
  return std::nullopt;
}

bool Applier::append_logs(const Seat& seat, std::string& message) {
  if (seat.pod.empty()) return true;
  const auto tail = tails_.of(seat);
  if (!tail) return false;
  if (!tail->empty()) message += std::format("; the last lines of {}:\n{}", name_of(seat), as_text(*tail));
  return true;
}

void Applier::apply(const Observed& o, const Advice& advice, const Work& work, const Prepared& prepared) {
  reservation_.reserve_nothing();
  notices_.add(o, advice);
  notices_.add(work.notices);
  for (const migrate::Action& action : work.actions)
    if (action.kind == migrate::ActionKind::kKeepSets)
      prepared.sidecars.call(remover_.complete(action, o.job));
    else if (const auto keyed = with_key(action, prepared))
      prepared.sidecars.call(*keyed);
  // Notices wait while ranks stand still: the machines have better to do.
  if (o.job.status.phase != crds::JobPhase::kMigrating || !stands_still(o)) notices_.write();
  reservation_.keep(work);
  evictions_.keep(o.job, work.protect);
  workload_.write(work.workload);
  notices_.delete_migrations(work.delete_migrations);
  pod_group_.keep(work.pod_group);
  pods_.create(o, work.create_pods, prepared.signer);
  pods_.remove(o, work.delete_pods);
  pods_.resizes().ask(work.resize_pods);
  if (work.make_remover) remover_.create(o);
  if (work.delete_remover) remover_.remove(o);
  if (work.remove_finalizer) removal_.finish();
  if (work.remove_job) removal_.delete_job();
  show_progress(o, advice, work.progress);
}

void Applier::show_progress(const Observed& o, const Advice& advice, const crds::BspJobStatus& progress) {
  meter_.show(o, progress);
  JobMeter::measured(advice.gains);
  // It can wait while ranks can't.
  const bool waits = crds::is_finished(o.job.status.phase) || stands_still(o);
  const bool due = !advice.gains.empty() || (!waits && status_.progress_is_due(o.job.status.phase));
  if (due && status_.store(o.job, progress)) meter_.stored(o.job.status, progress);
}

}  // namespace bsp::reconcile
