#include "operator/reconcile/kernel/rescheduling.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <map>
#include <string_view>
#include <utility>

#include "operator/observe/snapshot.h"
#include "operator/reconcile/kernel/status.h"

namespace bsp::reconcile {

namespace {

// By the cost model: nothing is predicted of what people ask for.
bool was_decided(const migrate::Wave& wave) {
  return std::ranges::any_of(wave.moves, [](const migrate::Move& m) { return m.predicted_gain_seconds != 0; });
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
  factors_ = observe::RankFactors::from_json(stored.factors, ranks_);
  baseline_ = std::move(stored.baseline);
  moves_ = std::move(stored.moves);
  predicted_sum_ = job.status.predicted_gain_seconds.value_or(0);
  realised_sum_ = job.status.realised_gain_seconds.value_or(0);
  any_gain_ = job.status.realised_gain_seconds.has_value();
  open_window();
}

bool Rescheduler::follow(const crds::ReschedulingSpec& spec) {
  decide::Params params = observe::make_params(spec);
  if (params == params_) return false;
  params_ = params;
  window_->use(params_);
  return true;
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
  if (w.checkpoint) return;  // nobody moves, so there is nothing to gain
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
  for (const auto& [seat, s] : o.sidecars) edge = std::max(edge, s.completed);
  const bool paused = w.phase == migrate::Phase::kSucceeded || w.rollback_committed;
  // What people ask for is not judged, nor what didn't happen; but the waves just before that still are.
  const decide::Cadence& cadence = window_->cadence();
  const std::uint64_t since = cadence.wave.since.value;
  const bool of_others = since > 0 && since + 1 < cadence.k.value;
  const bool judged = was_decided(w) && (w.phase == migrate::Phase::kSucceeded || of_others);
  if (paused || !judged) measure_from(paused ? edge + 2 : cadence.k.value, judged);
  if (w.phase != migrate::Phase::kSucceeded) {
    learn_of_delay(w, o);
    baseline_.reset();
    return;
  }
  baseline_->after = edge + 2;
  note_moves(moves_, w, ranks_);
  learn_of_moves(w, o);
}

// Of all moves from one Set to another, the one with the most bytes: the time of others is mostly not that of their bytes. The pause
// waits for the longest transfer of the wave; what that one takes longer than this one is no fixed part of this one.
void Rescheduler::learn_of_moves(const migrate::Wave& w, const Observed& o) {
  const std::vector<std::string>& sets = o.job.status.epoch->sets;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> largest;  // by source and target Set
  for (std::size_t i = 0; i < std::min(w.moves.size(), w.bytes.size()); ++i) {
    const auto [at, first] = largest.try_emplace({w.moves[i].source_set, w.moves[i].target_set}, i);
    if (!first && w.bytes[i] > w.bytes[at->second]) at->second = i;
  }
  const auto of_all = std::ranges::max_element(w.bytes);
  for (const auto& [pair, i] : largest) {
    crds::PauseParts pause = w.pause;
    if (i < w.transfer_ms.size())
      pause.transfer_ms = w.transfer_ms[i];
    else if (w.bytes.begin() + static_cast<std::ptrdiff_t>(i) != of_all)
      continue;  // an older operator's wave: which of the times is the longest one's is all that it says
    pause.total_ms = std::max(0.0, pause.total_ms - (w.pause.transfer_ms - pause.transfer_ms));
    calibration_.add_move(sets[pair.first], sets[pair.second], w.bytes[i], pause);
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
  std::vector<double> alone;            // how much faster each would be; found once a superstep has come
  std::vector<std::uint8_t> held_back;  // by its own limit; found then, too
  work_.set_unit(unit_of_work(o));
  while (auto superstep = collector_.take()) {
    const bool counts = !moving && o.job.spec.rescheduling.mode != crds::ReschedulingMode::kOff &&
                        superstep->superstep >= window_->cadence().k && !window_->call_due();
    // The first one of a window: benchmarks that have come meanwhile, of targets for instance, count from here on.
    if (counts && window_->counted() < window_->cadence().k) settle_work(o);
    make_work(superstep->instructions, set_of_rank, node_of_rank);
    if (alone.empty()) {
      alone = observe::slowed_by_each_other(node_of_rank, o.nodes);
      held_back = held_back_by_limit(o);
    }
    observe::SuperstepTimes times = collector_.history().back();
    observe::leave_out_limits(times, held_back, work_.unit());
    times.instructions = superstep->instructions;
    for (std::size_t i = 0; i < alone.size(); ++i)
      if (held_back[i] == 0) times.instructions[i] *= alone[i];
    if (work_.unit() != observe::WorkUnit::kMixed) {
      for (std::size_t i = 0; i < set_of_rank.size(); ++i) {
        times.instructions[i] *= factors_.factor(i);
        superstep->instructions[i] *= factors_.factor(i);
      }
      calibration_.add_superstep(times, set_of_rank, node_of_rank);
      factors_.add(times, set_of_rank, node_of_rank, calibration_);
    }
    if (!counts) continue;
    calibration_.add_traffic(*superstep, o.job.status.epoch->sets, set_of_rank);
    if (records_) supersteps_.push_back(*superstep);
    window_->add(std::move(*superstep));
    if (window_->call_due()) return decide_now(o);
  }
  return std::nullopt;
}

void Rescheduler::make_work(std::vector<double>& instructions, const std::vector<std::string>& set_of_rank,
                            const std::vector<std::string>& node_of_rank) {
  std::vector<std::uint8_t> suspects(instructions.size());
  for (std::size_t i = 0; i < suspects.size(); ++i) suspects[i] = slowdowns_.suspects(i);
  work_.add(instructions, set_of_rank, suspects);
  for (std::size_t i = 0; i < set_of_rank.size(); ++i) instructions[i] *= work_.factor(set_of_rank[i]);
  if (work_.unit() != observe::WorkUnit::kCpuTime) return;
  slowdowns_.add(instructions, node_of_rank, calibration_);
  for (std::size_t i = 0; i < instructions.size(); ++i) instructions[i] *= slowdowns_.factor(i);
}

// Between two windows only, so that each has one unit.
void Rescheduler::settle_work(const Observed& o) {
  std::vector<std::string> set_of_rank;
  for (const crds::RankPlace& place : o.job.status.ranks) set_of_rank.push_back(place.set);
  benchmarks_.update(pod_benchmarks(o), o.nodes);
  for (const auto& [set, ratio] : work_.settle(set_of_rank, benchmarks_)) {
    calibration_.rescale(set, ratio);
    for (std::size_t i = 0; i < set_of_rank.size(); ++i)
      if (set_of_rank[i] == set) slowdowns_.rescale(i, ratio);
  }
}

// Before a call, so that the wave that showed it is judged by it.
void Rescheduler::settle_factors() {
  const std::vector<double> ratio = factors_.settle(calibration_);
  if (ratio.empty()) return;
  window_->rescale(ratio);
  for (decide::MeasuredSuperstep& superstep : supersteps_)
    for (std::size_t i = 0; i < ratio.size(); ++i) superstep.instructions[i] *= ratio[i];
}

observe::WorkUnit unit_of_work(const Observed& o) {
  std::size_t counted = 0, ranks = 0;
  for (const crds::RankPlace& place : o.job.status.ranks) {
    const SidecarFacts* s = o.sidecar(place.seat());
    if (!s || !s->status || s->completed == 0) continue;
    ++ranks;
    counted += s->status->instructions_measured;
  }
  return observe::unit_of(counted, ranks);
}

std::vector<observe::PodBenchmark> pod_benchmarks(const Observed& o) {
  std::vector<observe::PodBenchmark> out;
  for (const auto& [seat, s] : o.sidecars) {
    const PodFacts* pod = o.pod(seat);
    if (pod && s.status && s.status->cpu) out.push_back({pod->set, pod->node, &*s.status->cpu});
  }
  return out;
}

std::map<std::uint32_t, Seat> set_managers(const Observed& o) {
  std::map<std::uint32_t, Seat> managers;
  if (!o.job.status.epoch) return managers;
  for (const wire::Member& member : o.job.status.epoch->members) {  // by rank
    const SidecarFacts* sidecar = o.sidecar(seat_of(member));
    if (sidecar && sidecar->answers()) managers.try_emplace(member.set, seat_of(member));
  }
  return managers;
}

}  // namespace bsp::reconcile
