#include "operator/reconcile/job.h"

#include <algorithm>
#include <format>

#include "operator/decide/mapping.h"
#include "operator/reconcile/placement.h"
#include "operator/reconcile/status.h"
#include "operator/reconcile/waves.h"

namespace bsp::reconcile {
namespace {

using crds::JobPhase;

struct Kernel {
  const Observed& o;
  const migrate::Limits& limits;
  const JobLimits& job_limits;
  Outcome out;

  crds::BspJobStatus& status() { return out.status; }

  void enter(JobPhase phase, std::string reason, std::string message) {
    out.store_first = true;
    if (status().phase != phase)
      out.events.push_back({phase == JobPhase::kFailed || phase == JobPhase::kRestarting ? "Warning" : "Normal",
                            reason, message});
    status().phase = phase;
    status().reason = std::move(reason);
    status().message = std::move(message);
    if (crds::is_finished(phase)) status().completion_time = o.now;
  }

  // As find_failure() sees it: the sidecar knows how the program ended, the node only how bsp-init did.
  bool exited_well(const crds::RankPlace& place) const {
    if (const wire::RankStatus* s = rank_status(place.pod); s && s->phase == wire::RankPhase::kExited)
      return s->exit_code == 0 && s->exit_signal == 0;
    const auto pod = o.pods.find(place.pod);
    return pod != o.pods.end() && pod->second.app_ended && pod->second.app_exit_code == 0;
  }

  bool past_deadline() const {
    const auto deadline = o.job.spec.run_policy.active_deadline_seconds;
    return deadline && o.now > o.job.status.start_time + std::chrono::seconds(*deadline);
  }
  void fail_by_deadline() {
    fail_attempt({{}, "", "DeadlineExceeded",
                  std::format("the job ran longer than spec.runPolicy.activeDeadlineSeconds ({} s)",
                              *o.job.spec.run_policy.active_deadline_seconds),
                  true});
  }
  void suspend() { enter(JobPhase::kSuspended, "Suspended", "spec.runPolicy.suspend is set"); }

  // Whatever has no wave to end it is ended here.
  void end_orphans(const migrate::Wave* wave) {
    for (const Refusal& refusal : orphans(wave, o))
      for (const auto& m : o.migrations)
        if (m.metadata.name == refusal.migration) out.migrations.push_back(refused(m, refusal, o.now));
  }

  const wire::RankStatus* rank_status(const std::string& pod) const {
    const auto it = o.sidecars.find(pod);
    return it == o.sidecars.end() || !it->second.status ? nullptr : &*it->second.status;
  }

  // A node that is lost keeps nobody waiting: what may still run there belongs to an epoch that is over, and its pod's name
  // and certificate are never used again.
  bool pods_left() const {
    return std::ranges::any_of(o.pods, [](const auto& entry) { return !entry.second.abandoned; });
  }

  void delete_all_pods() {
    for (const auto& [name, pod] : o.pods)
      if (!pod.deleting) out.delete_pods.push_back(name);
  }

  void fail_attempt(const Failure& failure) {
    const auto& policy = o.job.spec.run_policy;
    const std::uint32_t attempt = status().attempt;
    status().restarts.push_back({.attempt = attempt,
                                 .time = o.now,
                                 .reason = failure.reason,
                                 .message = failure.message,
                                 .rank = failure.rank ? std::optional<RankId>(RankId{*failure.rank})
                                                      : std::nullopt});
    out.show_logs_of = failure.pod;
    status().migrations.active = 0;
    if (failure.final) return enter(JobPhase::kFailed, failure.reason, failure.message);
    if (attempt >= policy.backoff_limit)
      return enter(JobPhase::kFailed, failure.reason,
                   policy.backoff_limit == 0
                       ? failure.message
                       : std::format("{} (attempt {} of {})", failure.message, attempt + 1,
                                     policy.backoff_limit + 1));
    ++status().attempt;
    enter(JobPhase::kRestarting, failure.reason, failure.message);
  }

