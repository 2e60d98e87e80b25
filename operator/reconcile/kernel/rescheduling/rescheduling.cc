#include "operator/reconcile/kernel/rescheduling/rescheduling.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/core/significant.h"
#include "operator/observe/snapshot.h"
#include "operator/reconcile/kernel/resize/resize.h"

namespace bsp::reconcile {

namespace {

std::vector<std::string> sets_of_ranks(const Observed& o) {
  std::vector<std::string> sets;
  for (const crds::RankPlace& place : o.job.status.ranks) sets.push_back(place.set);
  return sets;
}

observe::Places places_of(const Observed& o) {
  observe::Places places{.sets = sets_of_ranks(o), .nodes = {}, .alone = {}, .held_back = held_back_by_limit(o)};
  for (const crds::RankPlace& place : o.job.status.ranks) places.nodes.push_back(place.node);
  places.alone = observe::slowed_by_each_other(places.nodes, o.nodes);
  if (crds::most_seats(o.job) > 1)
    for (const crds::RankPlace& place : o.job.status.ranks) places.pods.push_back(place.pod);
  return places;
}

// Where instructions are counted, a node would look faster than it is to a rank with the template's CPU.
observe::SuperstepTimes without_resizes(observe::SuperstepTimes times, observe::WorkUnit unit, const Observed& o) {
  if (unit == observe::WorkUnit::kInstructions && o.job.spec.rescheduling.resize != crds::Resize::kOff)
    for (std::size_t i = 0; i < times.instructions.size(); ++i)
      times.instructions[i] /= raised_by(o, o.job.status.ranks[i]);
  return times;
}

}  // namespace

Rescheduler::Rescheduler(const crds::BspJob& job, std::size_t sets, bool records)
    : Rescheduler(job, sets, records, scheduler_state_from_json(job.status.rescheduler, job.spec.ranks, sets)) {}

Rescheduler::Rescheduler(const crds::BspJob& job, std::size_t sets, bool records, SchedulerState stored)
    : of_{.ranks = job.spec.ranks,
          .sets = sets,
          .number = job.status.attempt,
          .first_epoch = job.status.epoch ? job.status.epoch->epoch : 0},
      terms_(job.spec),
      collector_(job.spec.ranks, sets),
      yardstick_(job.status.calibration, stored.work, stored.factors, job.spec.ranks),
      gains_(job.status, stored.counted, std::move(stored.baseline)),
      state_(std::move(stored.window)),
      records_(records),
      seen_{.wave = stored.wave_seen, .resizes = job.status.migrations.resized},
      moves_(std::move(stored.moves)) {
  open_window();
}

Rescheduler::Terms::Terms(const crds::BspJobSpec& spec)
    : params(observe::make_params(spec.rescheduling, spec.objective)), deadline(spec.objective.deadline) {}

bool Rescheduler::follow(const crds::BspJobSpec& spec) {
  Terms terms(spec);
  if (terms == terms_) return false;
  const bool aims_elsewhere = !terms.has_aim_of(terms_);
  terms_ = std::move(terms);
  window_->use(terms_.params);
  if (aims_elsewhere) decide_soon();
  return true;
}

// After a wave that was taken back, what made it is still there.
void Rescheduler::decide_soon() {
  const decide::Cadence& cadence = window_->cadence();
  const std::uint64_t next = window_->counted().value + 1;
  if (cadence.cooling || cadence.k.value + cadence.alpha <= next + terms_.params.alpha0) return;
  measure_from(next, true);
  state_.cadence.alpha = terms_.params.alpha0;
  open_window();
}

void Rescheduler::note_prices(const Observed& o) {
  if (terms_.params.objective == crds::ObjectiveType::kTime) return;
  std::map<std::string, double> prices;
  for (const observe::NodeFacts& node : o.nodes) prices[node.name] = node.price;
  const auto changed = [&](const auto& was) {
    const auto is = prices.find(was.first);
    return is != prices.end() && is->second != was.second;
  };
  if (std::ranges::any_of(seen_.prices, changed)) decide_soon();
  seen_.prices = std::move(prices);
}

void Rescheduler::open_window() {
  window_.emplace(state_, terms_.params, of_.ranks, of_.sets);
  supersteps_.clear();
}

bool Rescheduler::add(const wire::RankReport& report) {
  if (report.epoch < of_.first_epoch) return false;
  if (!report.edge_call.empty() && (edge_.call.empty() || report.edge_chosen_after > edge_.chosen_after.value)) {
    edge_ = {.call = report.edge_call, .stride = report.edge_stride, .chosen_after = {report.edge_chosen_after}};
    if (window_->cadence().k <= edge_.chosen_after) {  // else the window of an earlier leader began after it
      measure_from(edge_.chosen_after.value + 1, false);
      gains_.forget();
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
  const auto mean = observe::mean_times(history, last > Gains::kCompared ? last - Gains::kCompared : 0, last);
  return mean ? mean->seconds : 0;
}

void Rescheduler::note_wave(const Observed& o) {
  const auto wave = stored_wave(o.job.status);
  if (!wave || !*wave || (*wave)->number <= seen_.wave) return;
  const migrate::Wave& w = **wave;
  if (w.checkpoint) return;  // nobody moves, so there is nothing to gain
  gains_.begin(w, collector_.history(), o.job.status, window_->cadence().alpha,
               yardstick_.unit() == observe::WorkUnit::kInstructions);
  if (!migrate::is_finished(w)) return;
  seen_.wave = w.number;
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
    gains_.forget();
    return;
  }
  gains_.compare_from(edge + 2);
  note_moves(moves_, w, of_.ranks);
  learn_of_moves(w, o);
}

// What was measured with less CPU says nothing about the time since.
void Rescheduler::note_resizes(const Observed& o) {
  if (o.job.status.migrations.resized <= seen_.resizes) return;
  seen_.resizes = o.job.status.migrations.resized;
  std::uint64_t edge = 0;
  for (const auto& [seat, s] : o.sidecars) edge = std::max(edge, s.completed);
  measure_from(edge + 2, false);
  gains_.forget();
}

void Rescheduler::learn_of_moves(const migrate::Wave& w, const Observed& o) {
  std::vector<observe::Moved> moved;
  for (std::size_t i = 0; i < std::min(w.moves.size(), w.bytes.size()); ++i) {
    moved.push_back({.from = w.moves[i].source_set, .to = w.moves[i].target_set, .bytes = w.bytes[i]});
    if (i < w.transfer_ms.size()) moved.back().transfer_ms = w.transfer_ms[i];
  }
  yardstick_.add_moves(moved, o.job.status.epoch->sets, w.pause);
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
      yardstick_.add_late_move(largest->status.source_set, largest->status.target_set, bytes, w.late_seconds);
  }
}

std::optional<Decided> Rescheduler::advance(const Observed& o) {
  note_wave(o);
  note_resizes(o);
  note_prices(o);
  const auto wave = stored_wave(o.job.status);
  const bool moving = (wave && *wave && !migrate::is_finished(**wave)) || resize_under_way(o);
  std::optional<observe::Places> places;  // found once a superstep has come
  yardstick_.set_unit(unit_of_work(o));
  while (auto superstep = collector_.take()) {
    const bool counts = !moving && o.job.spec.rescheduling.mode != crds::ReschedulingMode::kOff &&
                        superstep->superstep >= window_->cadence().k && !window_->call_due();
    // The first one of a window: benchmarks that have come meanwhile, of targets for instance, count from here on.
    if (counts && window_->counted() < window_->cadence().k) settle(o);
    if (!places) places = places_of(o);
    superstep->instructions =
        yardstick_.work_of(without_resizes(collector_.history().back(), yardstick_.unit(), o), *places);
    if (!counts) continue;
    yardstick_.add_traffic(*superstep, o.job.status.epoch->sets, *places, collector_);
    if (records_) supersteps_.push_back(*superstep);
    window_->add(std::move(*superstep));
    if (window_->call_due()) return decide_now(o);
  }
  return std::nullopt;
}

void Rescheduler::settle(const Observed& o) { yardstick_.settle(sets_of_ranks(o), pod_benchmarks(o), o.nodes); }

void Rescheduler::settle_ranks() {
  const std::vector<double> ratio = yardstick_.settle_ranks();
  if (ratio.empty()) return;
  window_->rescale(ratio);
  for (decide::MeasuredSuperstep& superstep : supersteps_)
    for (std::size_t i = 0; i < ratio.size(); ++i) superstep.instructions[i] *= ratio[i];
}

void Rescheduler::store(crds::BspJobStatus& status, const Observed& o) const {
  if (o.job.spec.rescheduling.mode != crds::ReschedulingMode::kOff) {
    status.alpha = static_cast<std::uint32_t>(window_->cadence().alpha);
    status.d = window_->cadence().d;
  }
  const auto& history = collector_.history();
  if (!history.empty()) {
    const auto last = history.back().superstep;
    const auto mean = observe::mean_times(history, last >= Gains::kCompared ? last - Gains::kCompared + 1 : 0, last);
    status.imbalance = significant(history.back().imbalance, 4);
    for (auto& place : status.ranks) {
      const std::size_t i = place.rank.value;
      if (i >= mean->compute_seconds.size()) continue;
      place.compute_seconds = mean->compute_seconds[i];
      place.time_seconds = mean->seconds;
    }
  }
  if (!edge_.call.empty()) status.superstep_edge = edge_;
  status.calibration = yardstick_.to_status(o.nodes, sets_of_ranks(o));
  status.rescheduler = to_json(SchedulerState{state_, seen_.wave, gains_.counted(), yardstick_.work_json(),
                                              yardstick_.ranks_json(), gains_.baseline(), moves_});
  gains_.store(status);
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
