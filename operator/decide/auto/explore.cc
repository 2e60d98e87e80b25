#include "operator/decide/auto/explore.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "operator/decide/auto/auto.h"
#include "operator/decide/auto/auto_search.h"
#include "operator/decide/auto/take_back.h"
#include "operator/decide/model/links.h"
#include "operator/decide/model/pm.h"

namespace bsp::decide {
namespace {

constexpr double kMeasured = static_cast<double>(TakeBack::kMeasured);

bool is_untried(const Case& c, SetId j) { return c.snapshot.platform.sets[j.value].untried; }

// The platform with untried Sets that are `ratio` times as fast as assumed.
Columns if_as_fast(const Case& c, double ratio) {
  Columns columns = c.columns;
  for (std::size_t p = 0; p < columns.set.size(); ++p)
    if (is_untried(c, columns.set[p])) columns.available[p] *= ratio;
  return columns;
}

// By Set: the fastest free slot, if it is untried and has one.
std::vector<std::optional<ProcessorId>> places_to_explore(const Case& c) {
  std::vector<std::optional<ProcessorId>> places(c.columns.sets);
  for (std::uint32_t p = 0; p < c.columns.set.size(); ++p) {
    std::optional<ProcessorId>& place = places[c.columns.set[p].value];
    if (!is_untried(c, c.columns.set[p]) || c.columns.slots[p] <= c.columns.held[p]) continue;
    if (!place || c.columns.available[p] > c.columns.available[place->value]) place = ProcessorId{p};
  }
  return places;
}

bool may_go(const Case& c, std::uint32_t i, ProcessorId to) {
  const SetId set = c.columns.set[to.value];
  return !why_blocked(c, {i}, set) && c.snapshot.may_go_to({i}, to, set);
}

// Ranks with enough work to measure a speed by, those with the least first.
std::vector<std::uint32_t> by_least_work(const Case& c) {
  const std::vector<double>& I = c.metrics.last.instructions;
  double sum = 0;
  for (const double instructions : I) sum += instructions;
  const double enough = Exploring::kEnough * sum / static_cast<double>(I.size());
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t i = 0; i < I.size(); ++i)
    if (I[i] > 0 && I[i] >= enough) ranks.push_back(i);
  std::ranges::sort(ranks, {}, [&](std::uint32_t i) { return std::pair(I[i], i); });
  return ranks;
}

struct Explorer {
  std::uint32_t rank = 0;
  ProcessorId to;
  double risk = 0, pause = 0;  // s
};

// The best one for each Set that has a place.
std::vector<Explorer> explorers(const Case& c, const AutoSearch& assumed, double H) {
  const std::vector<std::optional<ProcessorId>> places = places_to_explore(c);
  std::vector<Explorer> best;
  if (std::ranges::none_of(places, [](const auto& place) { return place.has_value(); })) return best;
  const std::vector<std::uint32_t> ranks = by_least_work(c);
  const Columns columns = if_as_fast(c, Exploring::kPoor);
  const Case slower = c.with(columns);
  const AutoSearch poor(slower, H);
  std::vector<ProcessorId> on = c.columns.on;
  for (const auto& place : places) {
    if (!place) continue;
    std::optional<Explorer> least;
    std::size_t considered = 0;
    for (const std::uint32_t i : ranks) {
      if (considered == Exploring::kConsidered) break;
      if (!may_go(c, i, *place)) continue;
      ++considered;
      on[i] = *place;
      const double pause = pause_of(c.snapshot, c.columns, c.columns.on, on);
      const double back = pause_of(c.snapshot, c.columns, on, c.columns.on);
      const double longer = poor.superstep_of(on) - poor.now();
      const double unseen = std::max(0.0, assumed.superstep_of(on) - assumed.now());
      on[i] = c.columns.on[i];
      if (unseen > AutoRule::kRisk * assumed.now()) continue;
      const double risk = pause + (longer > 0 ? back + kMeasured * longer : 0) + (goes_by_age(c) ? 0 : H * unseen);
      if (!least || risk < least->risk) least = {i, *place, risk, pause};
    }
    if (least) best.push_back(*least);
  }
  return best;
}

}  // namespace

Exploration explore(const Case& c, const Case& steady, const AutoSearch& assumed, double H, double sure, double owed) {
  if (c.params.timed_work) return {};
  std::vector<Explorer> candidates = explorers(steady, assumed, H);
  if (candidates.empty()) return {};
  const auto least = [&] { return *std::ranges::min_element(candidates, {}, &Explorer::risk); };

  const bool by_age = goes_by_age(c);
  const double now = assumed.now();
  const double payable = AutoRule::kRisk * (by_age ? c.elapsed : H * now) - owed;
  const auto supersteps_until = [&](double risk) {
    if (risk <= payable) return 0.0;
    return by_age && now > 0 ? (risk - payable) / (AutoRule::kRisk * now) : std::numeric_limits<double>::infinity();
  };
  if (!(supersteps_until(least().risk) < static_cast<double>(c.alpha_next))) return {};  // a later call looks again

  const Columns columns = if_as_fast(c, Exploring::kHoped);
  const Case faster = c.with(columns), steady_faster = steady.with(columns);
  const double later = H + AutoRule::kHope * supersteps_until(least().risk);
  AutoSearch hoped(steady_faster, later);
  hoped.afford(budget_of(c, owed));
  hoped.run(make_pm_list(faster).entries);
  const Candidate& best = hoped.best();
  if (best.waves.after.empty() || !(best.superstep <= now * (1 - sure))) return {};
  const std::vector<ProcessorId>& wanted = best.waves.after.back();
  std::erase_if(candidates, [&](const Explorer& explorer) {
    const SetId j = c.columns.set[explorer.to.value];
    const double F = best.F + explorer.risk + kMeasured * (now - best.superstep);
    return !(F <= later * now * (1 - c.params.min_gain)) ||
           std::ranges::none_of(wanted, [&](ProcessorId p) { return c.columns.set[p.value] == j; });
  });
  if (candidates.empty()) return {};
  const Explorer explorer = least();
  Exploration found{.after = supersteps_until(explorer.risk)};
  if (found.after > 0) return found;
  found.on = c.columns.on;
  found.on[explorer.rank] = explorer.to;
  found.pause = explorer.pause;
  found.F = best.F + explorer.pause + kMeasured * (now - best.superstep);
  return found;
}

}  // namespace bsp::decide
