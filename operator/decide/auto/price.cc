#include "operator/decide/auto/price.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "operator/decide/auto/auto.h"
#include "operator/decide/model/pm.h"

namespace bsp::decide {

Prices::Prices(const Snapshot& snapshot) {
  double dearest = 0;
  for (const Processor& p : snapshot.platform.processors) dearest = std::max(dearest, p.price);
  for (const Processor& p : snapshot.platform.processors)
    price_.push_back(p.price > 0 ? p.price : dearest > 0 ? dearest : 1);
}

double Prices::rate(std::span<const ProcessorId> on) const {
  double sum = 0;
  for (const ProcessorId p : on) sum += of(p);
  return sum;
}

PriceSearch::PriceSearch(const Case& c, const AutoSearch& search, const Prices& prices, const PriceTerms& terms)
    : c_(c),
      search_(search),
      prices_(prices),
      terms_(terms),
      I_(c.metrics.last.instructions),
      by_size_(I_.size()),
      by_price_(c.columns.set.size()),
      rate_now_(prices.rate(c.columns.on)),
      longest_(terms.limit / std::max(1.0, terms.H)),
      best_(search.without_moves()) {
  for (std::uint32_t i = 0; i < I_.size(); ++i)
    movable_.push_back(c.columns.special[i] == 0 || !why_blocked(c, {i}, c.columns.own[i]));
  std::iota(by_size_.begin(), by_size_.end(), 0u);
  std::ranges::sort(by_size_, {}, [this](std::uint32_t i) { return std::pair(-I_[i], i); });
  std::iota(by_price_.begin(), by_price_.end(), 0u);
  std::ranges::sort(by_price_, {},
                    [this](std::uint32_t p) { return std::tuple(prices_.of({p}), -c_.columns.available[p], p); });
}

void PriceSearch::run(std::span<const std::vector<ProcessorId>> starts) {
  const std::size_t pairs = I_.size() * by_price_.size();
  if (pairs > static_cast<std::size_t>(kWork) / 8) return;
  descend(c_.columns.on);
  for (const std::vector<ProcessorId>& start : starts) {
    weigh(start);
    descend(start);
  }
  // The least and the most that a superstep may have to take.
  double floor = 0;
  const double fastest = std::ranges::max(c_.columns.available), slowest = std::ranges::min(c_.columns.available);
  for (const double I : I_) floor = std::max(floor, I / fastest);
  const double most = std::min(longest_, std::accumulate(I_.begin(), I_.end(), 0.0) / slowest + search_.now());
  std::vector<std::vector<bool>> subsets;
  const std::size_t sets = c_.columns.sets;
  if (sets <= kMostSets) {
    for (std::size_t bits = (std::size_t{1} << sets) - 1; bits > 0; --bits) {
      subsets.emplace_back(sets);
      for (std::size_t j = 0; j < sets; ++j) subsets.back()[j] = (bits >> j & 1) != 0;
    }
  } else {
    subsets.emplace_back(sets, true);
    std::vector<bool> some(sets);
    for (const std::uint32_t p : by_price_)
      if (const SetId j = c_.columns.set[p]; !some[j.value]) some[j.value] = true, subsets.push_back(some);
  }
  for (const std::vector<bool>& subset : subsets)
    for (std::size_t n = 0; n < kLimits; ++n) {
      const double part = static_cast<double>(n) / static_cast<double>(kLimits - 1);
      if (!spend(0)) break;
      fit(subset, most * std::pow(std::max(0.05, floor / most), part));
    }
  leave_out();
}

bool PriceSearch::may_be_on(std::uint32_t i, ProcessorId p) const {
  if (p == c_.columns.on[i]) return true;
  if (c_.columns.special[i] == 0) return true;
  const SetId j = c_.columns.set[p.value];
  const Rank& rank = c_.snapshot.ranks[i];
  if (std::ranges::contains(rank.no_moves_to, j)) return false;
  return !c_.snapshot.has_left({i}, p) || prices_.of(p) < prices_.of(c_.columns.on[i]);
}

// Within τ if nobody had to wait for messages.
std::optional<std::vector<ProcessorId>> PriceSearch::cheapest(double tau, const std::vector<bool>& sets) {
  const Columns& columns = c_.columns;
  std::vector<ProcessorId> on = columns.on;
  std::vector<double> load(columns.set.size());
  std::vector<std::uint32_t> held(columns.set.size());
  const auto put = [&](std::uint32_t i, ProcessorId p) {
    on[i] = p;
    load[p.value] += I_[i];
    ++held[p.value];
  };
  for (std::uint32_t i = 0; i < on.size(); ++i)
    if (movable_[i] == 0) put(i, columns.on[i]);
  for (const std::uint32_t i : by_size_) {
    if (movable_[i] == 0) continue;
    const ProcessorId home = columns.on[i];
    const auto will_do = [&](ProcessorId p) {
      const std::uint32_t slots =
          p == home ? std::max(columns.slots[p.value], columns.held[p.value]) : columns.slots[p.value];
      return held[p.value] < slots && sets[columns.set[p.value].value] && may_be_on(i, p) &&
             load[p.value] + I_[i] <= tau * columns.available[p.value];
    };
    std::optional<ProcessorId> found;
    for (const std::uint32_t p : by_price_) {
      if (!spend(1)) return std::nullopt;
      if (!will_do({p})) continue;
      found = ProcessorId{p};
      break;
    }
    if (!found) return std::nullopt;
    put(i, will_do(home) && prices_.of(home) <= prices_.of(*found) ? home : *found);
  }
  return on;
}

// The cheapest mapping on these Sets whose superstep takes no longer than that, as far as it is found.
void PriceSearch::fit(const std::vector<bool>& sets, double seconds) {
  double tau = seconds;
  for (int n = 0; n < 4 && tau > 0; ++n) {
    const auto mapping = cheapest(tau, sets);
    if (!mapping) return;
    const double superstep = search_.superstep_of(*mapping);
    spend(static_cast<std::int64_t>(I_.size() * 8));
    if (superstep <= longest_) weigh(*mapping);
    if (superstep <= seconds) return descend(*mapping);
    tau -= superstep - seconds;
  }
}

// One rank after the other, those on the dearest slots first, to the cheapest slot that makes superstep · rate less, within the limit.
void PriceSearch::descend(std::vector<ProcessorId> on) {
  const Columns& columns = c_.columns;
  std::vector<std::uint32_t> held(columns.set.size());
  for (const ProcessorId p : on) ++held[p.value];
  std::vector<std::uint32_t> ranks = by_size_;
  std::ranges::stable_sort(ranks, std::greater(), [&](std::uint32_t i) { return prices_.of(on[i]); });
  double value = value_of(on);
  const bool within = search_.superstep_of(on) <= longest_;
  bool changed = false;
  for (const std::uint32_t i : ranks) {
    if (movable_[i] == 0) continue;
    std::set<std::tuple<double, SetId, std::uint32_t>> tried;  // slots alike are tried once
    for (const std::uint32_t p : by_price_) {
      if (!(prices_.of({p}) < prices_.of(on[i]))) break;
      if (held[p] >= columns.slots[p] || !may_be_on(i, {p})) continue;
      if (!tried.insert({columns.available[p], columns.set[p], held[p]}).second) continue;
      if (!spend(static_cast<std::int64_t>(I_.size()))) return;
      const ProcessorId before = std::exchange(on[i], ProcessorId{p});
      const double now = value_of(on);
      if (now < value && (!within || search_.superstep_of(on) <= longest_)) {
        value = now, changed = true;
        --held[before.value], ++held[p];
        break;
      }
      on[i] = before;
    }
  }
  if (changed) weigh(on);
}

void PriceSearch::weigh(const std::vector<ProcessorId>& mapping) {
  if (mapping == c_.columns.on) return;
  Waves waves = search_.way_to(mapping);
  if (waves.after.empty()) return;
  spend(static_cast<std::int64_t>(I_.size() * 4));
  const double now = search_.now(), between = static_cast<double>(AutoRule::kBetween);
  const std::size_t last = waves.after.size() - 1;
  double left = terms_.H, time = 0, money = 0, rate = rate_now_, superstep = now;
  double paid = 0, at_risk = 0;
  bool risky = true;
  for (std::size_t w = 0; w <= last; ++w) {
    const double dearer = std::max(rate, prices_.rate(waves.after[w]));
    rate = prices_.rate(waves.after[w]);
    superstep = search_.superstep_of(waves, w);
    const double supersteps = w == last ? left : std::min(left, between);
    left -= supersteps;
    time += waves.pause[w] + supersteps * superstep;
    money += waves.pause[w] * dearer + supersteps * superstep * rate;
    if (!risky) continue;
    at_risk = std::max(at_risk, paid += waves.pause[w] * dearer);
    const double longer = superstep * rate - now * rate_now_;
    risky = w < last && longer > 0;
    paid += std::max(0.0, longer) * between;
  }
  if (time > terms_.limit) return;
  const double value_now = now * rate_now_, value = superstep * rate;
  const double ratio = terms_.hurries ? superstep / now : value / value_now;
  if (ratio > 1 - terms_.sure) return;
  const double worth_it = 1 - c_.params.min_gain;
  const double whole = terms_.hurries ? time / (terms_.H * now) : money / (terms_.H * value_now);
  const double elapsed = c_.elapsed * rate_now_ / terms_.first_rate, risk = at_risk / terms_.first_rate;
  const double affordable =
      terms_.budget + std::max(0.0, AutoRule::kShare * (1 - ratio) * elapsed - AutoRule::kRisk * elapsed);
  if (whole > worth_it || risk > affordable) {
    const double share =
        std::max(AutoRule::kRisk, AutoRule::kShare * (1 - ratio)) * now * rate_now_ / terms_.first_rate;
    const double price = (whole - ratio) * terms_.H, over = price / (1 - ratio);
    soonest_ = std::min(soonest_, std::max({0.0, (over - terms_.H) / AutoRule::kHope, (risk - affordable) / share}));
    return;
  }
  if (!(money < money_)) return;
  money_ = money;
  best_ = {.F = terms_.hurries ? time : money / rate_now_, .superstep = superstep, .waves = std::move(waves)};
}

// Who saves next to nothing stays.
void PriceSearch::leave_out() {
  if (best_.waves.after.empty()) return;
  std::vector<ProcessorId> on = best_.waves.after.back();
  const double slack = AutoRule::kSlack * terms_.sure * search_.now() * rate_now_, limit = value_of(on) + slack;
  const double longest = std::max(longest_, best_.superstep);
  std::vector<std::uint32_t> held(c_.columns.set.size());
  for (const ProcessorId p : on) ++held[p.value];
  bool left_out = false;
  for (std::uint32_t i = 0; i < on.size(); ++i) {
    const ProcessorId home = c_.columns.on[i];
    if (on[i] == home || held[home.value] >= std::max(c_.columns.slots[home.value], c_.columns.held[home.value]))
      continue;
    const ProcessorId away = std::exchange(on[i], home);
    if (value_of(on) <= limit && search_.superstep_of(on) <= longest)
      --held[away.value], ++held[home.value], left_out = true;
    else
      on[i] = away;
  }
  if (!left_out || on == c_.columns.on) return;
  const Candidate dense = std::exchange(best_, search_.without_moves());
  const double money = std::exchange(money_, std::numeric_limits<double>::infinity());
  weigh(on);
  if (best_.waves.after.empty()) best_ = dense, money_ = money;
}

}  // namespace bsp::decide
