#include "operator/decide/auto/untried.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "operator/decide/model/means.h"
#include "operator/decide/model/pf.h"

namespace bsp::decide {
namespace {

// The three largest of some values, so that the largest without one or two of them is known.
class Largest {
 public:
  void add(std::uint32_t whose, double value) {
    Entry entry{whose, value};
    for (Entry& known : top_)
      if (entry.value > known.value) std::swap(known, entry);
  }
  [[nodiscard]] double without(std::uint32_t a, std::uint32_t b) const {
    for (const Entry& known : top_)
      if (known.whose != a && known.whose != b) return known.value;
    return 0;
  }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  struct Entry {
    std::uint32_t whose = kNone;
    double value = 0;
  };
  std::array<Entry, 3> top_{};  // decreasing
};

// A superstep with one rank moved, by the window's mean work.
class OneMoved {
 public:
  explicit OneMoved(const Case& c) : c_(c), Comm_(c.means->comm_times(c)) {
    const double n = static_cast<double>(c.metrics.supersteps);
    for (const double I : c.metrics.I_window) work_.push_back(I / n);
    busy_ = processor_seconds(c.columns, work_, c.columns.on);
    for (std::uint32_t p = 0; p < busy_.size(); ++p) time_.add(p, busy_[p]);
    for (std::uint32_t i = 0; i < work_.size(); ++i) comm_.add(i, (*Comm_)({i}, c.columns.own[i]));
  }

  [[nodiscard]] double work(RankId i) const { return work_[i.value]; }
  [[nodiscard]] double now() const { return time_.without(kNobody, kNobody) + comm_.without(kNobody, kNobody); }
  [[nodiscard]] double with(const Move& move) const {
    const std::uint32_t p = move.from.value, q = move.to.value;
    const double I = work(move.rank);
    const double time =
        std::max({time_.without(p, q), busy_[p] - I / c_.columns.available[p], busy_[q] + I / c_.columns.available[q]});
    return time + std::max(comm_.without(move.rank.value, kNobody), (*Comm_)(move.rank, move.to_set));
  }

 private:
  static constexpr std::uint32_t kNobody = ~0u - 1;
  const Case& c_;
  std::unique_ptr<CommTimes> Comm_;
  std::vector<double> work_, busy_;  // by rank; by processor
  Largest time_, comm_;
};

void all_stay(Plan& plan, Reason reason, double value, double limit) {
  for (const Move& move : std::exchange(plan.moves, {}))
    plan.stays.push_back({.rank = move.rank, .reason = reason, .target = move.to_set, .value = value, .limit = limit});
  plan.objective.after = plan.objective.before;
  plan.forecast.after = plan.forecast.before;
  plan.rules.waves = 0;
}

// The pause of a wave with all moves of the plan but one rank's.
double longest_pause(const Plan& plan, RankId without = {~0u}) {
  double pause = 0;
  for (const Move& move : plan.moves)
    if (move.rank != without) pause = std::max(pause, move.cost);
  return pause;
}

Move first_to_go(const OneMoved& superstep, const Plan& plan, auto&& is_untried) {
  double least = std::numeric_limits<double>::infinity();
  for (const Move& move : plan.moves)
    if (is_untried(move)) least = std::min(least, superstep.with(move));
  const double equal = least + plan.rules.least_gain * superstep.now();
  const Move* first = nullptr;
  const auto key = [&](const Move& move) { return std::tuple(superstep.work(move.rank), move.cost, move.rank); };
  for (const Move& move : plan.moves)
    if (is_untried(move) && superstep.with(move) <= equal && (!first || key(move) < key(*first))) first = &move;
  check(first != nullptr, "one of the moves goes to an untried Set");
  return *first;
}

enum class Next { kTrial, kLater, kNothing };

// Auto's plan, whose first wave becomes `trial`, unless it doesn't pay so, or couldn't be judged yet.
Next settle_with_auto(const Case& c, const Move& trial, double longer, Plan& plan) {
  const double superstep = plan.forecast.before + longer;
  const double supersteps = std::min(plan.rules.supersteps, static_cast<double>(TakeBack::kMeasured));
  const double pause = longest_pause(plan), pauses = trial.cost + longest_pause(plan, trial.rank);
  const double F = plan.objective.after - pause + pauses + supersteps * std::max(0.0, superstep - plan.forecast.after);
  const double worth_it = plan.objective.before * (1 - c.params.min_gain);
  const Verdict verdict = judge_wave(c);
  const bool pays = F <= worth_it;
  if (!pays || !verdict.measured) {
    if (c.params.migrates) plan.next.owed -= pause;
    plan.next.wave = verdict.open ? c.wave : Judged{};
    plan.next.alpha = 0;
    if (pays)
      all_stay(plan, Reason::kTriedFirst, 0, 0);
    else
      all_stay(plan, Reason::kGainBelowMinimum, F, worth_it);
    return pays ? Next::kLater : Next::kNothing;
  }
  plan.objective.after = F;
  plan.forecast.after = superstep;
  ++plan.rules.waves;
  if (c.params.migrates) {
    plan.next.owed += trial.cost - pause;
    plan.next.wave = judged_from(c, plan.superstep, plan.forecast.before);
  }
  return Next::kTrial;
}

}  // namespace

std::uint64_t try_with_one_rank(const Case& c, Plan& plan) {
  const auto is_untried = [&](const Move& move) { return c.snapshot.platform.sets[move.to_set.value].untried; };
  if (plan.rules.explores) return TakeBack::kMeasured;
  if (plan.rules.takes_back || std::ranges::none_of(plan.moves, is_untried)) return 0;
  const OneMoved superstep(c);
  const Move trial = first_to_go(superstep, plan, is_untried);
  const double longer = superstep.with(trial) - superstep.now();
  const bool judges = plan.heuristic == Heuristic::kAuto;
  const Next next = judges ? settle_with_auto(c, trial, longer, plan) : Next::kTrial;
  const std::uint64_t window = judges && c.params.migrates && next != Next::kNothing ? TakeBack::kMeasured : 0;
  if (next != Next::kTrial) return window;
  for (const Move& move : plan.moves)
    if (move.rank != trial.rank)
      plan.stays.push_back({.rank = move.rank, .reason = Reason::kTriedFirst, .target = move.to_set});
  plan.moves = {trial};
  plan.rules.tries = true;
  if (!judges) plan.forecast = forecast_of(c, plan.moves);
  return window;
}

}  // namespace bsp::decide
