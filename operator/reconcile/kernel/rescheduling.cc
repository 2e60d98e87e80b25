#include "operator/reconcile/kernel/rescheduling.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "base/core/log.h"
#include "base/core/significant.h"
#include "base/json/fields.h"
#include "operator/decide/explain.h"
#include "operator/observe/snapshot.h"
#include "operator/reconcile/kernel/move_memory.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/record/line.h"

namespace bsp::reconcile {

using nlohmann::json;

namespace {

constexpr std::size_t kCompared = 10;  // supersteps on either side of a wave, at most

// By the cost model: nothing is predicted of what people ask for.
bool was_decided(const migrate::Wave& wave) {
  return std::ranges::any_of(wave.moves, [](const migrate::Move& m) { return m.predicted_gain_seconds != 0; });
}

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

// Why the rank's last dump was refused. It isn't retried for a while, since each attempt pauses the whole job.
std::string reason_to_hold(const crds::RankMigration& m, Time now) {
  constexpr std::chrono::minutes kHold{5};
  const std::string of_rank = std::format("rank {}: ", m.spec.rank.value);
  const std::size_t at = m.status.message.find(of_rank + "not migratable now: ");
  const bool went_back = m.status.phase == migrate::Phase::kRolledBack && now < m.status.completion_time + kHold;
  return went_back && at != std::string::npos ? m.status.message.substr(at + of_rank.size()) : "";
}

}  // namespace

Rescheduler::Rescheduler(const crds::BspJob& job, std::size_t sets, bool records)
    : ranks_(job.spec.ranks),
      sets_(sets),
      attempt_(job.status.attempt),
      first_epoch_(job.status.epoch ? job.status.epoch->epoch : 0),
      params_(observe::make_params(job.spec.rescheduling)),
      collector_(job.spec.ranks, sets),
      calibration_(observe::Calibration::from_status(job.status.calibration)),
      benchmarks_(observe::Benchmarks::from_status(job.status.calibration)),
      records_(records) {
  auto stored = scheduler_state_from_json(job.status.rescheduler, ranks_, sets_);
  state_ = std::move(stored.window);
  wave_seen_ = stored.wave_seen;
  counted_ = stored.counted;
  work_ = observe::Work::from_json(stored.work);
  baseline_ = std::move(stored.baseline);
  predicted_sum_ = job.status.predicted_gain_seconds.value_or(0);
  realised_sum_ = job.status.realised_gain_seconds.value_or(0);
  any_gain_ = job.status.realised_gain_seconds.has_value();
  open_window();
}

void Rescheduler::open_window() {
  window_.emplace(state_, params_, ranks_, sets_);
  supersteps_.clear();
}

bool Rescheduler::add(const wire::RankReport& report) {
  if (report.epoch < first_epoch_) return false;
  if (!report.edge_call.empty() && (edge_.call.empty() || report.edge_chosen_after > edge_.chosen_after.value)) {
    edge_ = {.call = report.edge_call, .stride = report.edge_stride, .chosen_after = {report.edge_chosen_after}};
    if (window_->cadence().k <= edge_.chosen_after) {  // else the window of an earlier leader began after it
      measure_from(edge_.chosen_after.value + 1, false);
      baseline_.reset();
    }
  }
  collector_.add(report);
  return true;
}

void Rescheduler::measure_from(std::uint64_t superstep, bool judges_wave) {
  const double pace = superstep_seconds();
  const std::uint64_t counted = window_->counted().value;
  collector_.skip_to(superstep - 1);
  state_ = {.cadence = window_->cadence(), .P_comp = window_->metrics().P_comp, .P_comm = window_->metrics().P_comm};
  if (superstep > counted) state_.cadence.elapsed += pace * static_cast<double>(superstep - 1 - counted);
  if (!judges_wave) state_.cadence.wave = {};
  state_.cadence.k = {superstep};
  state_.cadence.alpha_next = 0;
  round_predictabilities(state_);
  open_window();
}

double Rescheduler::superstep_seconds() const {
  const auto& history = collector_.history();
  if (history.empty()) return 0;
  const auto last = history.back().superstep;
  const auto mean = observe::mean_times(history, last > kCompared ? last - kCompared : 0, last);
  return mean ? mean->seconds : 0;
}

void Rescheduler::note_wave(const Observed& o) {
  const auto wave = stored_wave(o.job.status);
  if (!wave || !*wave || (*wave)->number <= wave_seen_) return;
  const migrate::Wave& w = **wave;
  const auto& history = collector_.history();
  if (!baseline_ || baseline_->wave != w.number) {
    // It has begun: note what supersteps took until now.
    baseline_ = Baseline{};
    baseline_->wave = w.number;
    baseline_->alpha = window_->cadence().alpha;
    // Gains are compared over as many supersteps as they were predicted over.
    if (const auto& decision = o.job.status.last_decision; decision && was_decided(w))
      baseline_->alpha = counted_ > 0 ? static_cast<std::uint64_t>(std::llround(counted_)) : decision->alpha;
    if (!history.empty()) {
      const auto last = history.back().superstep;
      if (const auto mean = observe::mean_times(history, last >= kCompared ? last - kCompared + 1 : 0, last)) {
        baseline_->seconds = mean->seconds;
        for (const migrate::Move& move : w.moves)
          if (move.rank < mean->compute_seconds.size())
            baseline_->compute[move.rank] = mean->compute_seconds[move.rank];
      }
    }
  }
  if (!migrate::is_finished(w)) return;
  wave_seen_ = w.number;
  // The superstep that the gate interrupted belongs to neither mapping.
  std::uint64_t edge = 0;
  for (const auto& [pod, s] : o.sidecars) edge = std::max(edge, s.completed);
  const bool paused = w.phase == migrate::Phase::kSucceeded || w.rollback_committed;
  // What people ask for is not judged, nor what didn't happen.
  const bool judged = w.phase == migrate::Phase::kSucceeded && was_decided(w);
  if (paused || !judged) measure_from(paused ? edge + 2 : window_->cadence().k.value, judged);
  if (w.phase != migrate::Phase::kSucceeded) {
    learn_of_delay(w, o);
    baseline_.reset();
    return;
  }
  baseline_->after = edge + 2;
  for (std::size_t i = 0; i < w.moves.size(); ++i) {
    const auto m = std::ranges::find(o.migrations, w.moves[i].migration, [](const auto& x) { return x.metadata.name; });
    if (m != o.migrations.end() && i < w.bytes.size())
      calibration_.add_move(m->status.source_set, m->status.target_set, w.bytes[i], w.pause);
  }
}

// Else the same move would be retried for ever: the next one's limit, and whether it pays, follow from what is learned
// here.
void Rescheduler::learn_of_delay(const migrate::Wave& w, const Observed& o) {
  for (const auto phase : {migrate::Phase::kCheckpointing, migrate::Phase::kRestoring}) {
    if (w.reason != std::string(crds::to_string(phase)) + "Timeout") continue;
    const crds::RankMigration* largest = nullptr;
    std::uint64_t bytes = 0;
    for (const crds::RankMigration& m : o.migrations)
      for (const crds::RankPlace& place : o.job.status.ranks)
        if (place.rank == m.spec.rank && place.memory_bytes > bytes &&
            std::ranges::find(w.moves, m.metadata.name, &migrate::Move::migration) != w.moves.end()) {
          largest = &m;
          bytes = place.memory_bytes;
        }
    if (largest)
      calibration_.add_late_move(largest->status.source_set, largest->status.target_set, bytes, w.late_seconds);
  }
}

std::optional<Decided> Rescheduler::advance(const Observed& o) {
  note_wave(o);
  const auto wave = stored_wave(o.job.status);
  const bool moving = wave && *wave && !migrate::is_finished(**wave);
  std::vector<std::string> set_of_rank, node_of_rank;
  for (const auto& place : o.job.status.ranks) {
    set_of_rank.push_back(place.set);
    node_of_rank.push_back(place.node);
  }
  work_.set_unit(unit_of_work(o));
  while (auto superstep = collector_.take()) {
    const bool counts = !moving && o.job.spec.rescheduling.mode != crds::ReschedulingMode::kOff &&
                        superstep->superstep >= window_->cadence().k && !window_->call_due();
    // The first one of a window: benchmarks that have come meanwhile, of targets for instance, count from here on.
    if (counts && window_->counted() < window_->cadence().k) settle_work(o);
    work_.add(superstep->instructions, set_of_rank);
    for (std::size_t i = 0; i < set_of_rank.size(); ++i) superstep->instructions[i] *= work_.factor(set_of_rank[i]);
    observe::SuperstepTimes times = collector_.history().back();
    times.instructions = superstep->instructions;
    if (work_.unit() != observe::WorkUnit::kMixed) calibration_.add_superstep(times, set_of_rank, node_of_rank);
    if (!counts) continue;
    if (records_) supersteps_.push_back(*superstep);
    window_->add(std::move(*superstep));
    if (window_->call_due()) return decide_now(o);
  }
  return std::nullopt;
}

std::optional<Decided> Rescheduler::decide_now(const Observed& o) {
  std::vector<observe::NodeFacts> nodes = o.nodes;
  keep_memory(nodes, o);
  std::set<std::string_view> pods_of_ranks;
  for (const crds::RankPlace& place : o.job.status.ranks) pods_of_ranks.insert(place.pod);
  std::map<std::string_view, std::uint32_t> leaving;  // sources not gone yet hold their slot; by node
  for (const auto& [name, pod] : o.pods)
    if (!pods_of_ranks.contains(name)) ++leaving[pod.node];
  for (auto& node : nodes)
    if (const auto held = leaving.find(node.name); held != leaving.end()) node.taken += held->second;
  keep_caps(nodes, o);
  decide::Params params = params_;
  if (work_.guesses()) params.max_moves = 1;  // one rank shows whether the guess was right
  if (o.caps.in_cluster != 0) {
    const std::uint32_t left =
        std::max(1u, o.caps.in_cluster > o.elsewhere.all ? o.caps.in_cluster - o.elsewhere.all : 0);
    params.max_moves = params.max_moves == 0 ? left : std::min(params.max_moves, left);
  }
  if (ranks_ > kMostMoves)
    params.max_moves = params.max_moves == 0 ? kMostMoves : std::min(params.max_moves, kMostMoves);
  // The epoch's Sets, in whose order reports count: a pool that joined meanwhile would shift the others.
  const auto& sets = o.job.status.epoch->sets;
  std::vector<observe::RankFacts> ranks;
  for (const crds::RankPlace& place : o.job.status.ranks) {
    observe::RankFacts facts;
    facts.node = place.node;
    facts.memory_bytes =
        static_cast<double>(std::max<std::uint64_t>(place.memory_bytes, collector_.memory_bytes(place.rank.value)));
    facts.blocked_reason = place.blocked_reason;
    facts.partners = collector_.partners(place.rank.value);
    std::vector<std::pair<std::uint64_t, std::string>> left;  // in order: the last one is where it came from
    for (const auto& m : o.migrations) {
      if (m.spec.rank != place.rank) continue;
      if (m.status.phase == migrate::Phase::kSucceeded) {
        facts.last_move = std::max(facts.last_move, m.status.superstep.value);
        left.emplace_back(m.status.superstep.value, m.status.source_node);
      }
      if (facts.blocked_reason.empty()) facts.blocked_reason = reason_to_hold(m, o.now);
    }
    std::ranges::stable_sort(left, {}, &std::pair<std::uint64_t, std::string>::first);
    for (auto& [superstep, node] : left) facts.left.push_back(std::move(node));
    ranks.push_back(std::move(facts));
  }
  decide::Snapshot snapshot =
      observe::make_snapshot(observe::make_platform(sets, nodes, calibration_, speeds_of_cores(o)), ranks);
  const bool mixed = work_.unit() == observe::WorkUnit::kMixed;  // the condition MixedUnits says it
  Result<decide::Plan> plan = fail(ErrorCode::kInvalid, "instructions of some ranks and CPU time of others");
  if (!mixed) plan = decide::make_plan(snapshot, *window_, params);
  Decided out;
  if (!plan) {
    log_warning("no decision could be made", {{"error", plan.error().message}});
    settle_work(o);
    state_ = std::move(*window_).close(decide::next_cadence(window_->cadence(), window_->completed(), false, params_));
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
  if (!out.moves.empty()) {
    predicted_sum_ += out.predicted_gain_seconds;
    counted_ = std::max(1.0, counted);
  }
  const decide::Cadence next = plan->next;
  if (records_)
    out.record = std::make_shared<const std::string>(record_of(o, params, std::move(snapshot), std::move(*plan)));
  state_ = std::move(*window_).close(next);
  round_predictabilities(state_);
  settle_work(o);
  open_window();
  return out;
}

// Between two windows only, so that each has one unit.
void Rescheduler::settle_work(const Observed& o) {
  std::vector<std::string> set_of_rank;
  for (const crds::RankPlace& place : o.job.status.ranks) set_of_rank.push_back(place.set);
  benchmarks_.update(pod_benchmarks(o));
  for (const auto& [set, ratio] : work_.settle(set_of_rank, benchmarks_)) calibration_.rescale(set, ratio);
}

std::map<std::string, double> Rescheduler::speeds_of_cores(const Observed& o) const {
  std::map<std::string, std::size_t> ranks;
  for (const crds::RankPlace& place : o.job.status.ranks) ++ranks[place.set];
  const auto most = std::ranges::max_element(ranks, {}, [](const auto& set) { return set.second; });
  return most == ranks.end() ? std::map<std::string, double>{} : benchmarks_.relative_to(most->first);
}

std::string Rescheduler::record_of(const Observed& o, const decide::Params& params, decide::Snapshot snapshot,
                                   decide::Plan plan) {
  return record::to_line({.name_space = o.job.metadata.name_space,
                          .job = o.job.metadata.name,
                          .uid = o.job.metadata.uid,
                          .attempt = attempt_,
                          .time = to_rfc3339(o.now),
                          .params = params,
                          .snapshot = std::move(snapshot),
                          .state = state_,
                          .supersteps = std::exchange(supersteps_, {}),
                          .plan = std::move(plan)});
}

void Rescheduler::store(crds::BspJobStatus& status, const Observed& o) const {
  if (o.job.spec.rescheduling.mode != crds::ReschedulingMode::kOff) {
    status.alpha = static_cast<std::uint32_t>(window_->cadence().alpha);
    status.d = window_->cadence().d;
  }
  const auto& history = collector_.history();
  if (!history.empty()) {
    const auto last = history.back().superstep;
    const auto mean = observe::mean_times(history, last >= kCompared ? last - kCompared + 1 : 0, last);
    status.imbalance = significant(history.back().imbalance, 4);
    for (auto& place : status.ranks) {
      const std::size_t i = place.rank.value;
      if (i >= mean->compute_seconds.size()) continue;
      place.compute_seconds = mean->compute_seconds[i];
      place.time_seconds = mean->seconds;
    }
  }
  if (!edge_.call.empty()) status.superstep_edge = edge_;
  const std::map<std::string, double> of_core = speeds_of_cores(o), nominal = observe::nominal_speeds(o.nodes, of_core);
  std::map<std::string, crds::CalibrationSource> rests_on;
  for (const auto& [set, speed] : nominal) {
    using enum crds::CalibrationSource;
    const bool measured = calibration_.cpu(set, nominal).measured;
    if (work_.unit() == observe::WorkUnit::kInstructions)
      rests_on[set] = measured ? kCounted : of_core.contains(set) ? kCalibrated : kAssumed;
    if (work_.unit() == observe::WorkUnit::kCpuTime)
      rests_on[set] = work_.confirmed(set) ? kInferred : work_.calibrated(set) ? kCalibrated : kAssumed;
  }
  status.calibration = calibration_.to_status(nominal, rests_on);
  std::ranges::move(benchmarks_.to_status(), std::back_inserter(status.calibration));
  status.rescheduler = to_json(SchedulerState{state_, wave_seen_, counted_, work_.to_json(), baseline_});
  if (predicted_sum_ != 0) status.predicted_gain_seconds = significant(predicted_sum_, 6);
  if (any_gain_) status.realised_gain_seconds = significant(realised_sum_, 6);
}

std::vector<RealisedGain> Rescheduler::realised(const crds::BspJobStatus& status, bool ending) {
  if (!baseline_ || baseline_->after == 0 || baseline_->compute.empty()) return {};
  const auto mean = observe::mean_times(collector_.history(), baseline_->after, ~0ull);
  if (!mean || mean->supersteps < (ending ? 2 : kCompared)) return {};
  const auto wave = stored_wave(status);
  if (!wave || !*wave || (*wave)->number != baseline_->wave) return baseline_.reset(), std::vector<RealisedGain>{};
  const double pause = (*wave)->pause.total_ms * 1e-3;
  const auto alpha = static_cast<double>(std::max<std::uint64_t>(1, baseline_->alpha));
  realised_sum_ += (baseline_->seconds - mean->seconds) * alpha - pause;
  any_gain_ = true;
  std::vector<RealisedGain> out;
  for (const migrate::Move& move : (*wave)->moves)
    if (const auto before = baseline_->compute.find(move.rank);
        before != baseline_->compute.end() && move.rank < mean->compute_seconds.size())
      out.push_back({.migration = move.migration,
                     .seconds = significant((before->second - mean->compute_seconds[move.rank]) * alpha - pause, 6),
                     .superstep_before = baseline_->seconds,
                     .superstep_after = mean->seconds});
  baseline_.reset();
  return out;
}

observe::WorkUnit unit_of_work(const Observed& o) {
  std::size_t counted = 0, ranks = 0;
  for (const crds::RankPlace& place : o.job.status.ranks) {
    const auto s = o.sidecars.find(place.pod);
    if (s == o.sidecars.end() || !s->second.status || s->second.completed == 0) continue;
    ++ranks;
    counted += s->second.status->instructions_measured;
  }
  return observe::unit_of(counted, ranks);
}

std::vector<observe::PodBenchmark> pod_benchmarks(const Observed& o) {
  std::vector<observe::PodBenchmark> out;
  for (const auto& [pod, s] : o.sidecars) {
    const auto facts = o.pods.find(pod);
    if (facts != o.pods.end() && s.status && s.status->cpu)
      out.push_back({facts->second.set, facts->second.node, &*s.status->cpu});
  }
  return out;
}

std::map<std::uint32_t, std::string> set_managers(const Observed& o) {
  std::map<std::uint32_t, std::string> managers;
  if (!o.job.status.epoch) return managers;
  for (const wire::Member& member : o.job.status.epoch->members) {  // by rank
    const auto sidecar = o.sidecars.find(member.pod);
    if (sidecar != o.sidecars.end() && sidecar->second.status && sidecar->second.unreachable_since == SteadyTime{})
      managers.try_emplace(member.set, member.pod);
  }
  return managers;
}

}  // namespace bsp::reconcile
