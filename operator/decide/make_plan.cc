#include "operator/decide/make_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "operator/decide/auto/auto.h"
#include "operator/decide/auto/price.h"
#include "operator/decide/auto/untried.h"
#include "operator/decide/fast/decreasing.h"
#include "operator/decide/model/adaptation.h"
#include "operator/decide/model/means.h"
#include "operator/decide/model/pm.h"
#include "operator/decide/model/strategy.h"

namespace bsp::decide {
namespace {

Result<void> validate_together(const Snapshot& snapshot, const Window& window) {
  const Metrics& m = window.metrics();
  if (m.PI.size() != snapshot.ranks.size() || m.PB.cols() != snapshot.platform.sets.size())
    return fail(ErrorCode::kInvalid, "the window has other ranks or Sets than the snapshot");
  if (!window.call_due()) return fail(ErrorCode::kInvalid, "no rescheduling call is due");
  return {};
}

// In one pass, as each rank has at most one Stay.
void sort_by_rank(std::vector<Stay>& stays, std::size_t ranks) {
  constexpr std::uint32_t kNone = ~0u;
  std::vector<std::uint32_t> of_rank(ranks, kNone);
  for (std::uint32_t s = 0; s < stays.size(); ++s) of_rank[stays[s].rank.value] = s;
  std::erase(of_rank, kNone);
  reorder(std::span(stays), std::move(of_rank));
}

// Besides Adaptation 1: α₀ again after a call that came early; what the heuristic wants, and else between the least and the most.
void set_pace(const Window& window, std::uint64_t wanted, const Params& params, Cadence& next) {
  if (window.called_early()) next.alpha = params.alpha0;
  const std::uint64_t age = window.completed().value;
  next.alpha = std::clamp(next.alpha, least_alpha(params, age), most_alpha(params, age));
  if (wanted > 0 && params.migrates) next.alpha = std::min(next.alpha, wanted);
  next.alpha_next = next.alpha;
}

// After a wave that was taken back: `wanted` supersteps, and as many as the job is old after each further one, since
// then the model is wrong about more than these nodes.
void cool_down(Superstep completed, std::uint64_t wanted, Cadence& next) {
  const std::uint64_t age = next.taken_back > 0 ? completed.value : 0;
  next.alpha = next.alpha_next = std::max({next.alpha, wanted, age});
  next.cooling = true;
  ++next.taken_back;
}

void say_prices(const Snapshot& snapshot, const Columns& columns, Plan& plan) {
  const Prices prices(snapshot);
  plan.spending.before = plan.spending.after = prices.rate(columns.on);
  for (const Move& move : plan.moves) plan.spending.after += prices.of(move.to) - prices.of(move.from);
}

// From what supersteps took, instead of what the model has for them, unless the difference may be noise (the first superstep is often a
// long one): where a rank does more in MPI than transfers explain (it waits for partners in the middle of the superstep, its CPU is slow
// there, too), that is taken to change as the rest does. Auto doesn't count on it.
void start_from_measured(const SuperstepSeconds& measured, Forecast& forecast) {
  if (!(std::abs(measured.mean - forecast.before) > AutoRule::kSure * measured.error && forecast.before > 0)) return;
  forecast = {.before = measured.mean, .after = measured.mean * (forecast.after / forecast.before)};
}

}  // namespace

double supersteps_counted(const Plan& plan) {
  if (plan.heuristic == Heuristic::kAuto) return plan.rules.supersteps;
  if (plan.heuristic == Heuristic::kBottleneck && plan.forecast.before > 0)
    return plan.objective.before / plan.forecast.before;
  return static_cast<double>(plan.now.alpha);
}

Result<Plan> make_plan(const Snapshot& snapshot, const Window& window, const Params& params) {
  return make_plan_with(fast_means(), snapshot, window, params);
}

Result<Plan> make_plan_with(const Means& means, const Snapshot& snapshot, const Window& window, const Params& params) {
  BSP_CHECK_OK(validate(params));
  BSP_TRY(const Columns columns, columns_of(snapshot));
  BSP_CHECK_OK(validate_together(snapshot, window));

  const Metrics& metrics = window.metrics();
  const Cadence& now = window.cadence();
  const Case c{snapshot,    columns,  metrics, params,           now.alpha, now.alpha_next,
               now.elapsed, now.owed, &means,  window.seconds(), now.wave};
  PmList list = make_pm_list(c);
  Plan plan{.heuristic = params.heuristic, .superstep = window.completed(), .now = now};
  plan.stays = std::move(list.stays);
  strategy_for(params.heuristic).plan(c, list.entries, plan);
  const std::uint64_t judged_over = try_with_one_rank(c, plan);
  if (params.heuristic == Heuristic::kAuto && !plan.rules.takes_back) start_from_measured(c.seconds, plan.forecast);
  if (columns.priced) say_prices(snapshot, columns, plan);
  plan.pm_list = std::move(list.entries);
  sort_by_rank(plan.stays, snapshot.ranks.size());
  const Cadence wanted = std::exchange(plan.next, {});
  plan.next = next_cadence(now, plan.superstep, params.migrates && !plan.moves.empty(), params);
  if (params.early_calls || params.heuristic == Heuristic::kAuto) set_pace(window, wanted.alpha, params, plan.next);
  const bool takes_back = plan.rules.takes_back || now.wave.until.value > 0;
  if (takes_back && !(wanted.wave.before > 0)) cool_down(plan.superstep, wanted.alpha, plan.next);
  if (judged_over > 0) plan.next.alpha = plan.next.alpha_next = judged_over;
  plan.next.owed = wanted.owed;
  plan.next.wave = wanted.wave;

  check(plan.moves.size() + plan.stays.size() == snapshot.ranks.size(), "every rank moves or stays");
  check(plan.moves.empty() || !(plan.objective.after > plan.objective.before),
        "a plan that moves does not raise its objective");
  return plan;
}

}  // namespace bsp::decide
