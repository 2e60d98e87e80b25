// Running and Migrating: until every rank has ended, one wave of moves after the other.
#include <algorithm>
#include <format>

#include "base/core/significant.h"
#include "crds/requests.h"
#include "operator/reconcile/kernel/checkpoints/checkpoints.h"
#include "operator/reconcile/kernel/checkpoints/suspension.h"
#include "operator/reconcile/kernel/drain.h"
#include "operator/reconcile/kernel/job_kernel.h"
#include "operator/reconcile/kernel/prices.h"
#include "operator/reconcile/kernel/resize/resize.h"
#include "operator/reconcile/kernel/seats/free_seats.h"
#include "operator/reconcile/kernel/start/gang.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {

using crds::JobPhase;

void JobKernel::running() {
  if (went_back()) return;
  auto stored = stored_wave(status());
  if (!stored) return fail_attempt({{}, {}, "Internal", stored.error().message, true});
  // Before a rank's end is seen: what all have stored by then counts.
  if (auto settled = settle_set(o, status())) {
    stores = true;
    std::ranges::move(*settled, std::back_inserter(notices.events));
    return;
  }
  if (note_hold(o, held(), notices.events, status())) {
    stores = true;
    return;
  }
  if (*stored && !migrate::is_finished(**stored)) return migrating(**stored);
  if (*stored) after_wave(**stored);
  end_orphans(*stored ? &**stored : nullptr);

  if (std::ranges::all_of(status().ranks, [&](const auto& place) { return exited_well(place); })) {
    // A rank that ended well before MPI_Init is a failure, reported below.
    if (!find_failure(o, job_limits)) return succeed();
  }
  if (const auto failure = find_failure(o, job_limits)) {
    if (container_ends(*failure) || cause_may_show(*failure)) return;
    return fail_attempt(*failure);
  }
  if (past_deadline()) return fail_by_deadline();
  if (held() && last_set(o) == LastSet::kSettled) return suspend();
  if (const std::uint32_t seen = waves_seen(o); seen > status().wave) {
    // An older status was restored, or a lost one rebuilt: sidecars refuse verbs of waves that they have seen overtaken.
    status().wave = seen + 1;
    stores = true;
  }
  // An armed gate whose operator died before its verdict still holds a rank.
  const wire::Token token = newest_token(status(), *stored);
  for (const crds::RankPlace& place : status().ranks)
    if (const wire::RankStatus* s = o.said(place.seat());
        s && s->gate_superstep != 0 && !s->gate_committed && s->phase != wire::RankPhase::kExited)
      work.actions.emplace_back(migrate::Action::cancel_gate(place.seat(), s->gate_superstep)).token = token;
  if (status().phase == JobPhase::kMigrating) return enter(JobPhase::kRunning, "Running", "every rank runs");
  if (settle_resizes(o, status(), notices.events)) {
    stores = true;
    return;
  }
  work.resize_pods = resizes_to_make(o);
  if (resize_under_way(o)) return;
  // A wave would be rolled back at once.
  if (!silence.ranks.empty()) return;
  // The next wave replaces this one in the status, so finish this one's remaining work first.
  const bool clears = std::ranges::any_of(work.actions, [](const migrate::Action& action) {
    return action.kind == migrate::ActionKind::kKill || action.kind == migrate::ActionKind::kDiscard;
  });
  if (!notices.migrations.empty() || !work.delete_pods.empty() || clears || !o.being_made.empty()) return;
  for (const Leftover& left : leftovers(o))
    work.actions.push_back({.kind = migrate::ActionKind::kDiscard,
                            .seat = left.seat,
                            .fields = wire::encode(wire::MigrationRequest{left.migration}),
                            .token = token});
  if (auto remove = remove_older_sets(o)) work.actions.push_back(std::move(*remove));
  if (auto refused = refuse_set(o, status())) {
    stores = true;
    notices.events.push_back(std::move(*refused));
    return;
  }
  const bool due = held() ? last_set(o) == LastSet::kDue : set_is_due(o) || (set_is_asked(o) && can_make_set(o));
  if (due) {
    const migrate::Wave wave = begin_set(o, status());
    return enter(JobPhase::kMigrating, "Checkpointing",
                 std::format("checkpoint set {} is being made", wave.checkpoint->set));
  }
  if (!held() && !moves_wait(o)) begin_moves();
}