  // --- Phases ---
  void pending() {
    if (o.job.spec.run_policy.suspend) return suspend();
    if (pods_left()) return delete_all_pods();  // of an attempt before
    if (o.images_unreadable)
      if (const auto whole = check_without_image(o.job.spec); !whole)
        return enter(JobPhase::kFailed, "TemplateIncomplete", whole.error().message);
    const auto sets = observe::set_names(o.job.spec.sets, o.nodes);
    for (const std::string& name : sets)
      if (std::ranges::none_of(o.nodes, [&](const auto& n) { return n.set == name; }))
        return enter(JobPhase::kFailed, "NoSuchSet",
                     std::format("spec.sets.names: no node belongs to Set {} (label {})", name,
                                 o.job.spec.sets.label));
    const auto calibration = observe::Calibration::from_status(status().calibration);
    const decide::Platform platform = observe::make_platform(sets, o.nodes, calibration);
    const auto mapping =
        decide::initial_mapping(static_cast<decide::Mapping>(o.job.spec.initial_mapping), o.job.spec.ranks, platform);
    if (!mapping) return enter(JobPhase::kFailed, "NoCapacity", mapping.error().message);
    status().ranks.resize(o.job.spec.ranks);
    for (std::uint32_t r = 0; r < o.job.spec.ranks; ++r) {
      crds::RankPlace& place = status().ranks[r];
      const decide::Processor& processor = platform.processor((*mapping)[r]);
      const std::uint32_t generation = place.generation;
      place = {};
      place.rank = {r};
      place.set = platform.sets[processor.set.value].name;
      place.node = processor.name;
      place.pod = pod_name(o.job.metadata.name, r, generation);
      place.generation = generation + 1;
    }
    if (status().start_time == Time{}) status().start_time = o.now;
    status().epoch.reset();
    status().wave_state = nullptr;
    status().rescheduler = nullptr;
    status().superstep = {};
    if (status().epochs_used == 0) status().epochs_used = 1;  // a sidecar says 0 for "never opened"
    enter(JobPhase::kStarting, "Mapped", mapped());
  }

  std::string mapped() const {
    return std::format("{} ranks are mapped {}", o.job.spec.ranks, crds::to_string(o.job.spec.initial_mapping));
  }

