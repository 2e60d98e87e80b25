#include "operator/advise/advice.h"

#include <algorithm>
#include <format>

#include "operator/decide/model/strategy.h"

namespace bsp::advise {
double cost_of(const decide::Plan& plan) {
  double most = 0;
  for (const decide::Move& move : plan.moves) most = std::max(most, move.cost);
  return most;
}

namespace {

Result<void> set_prices(const std::map<std::string, double>& prices, decide::Platform& platform) {
  for (const auto& [name, price] : prices) {
    const auto set = std::ranges::find(platform.sets, name, &decide::Set::name);
    if (set == platform.sets.end())
      return fail(ErrorCode::kInvalid, std::format("--prices: the job has no Set {}", name));
    const auto j = static_cast<std::uint32_t>(set - platform.sets.begin());
    for (decide::Processor& p : platform.processors)
      if (p.set.value == j) p.price = price;
  }
  return {};
}

}  // namespace

Result<Advice> Adviser::advise(record::Call call, std::string where) {
  Advice advice{.where = std::move(where), .call = std::move(call), .rerun = false, .answers = {}};
  const bool as_priced = options_.prices.empty();
  BSP_CHECK_OK(set_prices(options_.prices, advice.call.snapshot.platform));
  const record::Call& c = advice.call;
  const decide::Params wanted = changed(c.params, options_.changes);
  advice.rerun = !record::keeps_cadence(c.params, wanted);
  Run& run = runs_[record::run_of(c)];
  if (advice.rerun) BSP_CHECK_OK(record::check_order(run.last, c));
  run.last = c.plan.superstep;
  std::vector<decide::Heuristic> heuristics = options_.heuristics;
  if (heuristics.empty()) heuristics.push_back(c.params.heuristic);
  for (std::size_t h = 0; h < heuristics.size(); ++h) {
    Answer answer{.params = wanted, .plans = {}, .as_recorded = false, .difference = {}};
    answer.params.heuristic = heuristics[h];
    if (advice.rerun) {
      if (run.reruns.size() <= h) run.reruns.emplace_back(answer.params);
      BSP_TRY(answer.plans, run.reruns[h].add(c));
    } else {
      BSP_TRY(decide::Plan plan, record::replay(c, answer.params));
      answer.as_recorded = as_priced && c.params == answer.params;
      if (answer.as_recorded) answer.difference = record::difference(c.plan, plan);
      answer.plans.push_back(std::move(plan));
    }
    advice.answers.push_back(std::move(answer));
  }
  return advice;
}

void Total::add(const decide::Plan& plan) {
  ++calls;
  moving += !plan.moves.empty();
  moves += plan.moves.size();
  cost += cost_of(plan);
  if (!(plan.forecast.before > 0)) return;
  ++forecasts;
  relative += plan.forecast.after / plan.forecast.before;
}

void Totals::add(const Advice& advice) {
  if (all_.empty()) all_.push_back({.name = "as recorded"});
  all_[0].add(advice.call.plan);
  for (const Answer& answer : advice.answers) {
    const std::string name(decide::strategy_for(answer.params.heuristic).name);
    auto total = std::find_if(all_.begin() + 1, all_.end(), [&](const Total& t) { return t.name == name; });
    if (total == all_.end()) total = all_.insert(all_.end(), {.name = name});
    for (const decide::Plan& plan : answer.plans) total->add(plan);
  }
}

}  // namespace bsp::advise
