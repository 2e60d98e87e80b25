// A rescheduling call: from what is known of nodes and ranks to a plan, and to the moves that it asks for.
#include <algorithm>
#include <cmath>
#include <format>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "base/core/log.h"
#include "operator/decide/explain.h"
#include "operator/decide/make_plan.h"
#include "operator/observe/snapshot.h"
#include "operator/reconcile/kernel/rescheduling/decision.h"
#include "operator/reconcile/kernel/rescheduling/failed_moves.h"
#include "operator/reconcile/kernel/rescheduling/move_memory.h"
#include "operator/reconcile/kernel/rescheduling/rescheduling.h"
#include "operator/reconcile/kernel/resize/resize.h"
#include "operator/reconcile/kernel/seats/free_seats.h"
#include "operator/reconcile/kernel/seats/postponed_moves.h"
#include "operator/record/line.h"

namespace bsp::reconcile {

namespace {

// Leaves a Set no more free slots than ranks may begin to move there, so that every planned move can be made.
void keep_caps(std::vector<observe::NodeFacts>& nodes, const Observed& o) {
  std::map<std::string, std::uint32_t> ranks_on, offered;  // by node; by Set, so far
  for (const crds::RankPlace& place : o.job.status.ranks) ++ranks_on[place.node];
  for (observe::NodeFacts& node : nodes) {
    const auto left = moves_left(o.caps, o.elsewhere, node.set, 0, 0);
    if (!left) return;
    const std::uint32_t held = node.taken + ranks_on[node.name];
    const std::uint32_t free = node.slots > held ? node.slots - held : 0;
    std::uint32_t& given = offered[node.set];
    const std::uint32_t kept = std::min(free, *left > given ? *left - given : 0);
    node.taken += free - kept;
    given += kept;
  }
}

// Such a node gets no further rank.
void leave_out_odd(std::vector<observe::NodeFacts>& nodes, const Observed& o, const observe::CpuFacts& cpu) {
  std::map<std::string_view, std::uint32_t> ranks_on;
  for (const crds::RankPlace& place : o.job.status.ranks) ++ranks_on[place.node];
  for (observe::NodeFacts& node : nodes) {
    const std::uint32_t held = node.taken + ranks_on[node.name];
    if (cpu.is_odd(node.name) && node.slots > held) node.taken += node.slots - held;
  }
}

// Why the rank's last dump was refused. It isn't retried for a while, since each attempt pauses the whole job.
std::string reason_to_hold(const crds::RankMigration& m, Time now) {
  constexpr std::chrono::minutes kHold{5};
  const std::string of_rank = std::format("rank {}: ", m.spec.rank.value);
  const std::size_t at = m.status.message.find(of_rank + "not migratable now: ");
  const bool went_back = m.status.phase == migrate::Phase::kRolledBack && now < m.status.completion_time + kHold;
  return went_back && at != std::string::npos ? m.status.message.substr(at + of_rank.size()) : "";
}

// What moves may use of them. `too_large`: keep_memory's.
std::vector<observe::NodeFacts> nodes_for_moves(const Observed& o, const observe::CpuFacts& cpu, const FreeSeats& free,
                                                std::map<std::uint32_t, std::string>& too_large) {
  std::vector<observe::NodeFacts> nodes = o.nodes;
  too_large = keep_memory(nodes, o);
  std::set<Seat> usable;  // by the ranks that have them, or by others
  for (const crds::RankPlace& place : o.job.status.ranks) usable.insert(place.seat());
  for (const auto& [node, seats] : free) usable.insert(seats.begin(), seats.end());
  std::map<std::string_view, std::uint32_t> leaving;  // sources not gone yet hold their slot; by node
  for (const auto& [name, pod] : o.pods)
    for (std::uint32_t local = 0; local < pod.apps.size(); ++local)
      if (!usable.contains({name, local})) ++leaving[pod.node];
  for (auto& node : nodes)
    if (const auto held = leaving.find(node.name); held != leaving.end()) node.taken += held->second;
  leave_out_odd(nodes, o, cpu);
  keep_caps(nodes, o);
  return nodes;
}

// The pods of the free seats, in the order in which a wave takes them.
observe::FreeSeats pods_with_seats(const FreeSeats& free) {
  observe::FreeSeats pods;
  for (const auto& [node, seats] : free)
    for (const Seat& seat : seats) pods[node].push_back(seat.pod);
  return pods;
}

void limit_moves(decide::Params& params, std::uint32_t most) {
  params.max_moves = params.max_moves == 0 ? most : std::min(params.max_moves, most);
}

observe::RankFacts facts_of(const crds::RankPlace& place, const observe::Collector& collector, const Moves& moves,
                            const FailedMoves& failed, const PostponedMoves& postponed, const observe::CpuFacts& cpu,
                            const Observed& o) {
  observe::RankFacts facts;
  facts.node = place.node;
  facts.memory_bytes =
      static_cast<double>(std::max<std::uint64_t>(place.memory_bytes, collector.memory_bytes(place.rank.value)));
  facts.blocked_reason = place.blocked_reason;
  facts.partners = collector.partners(place.rank.value);
  if (const auto moved = moves.find(place.rank.value); moved != moves.end()) {
    facts.last_move = moved->second.last;
    facts.left = moved->second.left;
  }
  for (const auto& m : o.migrations)
    if (m.spec.rank == place.rank && facts.blocked_reason.empty()) facts.blocked_reason = reason_to_hold(m, o.now);
  if (facts.blocked_reason.empty()) facts.blocked_reason = postponed.of(place.rank.value);
  if (facts.blocked_reason.empty()) facts.blocked_reason = failed.just_failed(place.rank.value);
  if (facts.blocked_reason.empty()) facts.no_moves_to = failed.held_from(place.rank.value);
  for (const observe::CpuFacts::Closed& closed : cpu.closed_to(place.rank.value)) {
    if (!std::ranges::contains(facts.no_moves_to, closed.set)) facts.no_moves_to.push_back(closed.set);
    facts.cpu_differs.push_back(closed.set);
    facts.cpu_lacks = closed.lacks.text();
  }
  return facts;
}

// Until the deadline, s.
double time_left(const Observed& o) {
  const double deadline = static_cast<double>(crds::duration_seconds(o.job.spec.objective.deadline).value_or(0));
  return deadline - to_seconds(o.now - o.job.status.start_time);
}

}  // namespace

std::optional<Decided> Rescheduler::decide_now(const Observed& o) {
  settle_ranks();
  std::map<std::uint32_t, std::string> too_large;
  const observe::CpuFacts cpu = cpu_facts(o);
  const FreeSeats free = free_seats(o);
  const std::vector<observe::NodeFacts> nodes = nodes_for_moves(o, cpu, free, too_large);
  decide::Params params = terms_.params;
  yardstick_.limit(params);
  if (o.caps.in_cluster != 0)
    limit_moves(params, std::max(1u, o.caps.in_cluster > o.elsewhere.all ? o.caps.in_cluster - o.elsewhere.all : 0));
  if (of_.ranks > kMostMoves) limit_moves(params, kMostMoves);
  // The epoch's Sets, in whose order reports count: a pool that joined meanwhile would shift the others.
  const auto& sets = o.job.status.epoch->sets;
  std::vector<observe::RankFacts> ranks;
  std::vector<std::string> set_of_rank;
  const FailedMoves failed(o);
  const PostponedMoves postponed(o);
  const bool pods = crds::most_seats(o.job) > 1;
  for (const crds::RankPlace& place : o.job.status.ranks) {
    set_of_rank.push_back(place.set);
    ranks.push_back(facts_of(place, collector_, moves_, failed, postponed, cpu, o));
    if (pods) ranks.back().pod = place.pod;
    ranks.back().messages_per_byte = yardstick_.message_prices().messages_per_byte(place.rank.value);
    const auto why = too_large.find(place.rank.value);
    if (why != too_large.end() && ranks.back().blocked_reason.empty()) ranks.back().blocked_reason = why->second;
  }
  decide::Snapshot snapshot =
      observe::make_snapshot(yardstick_.platform(sets, nodes, set_of_rank, pods), ranks, nodes, pods_with_seats(free));
  if (params.objective == crds::ObjectiveType::kDeadline) snapshot.time_left = time_left(o);
  const bool mixed = yardstick_.unit() == observe::WorkUnit::kMixed;  // the condition MixedUnits says it
  Result<decide::Plan> plan = fail(ErrorCode::kInvalid, "instructions of some ranks and CPU time of others");
  if (!mixed) plan = decide::make_plan(snapshot, *window_, params);
  Decided out;
  if (!plan) {
    log_warning("no decision could be made", {{"error", plan.error().message}});
    settle(o);
    state_ =
        std::move(*window_).close(decide::next_cadence(window_->cadence(), window_->completed(), false, terms_.params));
    round_predictabilities(state_);
    open_window();
    return std::nullopt;
  }
  out.decision = to_decision(*plan, snapshot, o.now, window_->balance().imbalance(), o.job.spec.rescheduling.mode);
  out.text = decide::explain(*plan, snapshot);
  const double counted = decide::supersteps_counted(*plan);
  double cost = 0;
  for (const auto& move : plan->moves) cost = std::max(cost, move.cost);
  out.predicted_gain_seconds = (plan->forecast.before - plan->forecast.after) * counted - cost;
  if (o.job.spec.rescheduling.mode == crds::ReschedulingMode::kMigrate)
    for (const auto& move : plan->moves)
      out.moves.push_back({"", move.rank.value, snapshot.platform.sets[move.to_set.value].name,
                           snapshot.platform.processor(move.to).name, move.gain_window});
  prefer_resizes(o, *plan, snapshot, out);
  if (!out.moves.empty()) gains_.predict(out.predicted_gain_seconds, counted);
  decide::Cadence next = plan->next;
  if (!out.decision.resizes.empty()) {  // nobody moves
    next = decide::next_cadence(plan->now, plan->superstep, false, terms_.params);
    next.owed = plan->now.owed;
  }
  if (records_)
    out.record = std::make_shared<const std::string>(record_of(o, params, std::move(snapshot), std::move(*plan)));
  state_ = std::move(*window_).close(next);
  round_predictabilities(state_);
  settle(o);
  open_window();
  return out;
}

void Rescheduler::prefer_resizes(const Observed& o, const decide::Plan& plan, const decide::Snapshot& snapshot,
                                 Decided& out) const {
  const auto& history = collector_.history();
  if (history.empty() || plan.rules.takes_back) return;
  const auto times = observe::mean_times(history, plan.now.k.value, history.back().superstep);
  std::set<std::uint32_t> moving;
  for (const auto& move : plan.moves) moving.insert(move.rank.value);
  if (!times) return;
  std::vector<crds::ResizeEntry> resizes = plan_resizes(o, times->compute_seconds, moving);
  for (crds::ResizeEntry& entry : resizes) {
    const auto move = std::ranges::find(plan.moves, entry.rank, &decide::Move::rank);
    const auto other = std::ranges::find(plan.pm_list, entry.rank, &decide::PmEntry::rank);
    if (move == plan.moves.end() && other == plan.pm_list.end()) continue;
    const bool moves = move != plan.moves.end();
    entry.move_to = snapshot.platform.sets[moves ? move->to_set.value : other->target.value].name;
    if (entry.move_to == o.job.status.ranks[entry.rank.value].set && !moves)
      entry.move_to.clear();
    else
      entry.move_seconds = moves ? move->cost : other->mem;
  }
  if (!resizes.empty()) show_resizes(std::move(resizes), o.job.spec.rescheduling.mode, out);
}

std::string Rescheduler::record_of(const Observed& o, const decide::Params& params, decide::Snapshot snapshot,
                                   decide::Plan plan) {
  return record::to_line({.name_space = o.job.metadata.name_space,
                          .job = o.job.metadata.name,
                          .uid = o.job.metadata.uid,
                          .attempt = of_.number,
                          .time = to_rfc3339(o.now),
                          .params = params,
                          .snapshot = std::move(snapshot),
                          .state = state_,
                          .supersteps = std::exchange(supersteps_, {}),
                          .plan = std::move(plan)});
}

}  // namespace bsp::reconcile