  void starting() {
    if (const auto failure = find_failure(o, job_limits)) return fail_attempt(*failure);
    if (past_deadline()) return fail_by_deadline();
    if (o.job.spec.run_policy.suspend) return suspend();
    std::string cold;   // who is not ready, and what it lacks
    std::string waits;  // the same, if somebody else than we must do something about it
    auto lacks = [&](const crds::RankPlace& place, std::string_view what) {
      cold += std::format("{}{} of rank {} {}", cold.empty() ? "" : ", ", place.pod, place.rank.value, what);
    };
    wire::EpochPlan plan;
    plan.sets = observe::set_names(o.job.spec.sets, o.nodes);
    for (const crds::RankPlace& place : status().ranks) {
      const std::uint32_t r = place.rank.value;
      const auto pod = o.pods.find(place.pod);
      if (pod == o.pods.end()) {
        out.create_pods.push_back({.rank = r,
                                   .generation = place.generation - 1,
                                   .attempt = status().attempt,
                                   .set = place.set,
                                   .node = place.node,
                                   .target = false,
                                   .migration = ""});
        const auto why = o.not_created.find(place.pod);
        if (why == o.not_created.end()) {
          lacks(place, "does not exist");
          continue;
        }
        if (why->second.code == ErrorCode::kInvalid)
          return fail_attempt({r, "", "InvalidPod",
                               std::format("spec.template: the pod of rank {} is refused: {}", r, why->second.message),
                               true});
        lacks(place, "can't be made: " + why->second.message);
        waits = cold;
        continue;
      }
      const wire::RankStatus* s = rank_status(place.pod);
      const std::string_view missing = exited_well(place)            ? ""  // a short program: nobody saw it run
                                       : pod->second.address.empty() ? "has no address"
                                       : !s                          ? "has a sidecar that never answered"
                                       : !s->init_connected          ? "has no bsp-init"
                                                                     : "";
      if (!pod->second.unscheduled.empty() && pod->second.address.empty()) {
        lacks(place, "finds no node: " + pod->second.unscheduled);
        waits = cold;
      } else if (!missing.empty()) {
        lacks(place, missing);
      }
      auto set = std::ranges::find(plan.sets, place.set);
      if (set == plan.sets.end()) set = plan.sets.insert(set, place.set);  // its last node has just left
      plan.members.push_back({r, place.pod, pod->second.uid, pod->second.address,
                              static_cast<std::uint32_t>(set - plan.sets.begin())});
    }
    if (!cold.empty()) {
      // Measured from when the pods were asked for; once there is an epoch it is find_failure() that sees losses.
      const crds::Condition* since = crds::find_condition(o.job.status.conditions, "Starting");
      if (!status().epoch && since && since->status == crds::ConditionStatus::kTrue &&
          o.now > since->last_transition_time + job_limits.start)
        fail_attempt({{}, "", "StartTimeout",
                      std::format("not every rank's pod was ready after {:.0f} s: {}", to_seconds(job_limits.start), cold),
                      false});
      else
        status().message = waits.empty() ? mapped() : waits;
      return;
    }
    if (!status().epoch) {
      plan.epoch = status().epochs_used++;
      plan.pmix_namespace = std::format("{}-e{}", o.job.metadata.uid, plan.epoch);
      status().epoch = std::move(plan);
      out.store_first = true;
      return;
    }
    if (open_epoch()) enter(JobPhase::kRunning, "Running", "every rank runs");
  }

  // Prepares and opens the committed epoch wherever it is not open; true once it is open everywhere.
  bool open_epoch() {
    const wire::EpochPlan& epoch = *status().epoch;
    const bool all_prepared = std::ranges::all_of(epoch.members, [&](const wire::Member& m) {
      const wire::RankStatus* s = rank_status(m.pod);
      return s && (s->prepared_epoch >= epoch.epoch || s->epoch >= epoch.epoch);
    });
    bool open = true;
    for (const wire::Member& m : epoch.members) {
      const wire::RankStatus* s = rank_status(m.pod);
      if (s && s->epoch >= epoch.epoch && s->phase != wire::RankPhase::kOpening) continue;
      if (exited_well(status().ranks[m.rank])) continue;
      open = false;
      if (!s) continue;
      if (s->prepared_epoch < epoch.epoch) {
        nlohmann::json fields;
        to_json(fields, epoch);
        out.verbs.push_back({m.pod, wire::kPrepareEpoch, std::move(fields),
                             migrate::ActionKind::kPrepareEpoch, epoch.epoch});
      } else if (all_prepared) {
        out.verbs.push_back({m.pod, wire::kOpenEpoch, {{"epoch", epoch.epoch}},
                             migrate::ActionKind::kOpenEpoch, epoch.epoch});
      }
    }
    return open;
  }

  void running() {
    auto stored = stored_wave(status());
    if (!stored) return fail_attempt({{}, "", "Internal", stored.error().message, true});
    if (*stored && !migrate::is_finished(**stored)) return migrating(**stored);
    if (*stored) after_wave(**stored);
    end_orphans(*stored ? &**stored : nullptr);

    if (std::ranges::all_of(status().ranks, [&](const auto& place) { return exited_well(place); })) {
      // A rank that ended well before MPI_Init is a failure, told below.
      if (!find_failure(o, job_limits))
        return enter(JobPhase::kSucceeded, "Completed", "every rank exited with code 0");
    }
    if (const auto failure = find_failure(o, job_limits)) return fail_attempt(*failure);
    if (past_deadline()) return fail_by_deadline();
    if (o.job.spec.run_policy.suspend) return suspend();
    // A gate nobody waits for any more (its operator died between asking and knowing) holds a rank.
    for (const crds::RankPlace& place : status().ranks)
      if (const wire::RankStatus* s = rank_status(place.pod);
          s && s->gate_superstep != 0 && !s->gate_committed && s->phase != wire::RankPhase::kExited)
        out.verbs.push_back({place.pod, wire::kCancelGate, {{"superstep", s->gate_superstep}},
                             migrate::ActionKind::kCancelGate, s->gate_superstep});
    if (status().phase == JobPhase::kMigrating)
      return enter(JobPhase::kRunning, "Running", "every rank runs");
    begin_moves();
  }

