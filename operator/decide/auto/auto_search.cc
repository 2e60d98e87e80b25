#include "operator/decide/auto/auto_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "operator/decide/auto/auto.h"
#include "operator/decide/auto/packing.h"
#include "operator/decide/auto/replay.h"
#include "operator/decide/auto/settle.h"
#include "operator/decide/bottleneck/bottleneck.h"
#include "operator/decide/model/links.h"
#include "operator/decide/model/pf.h"
#include "operator/decide/model/pm.h"
#include "operator/decide/papers/levels.h"

namespace bsp::decide {

AutoSearch::AutoSearch(const Case& c, double H)
    : c_(c),
      H_(H),
      I_(c.metrics.last.instructions),
      comm_of_(c),
      here_(comm_here(c, comm_of_)),
      heard_(Heard::is_for(c.columns.on.size(), c.columns.sets) ? std::optional<Heard>(std::in_place, c)
                                                                : std::nullopt),
      alike_(c.columns, heard_ ? heard_->pods().node() : std::span<const std::uint32_t>{}),
      seconds_(processor_seconds(c.columns, I_, c.columns.on)) {
  now_ = {std::ranges::max(seconds_), comm_under(c.columns.on)};
  best_ = without_moves();
}

void AutoSearch::run(std::span<const PmEntry> list) {
  follow_bottleneck(list);
  if (small()) settle();
  if (heard_ && heard_->knows_partners()) bring_together();
}

void AutoSearch::leave_out(double slack) {
  if (best_.waves.after.empty() || !small()) return;
  const double limit = best_.superstep + slack;
  std::vector<ProcessorId> mapping = best_.waves.after.back();
  std::vector<std::uint32_t> moved;
  for (std::uint32_t i = 0; i < mapping.size(); ++i)
    if (mapping[i] != c_.columns.on[i]) moved.push_back(i);
  std::ranges::sort(moved, {}, [&](std::uint32_t i) { return std::tuple(seconds_[c_.columns.on[i].value], i); });
  std::size_t left_out = 0;
  for (bool again = true; again;) {
    again = false;
    for (const std::uint32_t i : moved) {
      const ProcessorId home = c_.columns.on[i];
      if (mapping[i] == home || !has_slot(mapping, home)) continue;
      const ProcessorId away = std::exchange(mapping[i], home);
      if (superstep_of(mapping) > limit) {
        mapping[i] = away;
        continue;
      }
      again = true;
      ++left_out;
    }
  }
  if (left_out == 0 || left_out == moved.size()) return;
  const Candidate dense = std::exchange(best_, without_moves());
  consider(mapping);
  if (best_.waves.after.empty()) best_ = dense;
}

Candidate AutoSearch::faster_part_of(const Candidate& whole, std::span<const std::vector<double>> I) {
  Candidate part = without_moves();
  if (whole.waves.after.empty() || I.empty() || !small()) return part;
  std::vector<ProcessorId> mapping = faster_part(c_.columns, whole.waves.after.back());
  const double before = replayed_seconds(c_.columns, I, c_.columns.on);
  double after = replayed_seconds(c_.columns, I, mapping);
  const double limit = after + AutoRule::kSlack * AutoRule::kLeast * before;
  std::size_t replays = kReplayWork / (I.size() * (mapping.size() + c_.columns.set.size()));
  for (std::uint32_t i = 0; i < mapping.size() && replays > 0; ++i) {
    if (mapping[i] == c_.columns.on[i]) continue;
    --replays;
    const ProcessorId away = std::exchange(mapping[i], c_.columns.on[i]);
    const double without = replayed_seconds(c_.columns, I, mapping);
    if (without <= limit)
      after = without;
    else
      mapping[i] = away;
  }
  Waves waves = waves_to(c_, I_, mapping, alike_);
  if (waves.after.empty()) return part;
  const double gain = (before - after + now_.second - comm_under(mapping)) / (before + now_.second);
  part.superstep = now() * (1 - gain);
  const double price = std::accumulate(waves.pause.begin(), waves.pause.end(), 0.0), risk = at_risk(waves);
  part.F = price + H_ * part.superstep;
  known_.push_back({price, part.superstep, risk, true});
  if (risk <= affordable(part.superstep)) part.waves = std::move(waves);
  return part;
}

// The fastest of them, and of these the one that it takes least to go to. `taken`: by processor.
std::optional<ProcessorId> AutoSearch::faster_idle(RankId i, const std::vector<bool>& taken) const {
  const Columns& columns = c_.columns;
  const double enough = columns.available[columns.on[i.value].value] * (1 + Replay::kFaster);
  std::optional<ProcessorId> best;
  std::pair<double, double> first;
  for (std::uint32_t p = 0; p < columns.set.size(); ++p) {
    const SetId j = columns.set[p];
    if (taken[p] || columns.slots[p] == 0 || columns.available[p] < enough || why_blocked(c_, i, j)) continue;
    if (columns.special[i.value] != 0 && !c_.snapshot.may_go_to(i, {p}, j)) continue;
    const std::pair order(-columns.available[p], Mem(c_, i, j));
    if (!best || order < first) best = ProcessorId{p}, first = order;
  }
  return best;
}

void AutoSearch::take_along(Candidate& chosen, double sure) const {
  if (chosen.waves.after.size() != 1 || !small()) return;
  std::vector<ProcessorId>& mapping = chosen.waves.after.front();
  const double pause = chosen.waves.pause.front();
  const std::vector<double> seconds = processor_seconds(c_.columns, I_, mapping);
  const auto takes = [&](std::uint32_t i) { return seconds[mapping[i].value]; };
  const double near = std::max(0.5, 1 - AutoRule::kNear * sure) * std::ranges::max(seconds);
  std::vector<std::uint32_t> ranks;
  std::vector<bool> taken(c_.columns.set.size());
  std::size_t moves = 0;
  for (std::uint32_t i = 0; i < mapping.size(); ++i) {
    const ProcessorId home = c_.columns.on[i];
    taken[home.value] = taken[mapping[i].value] = true;
    if (mapping[i] != home)
      ++moves;
    else if (takes(i) > near)
      ranks.push_back(i);
  }
  std::ranges::sort(ranks, {}, [&](std::uint32_t i) { return std::pair(-takes(i), i); });
  if (ranks.size() > kTakenAlong) ranks.resize(kTakenAlong);
  double least = superstep_of(mapping);
  for (const std::uint32_t i : ranks) {
    if (c_.params.max_moves > 0 && moves >= c_.params.max_moves) return;
    const std::optional<ProcessorId> to = faster_idle({i}, taken);
    if (!to) continue;
    const ProcessorId home = std::exchange(mapping[i], *to);
    const double superstep = superstep_of(mapping);
    if (superstep > least || pause_of(c_.snapshot, c_.columns, c_.columns.on, mapping) > pause) {
      mapping[i] = home;
      continue;
    }
    least = superstep;
    taken[to->value] = true;
    ++moves;
  }
}

double AutoSearch::next_pays(const Candidate& chosen, double sure) const {
  double soonest = std::numeric_limits<double>::infinity();
  const double price = chosen.F - H_ * chosen.superstep;
  for (const Known& it : known_) {
    if (!(it.superstep < chosen.superstep * (1 - (it.certain ? AutoRule::kLeast : sure)))) continue;
    const double over = (it.price - price) / (chosen.superstep - it.superstep);
    const double part = std::max(AutoRule::kRisk, AutoRule::kShare * (1 - it.superstep / now()));
    const double saved = (it.risk - affordable(it.superstep)) / (part * now());
    soonest = std::min(soonest, std::max({0.0, (over - H_) / AutoRule::kHope, saved}));
  }
  return soonest;
}

double AutoSearch::superstep_of(std::span<const ProcessorId> on) const {
  const auto [time, comm] = superstep(on);
  return time + comm;
}

double AutoSearch::superstep_of(const Waves& waves, std::size_t w) const {
  if (w == 0 || !heard_ || !heard_->pods().matter()) return superstep_of(waves.after[w]);
  std::vector<double> comm;
  heard_->seconds(std::span(waves.after).first(w + 1), comm);
  const double link = heard_->busiest_link(waves.after[w]).seconds;
  return std::ranges::max(processor_seconds(c_.columns, I_, waves.after[w])) + std::max(link, std::ranges::max(comm));
}

double AutoSearch::shortest_found() const {
  double shortest = now();
  for (const Known& it : known_) shortest = std::min(shortest, it.superstep);
  return shortest;
}

double AutoSearch::error_of_ratio(ProcessorId before, ProcessorId after) const {
  const Processor &p = c_.snapshot.platform.processor(before), &q = c_.snapshot.platform.processor(after);
  return p.set == q.set && p.cpu == q.cpu ? 0 : std::hypot(p.cpu_error, q.cpu_error);
}

double AutoSearch::error_of_longest(std::span<const ProcessorId> on) const {
  const auto longest = [](std::span<const double> seconds) {
    return ProcessorId{static_cast<std::uint32_t>(std::ranges::max_element(seconds) - seconds.begin())};
  };
  return error_of_ratio(longest(seconds_), longest(processor_seconds(c_.columns, I_, on)));
}

double AutoSearch::error_of_any_move(std::span<const ProcessorId> on) const {
  double largest = 0;
  for (std::size_t i = 0; i < on.size(); ++i) largest = std::max(largest, error_of_ratio(c_.columns.on[i], on[i]));
  return largest;
}

// max Time, max Comm.
std::pair<double, double> AutoSearch::superstep(std::span<const ProcessorId> on) const {
  return {std::ranges::max(processor_seconds(c_.columns, I_, on)), comm_under(on)};
}

double AutoSearch::comm_under(std::span<const ProcessorId> on) const {
  return heard_ ? comm_with_partners(on) : max_comm(on);
}

double AutoSearch::max_comm(std::span<const ProcessorId> on) const {
  double comm = 0;
  for (std::uint32_t i = 0; i < on.size(); ++i) comm = std::max(comm, comm_in({i}, c_.columns.set[on[i].value]));
  return comm;
}

// What a rank receives, it receives one after the other; a shared link carries what all of them receive.
double AutoSearch::comm_with_partners(std::span<const ProcessorId> on) const {
  std::vector<double> seconds;
  heard_->seconds(on, seconds);
  const double link = heard_->busiest_link(on).seconds;
  return seconds.empty() ? link : std::max(link, std::ranges::max(seconds));
}

bool AutoSearch::has_slot(std::span<const ProcessorId> mapping, ProcessorId p) const {
  const std::size_t on_it = static_cast<std::size_t>(std::ranges::count(mapping, p));
  return on_it < std::max<std::size_t>(c_.columns.slots[p.value], c_.columns.held[p.value]);
}

// Where Settling's work is enough for some mappings.
bool AutoSearch::small() const {
  return c_.columns.on.size() * c_.columns.set.size() < static_cast<std::size_t>(Settling::kWork) / 2;
}

// Bottleneck knows nothing of where ranks came from.
bool AutoSearch::goes_back(std::span<const ProcessorId> mapping) const {
  for (std::uint32_t i = 0; i < mapping.size(); ++i) {
    if (mapping[i] == c_.columns.on[i] || c_.columns.special[i] == 0) continue;
    if (c_.snapshot.has_left({i}, mapping[i])) return true;
  }
  return false;
}

void AutoSearch::consider(std::span<const ProcessorId> mapping) {
  weigh(mapping);
  if (!heard_ || !heard_->pods().matter()) return;
  if (const auto together = packed(c_, *heard_, mapping)) weigh(*together);
}

void AutoSearch::weigh(std::span<const ProcessorId> mapping) {
  if (goes_back(mapping)) return;
  Waves waves = waves_to(c_, I_, mapping, alike_);
  if (waves.after.empty()) return;
  Candidate it{.superstep =
                   waves.after.size() == 1 ? superstep_of(mapping) : superstep_of(waves, waves.after.size() - 1)};
  if (!(it.superstep < now())) return;
  const double between = static_cast<double>(AutoRule::kBetween);
  double left = H_;
  for (std::size_t w = 0; w < waves.after.size(); ++w) {
    it.F += waves.pause[w];
    if (w + 1 == waves.after.size()) break;
    it.F += std::min(left, between) * superstep_of(waves, w);
    left = std::max(0.0, left - between);
  }
  it.F += left * it.superstep;
  const double risk = at_risk(waves);
  known_.push_back({it.F - H_ * it.superstep, it.superstep, risk, false});
  if (!(it.F < best_.F) || risk > affordable(it.superstep)) return;
  it.waves = std::move(waves);
  best_ = std::move(it);
}

// What a wave may cost, s, that leads to supersteps of `target`, s. Staying has cost what all supersteps so far were
// longer, those before an earlier wave too; if not all of them are known, what they would be longer now.
double AutoSearch::affordable(double target) const {
  const double supersteps = static_cast<double>(c_.metrics.last.superstep.value);
  const double lost = std::max((1 - target / now()) * c_.elapsed, c_.elapsed - supersteps * target);
  return budget_ + std::max(0.0, AutoRule::kShare * lost - AutoRule::kRisk * c_.elapsed);
}

// What the job has paid at most before a mapping is reached that is no worse than now, s.
double AutoSearch::at_risk(const Waves& waves) const {
  double paid = 0, most = 0;
  for (std::size_t w = 0; w < waves.after.size(); ++w) {
    most = std::max(most, paid += waves.pause[w]);
    const double longer = w + 1 < waves.after.size() ? superstep_of(waves, w) - now() : 0;
    if (!(longer > 0)) break;
    paid += longer * static_cast<double>(AutoRule::kBetween);
  }
  return most;
}

void AutoSearch::follow_bottleneck(std::span<const PmEntry> list) {
  Processors processors(c_.columns, I_, I_, c_.params.reuse_vacated_slots);
  Trial trial(c_, processors, here_, comm_of_, BottleneckSearch::kTriedTogether);
  BottleneckSearch search(c_, trial, H_);
  search.run(list);
  if (trial.moves() == 0) return;
  std::vector<ProcessorId> mapping;
  for (std::uint32_t i = 0; i < I_.size(); ++i) mapping.push_back(trial.on({i}));
  consider(mapping);
}

// The least τ that can be kept, by bisection, under some κ; and some above it, which may need fewer moves.
void AutoSearch::settle() {
  Settling settling(c_, I_, here_, comm_of_);
  const double floor = settling.least_time(), most = std::numeric_limits<double>::infinity();
  const double mu = affordable(0);
  const double comm = max_comm(c_.columns.on);
  for (const double kappa : {most, comm, comm / 2})
    for (const auto order : {Settling::Order::kSoonest, Settling::Order::kCheapest}) {
      const auto attempt = [&](double tau) -> std::optional<double> {
        const auto mapping = settling.within({tau, kappa, mu, order});
        if (!mapping) return std::nullopt;
        consider(*mapping);
        return superstep(*mapping).first;
      };
      double kept = now_.first, broken = floor * (1 - 1e-6);
      for (int n = 0; n < kBisections && kept > broken * (1 + kClose); ++n) {
        const double tau = n == 0 ? floor : (kept + broken) / 2;
        if (const auto reached = attempt(tau))
          kept = std::min(tau, *reached);
        else
          broken = tau;
      }
      for (const double part : {0.1, 0.25, 0.5, 0.75}) attempt(kept + part * (now_.first - kept));
    }
}

// From where all are, and from the best mapping so far; and over links that are full on the way.
void AutoSearch::bring_together() {
  const double mu = affordable(0);
  const auto found = [this](std::span<const ProcessorId> on) { consider(on); };
  Together together(c_, I_, *heard_, H_, mu);
  if (!best_.waves.after.empty()) together.descend(best_.waves.after.back(), found);
  together.descend(c_.columns.on, found);
  if (c_.snapshot.platform.capacity.empty()) return;
  const auto beyond = Together(c_, I_, *heard_, H_, mu, Together::Limits::kNone).descend(c_.columns.on, found);
  Together(c_, I_, *heard_, H_, mu).descend(beyond, found);
}

}  // namespace bsp::decide
