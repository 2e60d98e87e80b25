#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <tuple>

#include "operator/decide/bottleneck/bottleneck.h"
#include "operator/decide/fast/lanes.h"
#include "operator/decide/model/pm.h"

namespace bsp::decide {
namespace {

constexpr std::uint32_t kNotListed = std::numeric_limits<std::uint32_t>::max();

}  // namespace

BottleneckSearch::BottleneckSearch(const Case& c, Trial& trial, double alpha)
    : c_(c),
      trial_(trial),
      alpha_(alpha),
      search_cost_(static_cast<std::int64_t>(c.snapshot.platform.sets.size()) + 40),
      best_(F()),
      best_at_(trial.mark()),
      visit_(c.snapshot.platform.sets.size()),
      bounds_(c.snapshot.platform.sets.size()) {}

void BottleneckSearch::run(std::span<const PmEntry> list) {
  improve();
  try_limits();
  exchanges();
  leave_out();
  std::vector<std::uint32_t> position(c_.columns.on.size(), kNotListed);
  for (std::uint32_t q = 0; q < list.size(); ++q) position[list[q].rank.value] = q;
  for (int round = 0; round < 16 && follow_the_list(list, position); ++round) leave_out();
}

// Takes the steps, then goes back to the best mapping on their way, or to where it began. True if F got lower.
template <class Steps>
bool BottleneckSearch::attempt(Steps steps) {
  const double before = best_;
  const std::size_t begun = best_at_ = trial_.mark();
  steps();
  const bool lower = best_ < before;
  trial_.back_to(lower ? best_at_ : begun);
  return lower;
}

void BottleneckSearch::relocate(RankId i, ProcessorId to) {
  work_ -= 80;  // there and, perhaps, back
  trial_.relocate(i, to);
  keep_if_best();
}

void BottleneckSearch::keep_if_best() {
  if (!(F() < best_ * (1 - kNoise))) return;
  best_ = F();
  best_at_ = trial_.mark();
}

bool BottleneckSearch::may_move(RankId i) const { return !why_blocked(c_, i, c_.columns.own[i.value]); }

bool BottleneckSearch::may_be_in(RankId i, SetId j) const {
  if (c_.columns.special[i.value] == 0) return true;
  const std::vector<SetId>& lacking = c_.snapshot.ranks[i.value].no_moves_to;
  return std::ranges::find(lacking, j) == lacking.end();  // its own Set too, but for where it is
}

bool BottleneckSearch::has_slot_for(RankId i, ProcessorId p) const {
  const Processors& processors = trial_.processors();
  if (p == trial_.home(i)) return processors.may_return(i);
  if (!trial_.moved(i) && move_limit_reached()) return false;
  return processors.has_free_slot(p) && may_be_in(i, c_.columns.set[p.value]);
}

// Where rank i would be done soonest, and before `below`, within the limits.
std::optional<BottleneckSearch::Spot> BottleneckSearch::best_spot(RankId i, double below, const Limits& limits) {
  work_ -= search_cost_;
  const Processors& processors = trial_.processors();
  const ProcessorId home = trial_.home(i), on = trial_.on(i);
  std::optional<Spot> best;
  if (on != home && processors.may_return(i) && trial_.comm_here(i) <= limits.comm) {
    const double time = processors.time_with(home, i);
    if (time < below) best = {home, below = time};
  }
  if (on == home && move_limit_reached()) return best;
  for (std::uint32_t j = 0; j < bounds_.size(); ++j) {
    const bool too_dear = limits.mem < kNoLimit && trial_.Mem_to(i, {j}) > limits.mem;
    const PickTree::Bounds least = processors.least_time({j}, i);
    visit_[j] = too_dear ? kNoLimit : least.loose;
    bounds_[j] = least.tight;
  }
  while (true) {  // the most promising Set first: mostly, no other has to be searched then
    const auto nearest = std::ranges::find(visit_, least_of(visit_));
    if (nearest == visit_.end() || !(*nearest < below)) return best;
    *nearest = kNoLimit;
    const SetId j{static_cast<std::uint32_t>(nearest - visit_.begin())};
    if (!(bounds_[j.value] < below) || !may_be_in(i, j)) continue;
    const auto pick = processors.pick(j, i, below);
    if (!pick || pick->processor == on || pick->processor == home) continue;
    if (limits.comm < kNoLimit && trial_.Comm_in(i, j) > limits.comm) continue;
    best = {pick->processor, below = pick->time};
    for (std::size_t k = 0; k < bounds_.size(); ++k)
      if (!(bounds_[k] < below)) visit_[k] = kNoLimit;
  }
}

bool BottleneckSearch::send_away(RankId i, const Limits& limits) {
  if (!may_move(i)) return false;
  const auto spot = best_spot(i, kNoLimit, limits);
  if (spot) relocate(i, spot->processor);
  return spot.has_value();
}

bool BottleneckSearch::relieve_slowest(const Limits& limits) {
  const Processors& processors = trial_.processors();
  const ProcessorId p = processors.slowest_processor();
  const double slowest = trial_.time(), below = slowest * (1 - kNoise);
  const double available = c_.columns.available[p.value];
  struct Relief {
    double later;  // when the later of the two processors is done, s
    double mem;
    std::uint32_t i;
    ProcessorId to;
  };
  std::optional<Relief> best;
  std::uint32_t tried = 0;
  for (std::uint32_t i = trial_.first_on(p); i != Trial::kNoRank && work_ > 0; i = trial_.next(i)) {
    --work_;
    const double I = c_.metrics.last.instructions[i];
    if (!(I > 0) || !may_move({i})) continue;
    if (const auto spot = best_spot({i}, below, limits)) {
      const SetId j = c_.columns.set[spot->processor.value];
      const double mem = spot->processor == trial_.home({i}) ? 0 : trial_.Mem_to({i}, j);
      const Relief relief{std::max(spot->time, slowest - I / available), mem, i, spot->processor};
      if (!best || std::tie(relief.later, relief.mem, relief.i) < std::tie(best->later, best->mem, best->i))
        best = relief;
    }
    if (++tried % kTriedTogether == 0 && best) break;
  }
  if (best) relocate({best->i}, best->to);
  return best.has_value();
}

void BottleneckSearch::descend(const Limits& limits) {
  bool possible = true;
  while (possible && work_ > 0 && trial_.mem() > limits.mem) possible = send_away(trial_.mem_rank(), limits);
  while (possible && work_ > 0 && trial_.comm() > limits.comm) possible = send_away(trial_.comm_rank(), limits);
  while (possible && work_ > 0) possible = relieve_slowest(limits);
}

void BottleneckSearch::improve() {
  bool lower = true;
  while (lower && work_ > 0) {
    const double comm = trial_.comm(), mem = trial_.mem();
    const double less_comm = comm * (1 - kNoise), less_mem = mem * (1 - kNoise);
    const Limits around[] = {{},
                             {comm, mem},
                             {less_comm, kNoLimit},
                             {kNoLimit, less_mem},
                             {less_comm, less_mem},
                             {comm, less_mem},
                             {less_comm, mem}};
    lower = std::ranges::any_of(around, [&](const Limits& l) { return attempt([&] { descend(l); }); });
  }
}

// Not compared on the way: which mappings that passes depends on the ranks' numbers.
void BottleneckSearch::all_home() {
  for (bool again = true; again && trial_.moves() > 0;) {
    again = false;
    for (std::uint32_t i = 0; i < c_.snapshot.ranks.size(); ++i) {
      if (!trial_.moved({i}) || !trial_.processors().may_return({i})) continue;
      trial_.relocate({i}, trial_.home({i}));
      work_ -= 80;
      again = true;
    }
  }
  keep_if_best();
}

void BottleneckSearch::try_limits() {
  const auto ranks = static_cast<std::int64_t>(c_.snapshot.ranks.size());
  const auto sets = static_cast<std::int64_t>(c_.snapshot.platform.sets.size());
  const std::int64_t reading = ranks * sets * (sets / 2 + 1);
  if (reading > work_ / 4) return;
  work_ -= reading;
  const double affordable = std::sqrt(static_cast<double>(work_) / static_cast<double>(2 * ranks * search_cost_));
  const std::size_t most = static_cast<std::size_t>(std::min(affordable, 8.0));
  if (most < 2) return;

  std::vector<double> comm, mem;
  for (std::uint32_t i = 0; i < ranks; ++i) {
    for (std::uint32_t j = 0; j < sets; ++j) {
      comm.push_back(trial_.Comm_in({i}, {j}));
      if (may_move({i})) mem.push_back(trial_.Mem_to({i}, {j}));
    }
  }
  const auto spread = [most](std::vector<double>& values) {  // at most `most` of them, decreasing
    std::ranges::sort(values, std::greater());
    values.erase(std::ranges::unique(values).begin(), values.end());
    if (values.size() <= most) return;
    for (std::size_t v = 0; v < most; ++v) values[v] = values[v * (values.size() - 1) / (most - 1)];
    values.resize(most);
  };
  spread(comm);
  spread(mem);
  for (double kappa : comm)
    for (double mu : mem)
      if (work_ > 0) attempt([&] { all_home(), descend({kappa, mu}); });
}

// i takes the place of k, which goes where it is done soonest.
void BottleneckSearch::exchange(RankId i, RankId k) {
  const ProcessorId place = trial_.on(k);
  if (trial_.moved(i) && trial_.processors().may_return(i)) relocate(i, trial_.home(i));
  const auto spot = best_spot(k, kNoLimit, {});
  if (!spot) return;
  relocate(k, spot->processor);
  if (trial_.on(i) == place || !has_slot_for(i, place)) return;
  relocate(i, place);
  descend({});
}

void BottleneckSearch::exchanges() {
  std::vector<std::uint32_t> by_instructions(c_.snapshot.ranks.size());
  if (static_cast<std::int64_t>(by_instructions.size()) * search_cost_ > work_) return;
  std::iota(by_instructions.begin(), by_instructions.end(), 0u);
  const std::vector<double>& I = c_.metrics.last.instructions;
  std::ranges::sort(by_instructions, {}, [&](std::uint32_t i) { return std::pair(-I[i], i); });
  const auto lower_with = [&](std::uint32_t i) {
    return may_move({i}) && std::ranges::any_of(by_instructions, [&](std::uint32_t k) {
             return work_ > 0 && k != i && may_move({k}) && attempt([&] { exchange({i}, {k}); });
           });
  };
  for (bool lower = true; lower && work_ > 0;) {
    std::vector<std::uint32_t> at_a_maximum;
    const ProcessorId p = trial_.processors().slowest_processor();
    for (std::uint32_t i = trial_.first_on(p); i != Trial::kNoRank; i = trial_.next(i)) at_a_maximum.push_back(i);
    std::ranges::sort(at_a_maximum, {}, [&](std::uint32_t i) { return std::pair(-I[i], i); });
    at_a_maximum.push_back(trial_.comm_rank().value);
    if (trial_.moves() > 0) at_a_maximum.push_back(trial_.mem_rank().value);
    lower = std::ranges::any_of(at_a_maximum, lower_with);
  }
}

// Positions in the PM list, increasing, of unmoved ranks that are on the slowest processor or have the largest Comm.
std::vector<std::uint32_t> BottleneckSearch::at_a_maximum_from(std::size_t first,
                                                               std::span<const std::uint32_t> position) const {
  std::vector<std::uint32_t> found;
  const auto add = [&](std::uint32_t i) {
    if (position[i] != kNotListed && position[i] >= first && !trial_.moved({i})) found.push_back(position[i]);
  };
  const ProcessorId p = trial_.processors().slowest_processor();
  for (std::uint32_t i = trial_.first_on(p); i != Trial::kNoRank; i = trial_.next(i)) add(i);
  if (trial_.on(trial_.comm_rank()) != p) add(trial_.comm_rank().value);
  std::ranges::sort(found);
  return found;
}

// Ranks of the PM list that sit at a maximum, to their target as well: so that a plan can say of each that it would
// not gain. In the list's order; `position`: in it, by rank.
bool BottleneckSearch::follow_the_list(std::span<const PmEntry> list, std::span<const std::uint32_t> position) {
  const auto lower_with = [&](std::uint32_t q) {
    if (move_limit_reached()) return false;
    const auto pick = trial_.processors().pick(list[q].target, list[q].rank);
    return pick && attempt([&] { relocate(list[q].rank, pick->processor); });
  };
  std::size_t first = 0;  // of those that are still to be tried
  while (true) {
    const std::vector<std::uint32_t> positions = at_a_maximum_from(first, position);
    const auto lower = std::ranges::find_if(positions, lower_with);
    if (lower == positions.end()) return first > 0;
    first = *lower + 1;
  }
}

// Whether a moved rank would exceed neither maximum at home.
bool BottleneckSearch::could_stay(RankId i) const {
  const Processors& processors = trial_.processors();
  return processors.may_return(i) && trial_.comm_here(i) <= trial_.comm() &&
         processors.time_with(trial_.home(i), i) <= trial_.time();
}

void BottleneckSearch::leave_out() {
  std::vector<std::pair<double, std::uint32_t>> dearest_first;
  bool again = false;
  for (std::uint32_t i : trial_.moved_ranks()) {
    dearest_first.emplace_back(-trial_.mem_at({i}), i);
    if (could_stay({i})) again = true;
  }
  if (again) std::ranges::sort(dearest_first);
  while (again) {
    again = false;
    std::erase_if(dearest_first, [&](const auto& mem_and_rank) { return !trial_.moved({mem_and_rank.second}); });
    for (const auto& [mem, rank] : dearest_first) {
      const RankId i{rank};
      if (!could_stay(i)) continue;
      const double before = F();
      const std::size_t begun = trial_.mark();
      trial_.relocate(i, trial_.home(i));
      if (F() > before) {
        trial_.back_to(begun);
      } else {
        again = true;
      }
    }
  }
  best_ = F();
  best_at_ = trial_.mark();
}

}  // namespace bsp::decide
