#include "operator/decide/auto/settle.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

#include "operator/decide/model/pm.h"

namespace bsp::decide {
namespace {

constexpr double kEqual = 1 + 1e-9;  // what is nearer than this (relative) is the same

}  // namespace

Settling::Settling(const Case& c, std::span<const double> I, std::span<const double> comm_here, const CommOf& comm_of)
    : c_(c), I_(I), comm_here_(comm_here), comm_of_(comm_of) {
  for (std::uint32_t i = 0; i < I.size(); ++i) movable_.push_back(!why_blocked(c, {i}, c.columns.own[i]));
}

void Settling::all_home() {
  on_ = c_.columns.on;
  load_.assign(c_.columns.set.size(), 0);
  held_.resize(load_.size());
  for (auto& ranks : held_) ranks.clear();
  for (std::uint32_t i = 0; i < on_.size(); ++i) put(i, on_[i]);
  work_ -= static_cast<std::int64_t>(on_.size() + load_.size());
}

double Settling::comm_in(std::uint32_t i, SetId j) const {
  return j == c_.columns.own[i] ? comm_here_[i] : comm_of_({i}, j);
}

double Settling::mem(std::uint32_t i, ProcessorId to) const {
  if (to == c_.columns.on[i]) return 0;
  return Mem(c_, {i}, set_of(to));
}

bool Settling::may_be_on(std::uint32_t i, ProcessorId p, const Limits& limits) const {
  if (p != c_.columns.on[i] && c_.columns.special[i] != 0 && !c_.snapshot.may_go_to({i}, p, set_of(p))) return false;
  return comm_in(i, set_of(p)) <= limits.comm && mem(i, p) <= limits.mem;
}

// A rank may be at home even where newcomers are not taken in, or where there are more ranks than slots.
bool Settling::has_slot(ProcessorId p, bool home) const {
  const std::size_t slots =
      home ? std::max(c_.columns.slots[p.value], c_.columns.held[p.value]) : c_.columns.slots[p.value];
  return held_[p.value].size() < slots;
}

void Settling::take_off(std::uint32_t i) {
  const std::uint32_t p = on_[i].value;
  load_[p] -= I_[i];
  std::erase(held_[p], i);
}

void Settling::put(std::uint32_t i, ProcessorId p) {
  on_[i] = p;
  load_[p.value] += I_[i];
  held_[p.value].push_back(i);
}

// A processor above τ gives up the smallest rank that is enough, else its largest and again; all ranks above κ go.
bool Settling::give_up_places(const Limits& limits, std::vector<std::uint32_t>& homeless) {
  std::vector<bool> without_place(on_.size());
  const auto evict = [&](std::uint32_t i) {
    take_off(i);
    homeless.push_back(i);
    without_place[i] = true;
  };
  for (std::uint32_t p = 0; p < load_.size(); ++p) {
    while (load_[p] > limits.time * kEqual * c_.columns.available[p]) {
      const double excess = load_[p] - limits.time * c_.columns.available[p];
      std::uint32_t best = kNone;
      for (const std::uint32_t i : held_[p]) {
        if (!may_move(i) || !(I_[i] > 0)) continue;
        const auto rank_of = [&](std::uint32_t k) {  // first who are enough, the smaller first; then the larger first
          const bool enough = I_[k] * kEqual >= excess;
          return std::tuple(!enough, enough ? I_[k] : -I_[k], k);
        };
        if (best == kNone || rank_of(i) < rank_of(best)) best = i;
      }
      if (best == kNone) return false;
      evict(best);
    }
  }
  for (std::uint32_t i = 0; i < on_.size(); ++i) {
    if (comm_here_[i] <= limits.comm || without_place[i]) continue;
    if (!may_move(i)) return false;
    evict(i);
  }
  return true;
}

std::optional<Settling::Spot> Settling::free_spot(std::uint32_t i, const Limits& limits) {
  work_ -= static_cast<std::int64_t>(load_.size());
  std::optional<ProcessorId> best;
  std::pair<double, double> least;
  for (std::uint32_t p = 0; p < load_.size(); ++p) {
    const double time = (load_[p] + I_[i]) / c_.columns.available[p];
    if (time > limits.time * kEqual || !has_slot({p}, c_.columns.on[i].value == p)) continue;
    const double cost = mem(i, {p});
    const auto order = limits.order == Order::kSoonest ? std::pair(time, cost) : std::pair(cost, time);
    if ((best && !(order < least)) || !may_be_on(i, {p}, limits)) continue;
    best = ProcessorId{p};
    least = order;
  }
  if (!best) return std::nullopt;
  return Spot{*best, kNone};
}

// The smallest rank that can give way to i.
std::optional<Settling::Spot> Settling::taken_spot(std::uint32_t i, const Limits& limits) {
  work_ -= static_cast<std::int64_t>(load_.size() + on_.size());
  std::optional<Spot> best;
  std::pair<double, double> least;
  for (std::uint32_t p = 0; p < load_.size(); ++p) {
    if (c_.columns.slots[p] == 0 && c_.columns.on[i].value != p) continue;
    if (I_[i] > limits.time * kEqual * c_.columns.available[p] || held_[p].size() > c_.columns.slots[p]) continue;
    for (const std::uint32_t k : held_[p]) {
      if (!may_move(k) || !(I_[k] * kEqual < I_[i])) continue;
      if ((load_[p] - I_[k] + I_[i]) / c_.columns.available[p] > limits.time * kEqual) continue;
      const auto order = std::pair(I_[k], mem(i, {p}));
      if ((best && !(order < least)) || !may_be_on(i, {p}, limits)) continue;
      best = Spot{{p}, k};
      least = order;
    }
  }
  return best;
}

void Settling::send_home(const Limits& limits) {
  for (bool again = true; again;) {
    again = false;
    for (std::uint32_t i = 0; i < on_.size(); ++i) {
      const ProcessorId home = c_.columns.on[i];
      if (on_[i] == home || !has_slot(home, true) || comm_here_[i] > limits.comm) continue;
      if ((load_[home.value] + I_[i]) / c_.columns.available[home.value] > limits.time * kEqual) continue;
      take_off(i);
      put(i, home);
      again = true;
    }
    work_ -= static_cast<std::int64_t>(on_.size());
  }
}

std::optional<std::vector<ProcessorId>> Settling::within(const Limits& limits) {
  if (work_ < static_cast<std::int64_t>(on_.size())) return std::nullopt;
  all_home();
  std::vector<std::uint32_t> homeless;
  if (!give_up_places(limits, homeless)) return std::nullopt;
  const auto smaller = [this](std::uint32_t a, std::uint32_t b) { return std::pair(I_[a], b) < std::pair(I_[b], a); };
  std::priority_queue queue(smaller, std::move(homeless));
  while (!queue.empty()) {
    if (work_ < 0) return std::nullopt;
    const std::uint32_t i = queue.top();
    queue.pop();
    auto spot = free_spot(i, limits);
    if (!spot) spot = taken_spot(i, limits);
    if (!spot) return std::nullopt;
    if (spot->instead != kNone) {
      take_off(spot->instead);
      queue.push(spot->instead);
    }
    put(i, spot->to);
  }
  send_home(limits);
  return on_;
}

double Settling::least_time() const {
  const Columns& columns = c_.columns;
  std::vector<double> I(I_.begin(), I_.end()), slots;
  double sum = 0, capacity = 0;
  for (const double instructions : I) sum += instructions;
  for (std::uint32_t p = 0; p < columns.set.size(); ++p) {
    const std::size_t most = std::max(columns.slots[p], columns.held[p]);
    if (most > 0) capacity += columns.available[p];
    slots.insert(slots.end(), std::min(most, I.size()), columns.available[p]);
  }
  double time = capacity > 0 ? sum / capacity : 0;
  const std::size_t n = std::min(I.size(), slots.size());
  std::ranges::sort(I, std::greater());
  std::ranges::partial_sort(slots, slots.begin() + static_cast<std::ptrdiff_t>(n), std::greater());
  for (std::size_t k = 0; k < n; ++k) time = std::max(time, I[k] / slots[k]);
  return time;
}

}  // namespace bsp::decide
