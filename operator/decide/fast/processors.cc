#include "operator/decide/fast/processors.h"

#include <algorithm>

#include "operator/decide/fast/decreasing.h"

namespace bsp::decide {
namespace {

// The slots of a processor for this job's ranks; where their number has no limit, enough for any job.
std::int32_t slots_of(const Columns& columns, ProcessorId p) {
  return static_cast<std::int32_t>(std::min(columns.slots[p.value], 1u << 30));
}

}  // namespace

Processors::Processors(const Columns& columns, std::span<const double> I_horizon, std::span<const double> I_last,
                       bool reuse_vacated_slots)
    : columns_(columns),
      reuse_vacated_slots_(reuse_vacated_slots),
      places_(columns.set.size()),
      riders_(columns.on.size()),
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
  }
}

void Processors::restart(std::span<const ProcessorId> placement, std::span<const double> I_horizon,
                         std::span<const double> I_last) {
  trees_.assign(columns_.sets, PickTree());
  Times_.reset();
  if (!I_horizon.empty()) {
    const auto [low, high] = std::ranges::minmax(I_horizon);
    I_range_ = {low, high};
  }
  for (std::uint32_t n = 0; n < places_.size(); ++n) {
    const ProcessorId p = processor_[n];
    Place& place = places_[n];
    place.I_horizon = place.I_last = 0;
    place.ranks = 0;
    place.free = slots_of(columns_, p);
    if (!reuse_vacated_slots_) place.free -= static_cast<std::int32_t>(columns_.held[p.value]);
  }
  for (std::uint32_t i = 0; i < riders_.size(); ++i) {
    const ProcessorId p = placement[i];
    Rider& rider = riders_[i];
    rider = {I_horizon[i], I_last[i], at_[home({i}).value], at_[p.value], p, columns_.set[p.value]};
    Place& place = places_[rider.at];
    if (reuse_vacated_slots_ || rider.at != rider.home) --place.free;
    put(rider, place, +1);
  }
}

void Processors::put(const Rider& rider, Place& place, double sign) {
  place.ranks += sign > 0 ? 1 : -1u;
  place.I_horizon += sign * rider.I_horizon;
  place.I_last += sign * rider.I_last;
  if (place.ranks == 0) place.I_horizon = place.I_last = 0;  // no rounding error stays behind
}

const PickTree& Processors::free_in(SetId j) const {
  PickTree& tree = trees_[j.value];
  const std::uint32_t first = first_[j.value], end = first_[j.value + 1];
  if (!tree.empty() || first == end) return tree;
  const bool alike = places_[first].unit == places_[end - 1].unit;  // they stand in its order
  tree = PickTree(end - first, I_range_, alike ? places_[first].unit : 0);
  for (std::uint32_t n = first; n < end; ++n)
    if (places_[n].free > 0) tree.plant(n - first, places_[n].I_horizon * places_[n].unit, places_[n].unit);
  tree.grow();
  return tree;
}

const Tournament& Processors::Times() const {
  if (!Times_) Times_.emplace(places_.size(), [this](std::uint32_t n) { return places_[n].I_last * places_[n].unit; });
  return *Times_;
}

void Processors::refresh(std::uint32_t n, SetId j) {
  const Place& place = places_[n];
  if (PickTree& tree = trees_[j.value]; !tree.empty()) {
    const std::size_t leaf = n - first_[j.value];
    if (place.free > 0)
      tree.set(leaf, place.I_horizon * place.unit, place.unit);
    else
      tree.close(leaf);
  }
  if (Times_) Times_->set(n, place.I_last * place.unit);
}

std::optional<Placement::Pick> Processors::pick(SetId j, RankId i, double below) const {
  const auto best = free_in(j).pick(riders_[i.value].I_horizon, below);
  if (!best) return std::nullopt;
  const std::uint32_t n = first_[j.value] + static_cast<std::uint32_t>(best->leaf);
  return Pick{processor_[n], n, best->time};
}

PickTree::Bounds Processors::least_time(SetId j, RankId i) const {
  return free_in(j).bounds(riders_[i.value].I_horizon);
}

double Processors::time(ProcessorId p) const { return place_of(p).I_horizon * place_of(p).unit; }

double Processors::time_of(RankId i) const {
  const Place& place = places_[riders_[i.value].at];
  return place.I_horizon * place.unit;
}

double Processors::time_with(ProcessorId p, RankId i) const {
  const Place& place = place_of(p);
  return (place.I_horizon + riders_[i.value].I_horizon) * place.unit;
}

ProcessorId Processors::slowest_processor() const { return processor_[Times().winner()]; }

double Processors::slowest_but(ProcessorId p) const { return Times().largest_but(at_[p.value]); }

bool Processors::has_free_slot(ProcessorId p) const { return place_of(p).free > 0; }

// Reused slots never become more than there are, or were taken at the call.
bool Processors::may_return(RankId i) const {
  if (!reuse_vacated_slots_) return true;
  const ProcessorId p = home(i);
  const std::int32_t missing = slots_of(columns_, p) - static_cast<std::int32_t>(columns_.held[p.value]);
  return places_[riders_[i.value].home].free > std::min(0, missing);
}

void Processors::move(RankId i, ProcessorId to) {
  check(to == home(i) ? may_return(i) : has_free_slot(to), "a rank moves only to a free slot, or back to its own");
  take(i, at_[to.value], to, columns_.set[to.value]);
}

void Processors::move(RankId i, const Pick& pick, SetId j) {
  check(places_[pick.place].free > 0, "a pick has a free slot");
  take(i, pick.place, pick.processor, j);
}

void Processors::undo(RankId i, ProcessorId from) { take(i, at_[from.value], from, columns_.set[from.value]); }

void Processors::take(RankId i, std::uint32_t to, ProcessorId p, SetId j) {
  Rider& rider = riders_[i.value];
  const std::uint32_t from = rider.at;
  put(rider, places_[from], -1);
  if (reuse_vacated_slots_ || from != rider.home) ++places_[from].free;
  put(rider, places_[to], +1);
  if (reuse_vacated_slots_ || to != rider.home) --places_[to].free;
  const SetId vacated = rider.set;
  rider.at = to, rider.on = p, rider.set = j;
  refresh(from, vacated);
  refresh(to, j);
}

}  // namespace bsp::decide