// A wave of the moves that the cost model and users request.
void JobKernel::begin_moves() {
  for (crds::RankMigration& asked : asked_on_pods(o))
    if (std::ranges::none_of(o.migrations, [&](const auto& m) { return m.metadata.name == asked.metadata.name; }))
      notices.migrations.push_back(std::move(asked));
  const std::vector<MoveRequest> by_hand = waiting_requests(o);
  // What can't wait gets slots first: drains, and evictions.
  std::vector<MoveRequest> requests = ranks_to_move_away(o, by_hand);
  std::ranges::copy_if(by_hand, std::back_inserter(requests), &MoveRequest::away);
  if (advice.call) {
    status().last_decision = advice.call->decision;
    stores = true;
    // What people ask for, and what can't wait, goes first; another call follows.
    if (requests.empty() && by_hand.empty()) ask_for(advice.call->resizes, o.now, status());
    const bool back = advice.call->decision.outcome == crds::kTakingBack;
    notices.events.push_back(
        {back ? "Warning" : "Normal", back ? "WaveTakenBack" : "Rescheduled", advice.call->decision.message});
    const auto planned = static_cast<std::ptrdiff_t>(requests.size());
    for (const MoveRequest& move : advice.call->moves)
      if (std::ranges::none_of(requests, [&](const MoveRequest& r) { return r.rank == move.rank; }))
        requests.push_back(move);
    // In the order in which Auto counts who takes a free seat (auto/pods.h).
    std::sort(requests.begin() + planned, requests.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  }
  std::ranges::copy_if(by_hand, std::back_inserter(requests), [](const MoveRequest& r) { return !r.away; });
  if (requests.empty()) return note_drain("");
  auto refuse_aloud = [&](const Refusal& refusal) {
    refuse(refusal);
    notices.events.push_back(
        {"Warning", refusal.reason, (refusal.migration.empty() ? "" : refusal.migration + ": ") + refusal.message});
  };
  if (std::ranges::any_of(status().ranks, [&](const auto& place) { return exited_well(place); })) {
    for (const MoveRequest& r : requests)
      if (!r.migration.empty()) refuse_aloud({r.migration, "ProgramFinished", "the program is ending"});
    return;
  }
  const WaveStart start = begin_wave(o, requests, status());
  note_drain(start.stuck);
  for (const Refusal& r : start.refused) refuse_aloud(r);
  for (const Refusal& r : start.waiting) note_waiting(r);
  if (!start.wave) return;
  work.moving = true;
  for (const migrate::Move& move : start.wave->moves)
    change.reserve.push_back({move.target_pod, move.rank, status().epoch->sets[move.target_set], move.target_node});
  enter(JobPhase::kMigrating, "Migrating",
        std::format("wave {} moves {} {}", start.wave->number, start.wave->moves.size(),
                    start.wave->moves.size() == 1 ? "rank" : "ranks"));
}

// Before the moves of a wave change where the ranks are.
void JobKernel::note_drain(const std::string& stuck) {
  const crds::Condition* before = crds::find_condition(status().conditions, kDraining);
  const std::string reason = before ? before->reason : "";
  if (!show_drain(o, stuck, status())) return;
  stores = true;
  const crds::Condition& now = *crds::find_condition(status().conditions, kDraining);
  if (now.reason != reason) notices.events.push_back({stuck.empty() ? "Normal" : "Warning", now.reason, now.message});
}

// A migration that can't begin yet says why in its status, once.
void JobKernel::note_waiting(const Refusal& why) {
  for (crds::RankMigration m : o.migrations) {
    if (m.metadata.name != why.migration || m.status.message == why.message) continue;
    m.status.observed_generation = m.metadata.generation;
    m.status.reason = why.reason;
    m.status.message = why.message;
    notices.migrations.push_back(std::move(m));
  }
}

void JobKernel::migrating(const migrate::Wave& wave) {
  // Later phases notice by themselves; this one would wait for sidecars that ended with their program.
  const bool ends = wave.phase == migrate::Phase::kPreparing &&
                    std::ranges::any_of(status().ranks, [&](const auto& place) { return exited_well(place); });
  const std::string deleted = deleted_of(wave, o);
  const bool suspends = held() && !makes_last_set(wave, o);
  const std::string cancelled = suspends           ? "the job is being suspended"
                                : past_deadline()  ? "the job's deadline has passed"
                                : ends             ? "the program is ending"
                                : !deleted.empty() ? std::format("RankMigration {} was deleted", deleted)
                                                   : why_dearer(wave, o);
  work.moving = true;
  const auto failure = find_failure(o, job_limits);
  if (failure && cause_may_show(*failure)) return;  // no rank goes on any more
  migrate::View view = view_of(o, silence, cancelled);
  view.job_ends = suspends || past_deadline();
  view.bytes_per_second = bandwidth_of(wave, o);
  const migrate::Step step = migrate::step(wave, view, o.now, limits);
  notices.migrations = show_wave(wave, o);
  end_orphans(&wave);
  const migrate::WaveChange* const next = step.change();
  if (!next) {
    add_actions(wave, step.work(), o, work);
    // The target's too: somebody may have deleted it since the start.
    if (!work.create_pods.empty() && !work.create_pods.front().pod_group.empty())
      work.pod_group = make_pod_group(o.job, work.create_pods.front().pod_group, pods_of(status().ranks));
    return;
  }
  stores = true;
  migrate::Wave after = next->wave;
  // A wave names the first end that it meets, which may follow from another.
  const bool follows =
      after.phase == migrate::Phase::kFailed && after.lost_rank && failure && failure->rank != after.lost_rank;
  if (follows) {
    after.lost_rank = failure->rank;
    after.message = failure->message;
  }
  status().wave_state = migrate::to_json(after);
  // At a gate that is postponed the ranks compute, and its migrations say what it waits for.
  const bool stands = !migrate::is_finished(after) && after.phase != migrate::Phase::kPausing;
  show_delay(o, stands ? after.delay : "", status());
  if (next->commit) {
    status().epoch = *next->commit;
    place_ranks(after, o, status());
  }
  for (std::size_t i = wave.times.size(); i < after.times.size(); ++i) {  // every phase passed by this change
    const bool last = i + 1 == after.times.size();
    notices.events.push_back(
        {.type = last && !after.reason.empty() ? "Warning" : "Normal",
         .reason = "Wave" + std::string(crds::to_string(after.times[i].phase)),
         .message = std::format("wave {}{}", wave.number, last && !after.message.empty() ? ": " + after.message : ""),
         .only_logged = true});
  }
  if (migrate::is_finished(after)) {
    std::ranges::move(wave_events(after, o), std::back_inserter(notices.events));
    std::ranges::move(note_set(after, o, status()), std::back_inserter(notices.events));
  }
  if (wave.delay.empty() && !after.delay.empty() && stands)
    notices.events.push_back({"Warning", "WaveDelayed", std::format("wave {}: {}", wave.number, after.delay)});
  if (migrate::is_finished(after)) count_wave(after);
  if (after.phase == migrate::Phase::kFailed) {
    if (view.job_ends && after.reason == "Cancelled") return past_deadline() ? fail_by_deadline() : suspend();
    const auto lost = after.lost_rank;
    fail_attempt({lost, lost ? status().ranks[*lost].seat() : Seat{}, after.reason,
                  after.message + (lost && !follows ? where(status().ranks[*lost], o) : ""), false});
  }
}

void JobKernel::count_wave(const migrate::Wave& wave) {
  auto& m = status().migrations;
  const auto n = static_cast<std::uint32_t>(wave.moves.size());
  m.active = 0;
  if (wave.pause.total_ms > 0)
    status().pause_seconds = significant(status().pause_seconds.value_or(0) + wave.pause.total_ms * 1e-3, 6);
  if (wave.phase == migrate::Phase::kSucceeded) m.succeeded += n;
  if (wave.phase == migrate::Phase::kRolledBack) m.rolled_back += n;
  if (wave.phase == migrate::Phase::kFailed) m.failed += n;
}

// What remains when a wave has ended: the final status of its RankMigrations, and pods that are no longer needed.
void JobKernel::after_wave(const migrate::Wave& wave) {
  notices.migrations = show_wave(wave, o);
  add_actions(wave, migrate::step(wave, view_of(o, silence, ""), o.now, limits).work(), o, work);
}

}  // namespace bsp::reconcile