  // A wave of what the cost model wants and of what people have asked for.
  void begin_moves() {
    std::vector<MoveRequest> requests;
    if (o.decided) {
      status().last_decision = o.decided->decision;
      out.store_first = true;
      out.events.push_back({"Normal", "Rescheduled", o.decided->decision.message});
      requests = o.decided->moves;
    }
    std::ranges::copy(waiting_requests(o), std::back_inserter(requests));
    if (requests.empty()) return;
    auto refuse = [&](const Refusal& refusal) {
      for (const auto& m : o.migrations)
        if (m.metadata.name == refusal.migration) out.migrations.push_back(refused(m, refusal, o.now));
      out.events.push_back({"Warning", refusal.reason,
                            (refusal.migration.empty() ? "" : refusal.migration + ": ") + refusal.message});
    };
    if (std::ranges::any_of(status().ranks, [&](const auto& place) { return exited_well(place); })) {
      for (const MoveRequest& r : requests)
        if (!r.migration.empty()) refuse({r.migration, "ProgramFinished", "the program is ending"});
      return;
    }
    const Begun begun = begin_wave(o, std::move(requests), status());
    for (const Refusal& r : begun.refused) refuse(r);
    if (begun.wave)
      enter(JobPhase::kMigrating, "Migrating",
            std::format("wave {} moves {} rank(s)", begun.wave->number, begun.wave->moves.size()));
  }

  void migrating(const migrate::Wave& wave) {
    // Later phases see it themselves; this one would wait for sidecars that have gone with their program.
    const bool ends = wave.phase == migrate::Phase::kPreparing &&
                      std::ranges::any_of(status().ranks, [&](const auto& place) { return exited_well(place); });
    const std::string cancelled = o.job.spec.run_policy.suspend ? "the job is to be suspended"
                                  : past_deadline()             ? "the job's deadline has passed"
                                  : ends                        ? "the program is ending"
                                                                : "";
    const migrate::Step step = migrate::step(wave, view_of(o, cancelled), o.now, limits);
    out.migrations = show_wave(wave, o);
    end_orphans(&wave);
    if (!step.changed) return carry_out(step, o, out);
    out.store_first = true;
    status().wave_state = migrate::to_json(step.wave);
    if (step.commit) {
      status().epoch = *step.commit;
      if (step.wave.phase == migrate::Phase::kResuming) place_ranks(step.wave, status());
    }
    for (std::size_t i = wave.times.size(); i < step.wave.times.size(); ++i) {  // every phase passed in this change
      const bool last = i + 1 == step.wave.times.size();
      out.events.push_back({last && !step.wave.reason.empty() ? "Warning" : "Normal",
                            "Wave" + std::string(crds::to_string(step.wave.times[i].phase)),
                            std::format("wave {}{}", wave.number,
                                        last && !step.wave.message.empty() ? ": " + step.wave.message : "")});
    }
    if (migrate::is_finished(step.wave)) count_wave(step.wave);
    if (step.wave.phase == migrate::Phase::kFailed) {
      const auto lost = step.wave.lost_rank;
      fail_attempt({lost, lost ? status().ranks[*lost].pod : "", step.wave.reason, step.wave.message, false});
    }
  }

