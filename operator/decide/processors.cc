#include "operator/decide/processors.h"

#include <algorithm>

#include "operator/decide/decreasing.h"

namespace bsp::decide {

Processors::Processors(const Columns& columns, std::span<const double> I_horizon, std::span<const double> I_last,
                       bool reuse_vacated_slots)
    : columns_(columns),
      reuse_vacated_slots_(reuse_vacated_slots),
      places_(columns.set.size()),
      processor_(columns.set.size()),
      at_(columns.set.size()),
      first_(columns.sets + 1, 0) {
  line_up();
  restart(columns.on, I_horizon, I_last);
}

void Processors::line_up() {
  for (SetId j : columns_.set) ++first_[j.value + 1];
  for (std::size_t j = 0; j < columns_.sets; ++j) first_[j + 1] += first_[j];
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (std::uint32_t p = 0; p < at_.size(); ++p) processor_[next[columns_.set[p].value]++] = {p};
  std::vector<double> minus_unit;
  for (std::size_t j = 0; j < columns_.sets; ++j) {
    const std::span of_set(processor_.begin() + first_[j], processor_.begin() + first_[j + 1]);
    const auto slower = [&](ProcessorId p, ProcessorId q) {
      return columns_.available[p.value] < columns_.available[q.value];
    };
    if (std::ranges::adjacent_find(of_set, slower) == of_set.end()) continue;
    minus_unit.clear();
    for (ProcessorId p : of_set) minus_unit.push_back(-1 / columns_.available[p.value]);
    reorder(of_set, by_decreasing(minus_unit));  // equal: by index, as they are
  }
  for (std::uint32_t n = 0; n < places_.size(); ++n) {
    const std::uint32_t p = processor_[n].value;
    at_[p] = n;
    places_[n].unit = 1 / columns_.available[p];
    places_[n].slots = columns_.slots[p];
  }
}

void Processors::restart(std::span<const ProcessorId> placement, std::span<const double> I_horizon,
                         std::span<const double> I_last) {
  I_horizon_ = I_horizon;
  I_last_ = I_last;
  one_list_ = I_last.data() == I_horizon.data();
  I_last_on_.assign(one_list_ ? 0 : places_.size(), 0.0);
  on_.assign(placement.begin(), placement.end());
  trees_.assign(columns_.sets, PickTree());
  Times_.reset();
  for (std::uint32_t n = 0; n < places_.size(); ++n) {
    Place& place = places_[n];
    place.I_horizon = 0;
    place.ranks = 0;
    place.booked = reuse_vacated_slots_ ? 0 : columns_.held[processor_[n].value];
  }
  for (std::uint32_t i = 0; i < on_.size(); ++i) {
    const std::uint32_t n = at_[on_[i].value];
    if (reuse_vacated_slots_ || on_[i] != home({i})) ++places_[n].booked;
    put({i}, n, +1);
  }
}

void Processors::put(RankId i, std::uint32_t n, double sign) {
  Place& place = places_[n];
  place.ranks += sign > 0 ? 1 : -1u;
  place.I_horizon += sign * I_horizon_[i.value];
  if (place.ranks == 0) place.I_horizon = 0;  // no rounding error stays behind
  if (one_list_) return;
  I_last_on_[n] += sign * I_last_[i.value];
  if (place.ranks == 0) I_last_on_[n] = 0;
}

const PickTree& Processors::free_in(SetId j) const {
  PickTree& tree = trees_[j.value];
  const std::uint32_t first = first_[j.value], end = first_[j.value + 1];
  if (!tree.empty() || first == end) return tree;
  tree = PickTree(end - first);
  for (std::uint32_t n = first; n < end; ++n)
    if (is_free(places_[n])) tree.plant(n - first, places_[n].I_horizon * places_[n].unit, places_[n].unit);
  tree.grow();
  return tree;
}

const Tournament& Processors::Times() const {
  if (!Times_) Times_.emplace(places_.size(), [this](std::uint32_t n) { return I_last_on(n) * places_[n].unit; });
  return *Times_;
}

void Processors::refresh(ProcessorId p) {
  const Place& place = place_of(p);
  const SetId j = columns_.set[p.value];
  if (PickTree& tree = trees_[j.value]; !tree.empty()) {
    const std::size_t leaf = at_[p.value] - first_[j.value];
    if (is_free(place))
      tree.set(leaf, place.I_horizon * place.unit, place.unit);
    else
      tree.close(leaf);
  }
  if (Times_) Times_->set(at_[p.value], I_last_on(at_[p.value]) * place.unit);
}

std::optional<Processors::Pick> Processors::pick(SetId j, RankId i, double below) const {
  const auto best = free_in(j).pick(I_horizon_[i.value], below);
  if (!best) return std::nullopt;
  return Pick{processor_[first_[j.value] + best->leaf], best->time};
}

double Processors::least_time(SetId j, RankId i) const { return free_in(j).least_time(I_horizon_[i.value]); }

double Processors::time(ProcessorId p) const { return place_of(p).I_horizon * place_of(p).unit; }

double Processors::time_with(ProcessorId p, RankId i) const {
  const Place& place = place_of(p);
  return (place.I_horizon + I_horizon_[i.value]) * place.unit;
}

ProcessorId Processors::slowest_processor() const { return processor_[Times().winner()]; }

double Processors::slowest_but(ProcessorId p) const { return Times().largest_but(at_[p.value]); }

bool Processors::may_return(RankId i) const {
  const Place& place = place_of(home(i));
  return !reuse_vacated_slots_ || place.booked < std::max(place.slots, columns_.held[home(i).value]);
}

void Processors::move(RankId i, ProcessorId to) {
  check(to == home(i) ? may_return(i) : has_free_slot(to), "a rank moves only to a free slot, or back to its own");
  take(i, to);
}

void Processors::undo(RankId i, ProcessorId from) { take(i, from); }

void Processors::take(RankId i, ProcessorId to) {
  const ProcessorId from = on(i);
  const std::uint32_t vacated = at_[from.value], taken = at_[to.value];
  put(i, vacated, -1);
  if (reuse_vacated_slots_ || from != home(i)) --places_[vacated].booked;
  put(i, taken, +1);
  if (reuse_vacated_slots_ || to != home(i)) ++places_[taken].booked;
  on_[i.value] = to;
  refresh(from);
  refresh(to);
}

}  // namespace bsp::decide