  void count_wave(const migrate::Wave& wave) {
    auto& m = status().migrations;
    const auto n = static_cast<std::uint32_t>(wave.moves.size());
    m.active = 0;
    if (wave.phase == migrate::Phase::kSucceeded) m.succeeded += n;
    if (wave.phase == migrate::Phase::kRolledBack) m.rolled_back += n;
    if (wave.phase == migrate::Phase::kFailed) m.failed += n;
  }

  // What a wave leaves to be done when it has ended: its objects' last word, the pods nobody needs.
  void after_wave(const migrate::Wave& wave) {
    out.migrations = show_wave(wave, o);
    carry_out(migrate::step(wave, view_of(o, ""), o.now, limits), o, out);
  }

  void restarting() {
    if (auto wave = stored_wave(status()); wave && *wave && migrate::is_finished(**wave))
      out.migrations = show_wave(**wave, o);
    if (pods_left()) return delete_all_pods();
    if (!out.migrations.empty()) return;  // the next attempt forgets the wave: its objects must have ended
    enter(JobPhase::kPending, "Restarting", std::format("attempt {}", status().attempt + 1));
  }

  void suspended() {
    if (pods_left()) return delete_all_pods();
    if (o.job.spec.run_policy.suspend) return;
    status().start_time = {};  // the deadline counts from the resumption, as a Job's does
    enter(JobPhase::kPending, "Resumed", "spec.runPolicy.suspend was cleared");
  }

  void finished() {
    auto wave = stored_wave(status());
    const bool ended = wave && *wave && migrate::is_finished(**wave);
    if (ended) out.migrations = show_wave(**wave, o);
    end_orphans(ended ? &**wave : nullptr);
    const auto policy = o.job.spec.run_policy.clean_pod_policy;
    for (const auto& [name, pod] : o.pods) {
      const bool current = std::ranges::any_of(status().ranks, [&](const auto& p) { return p.pod == name; });
      // The sidecar tells of an end before the node does; the pod holds the log that says why.
      const wire::RankStatus* s = rank_status(name);
      const bool ended_app = pod.app_ended || (s && s->phase == wire::RankPhase::kExited);
      const bool remove = policy == crds::CleanPodPolicy::kAll || !current ||
                          (policy == crds::CleanPodPolicy::kRunning && !ended_app);
      if (remove && !pod.deleting) out.delete_pods.push_back(name);
    }
    for (const auto& m : o.migrations)
      if (m.status.phase == migrate::Phase::kPending &&
          std::ranges::none_of(out.migrations, [&](const auto& told) { return told.metadata.name == m.metadata.name; }))
        out.migrations.push_back(refused(m, {m.metadata.name, "JobFinished", "the job has ended"}, o.now));
    if (const auto ttl = o.job.spec.run_policy.ttl_seconds_after_finished;
        ttl && o.now > status().completion_time + std::chrono::seconds(*ttl))
      out.remove_job = true;
  }
};

}  // namespace

Outcome reconcile_job(const Observed& o, const migrate::Limits& limits, const JobLimits& job_limits) {
  Kernel k{o, limits, job_limits, {}};
  k.out.status = o.job.status;
  k.out.status.observed_generation = o.job.metadata.generation;
  if (o.job.metadata.deletion_timestamp != Time{}) {
    k.delete_all_pods();
    k.out.remove_finalizer = !k.pods_left();
    return std::move(k.out);
  }
  switch (o.job.status.phase) {
    case JobPhase::kPending: k.pending(); break;
    case JobPhase::kStarting: k.starting(); break;
    case JobPhase::kRunning:
    case JobPhase::kMigrating: k.running(); break;
    case JobPhase::kRestarting: k.restarting(); break;
    case JobPhase::kSuspended: k.suspended(); break;
    case JobPhase::kSucceeded:
    case JobPhase::kFailed: k.finished(); break;
  }
  refresh_status(o, k.out.status);
  return std::move(k.out);
}

}  // namespace bsp::reconcile
