#include "operator/decide/explain.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <map>
#include <set>
#include <string_view>

#include "base/core/counted.h"
#include "operator/decide/auto/explore.h"
#include "operator/decide/model/strategy.h"
#include "operator/decide/model/text.h"

namespace bsp::decide {
namespace {

const std::string& set_name(const Snapshot& snapshot, SetId j) { return snapshot.platform.sets[j.value].name; }

std::string percent(double before, double after) {
  if (!(before > 0)) return "";
  return std::format(" ({:+.1f} %)", (after / before - 1) * 100);
}

std::string rank_to(RankId rank, const std::string& set) { return std::format("rank {} → {}", rank.value, set); }

void append(std::vector<std::string>& lines, const std::vector<std::string>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

void cut(std::vector<std::string>& lines, std::size_t shown, std::size_t all) {
  if (all > shown) lines.push_back(std::format("  … and {} more", all - shown));
}

std::string_view assumed_mark(const Move& move) {
  if (move.cost_assumed && move.cpu_assumed) return " (speed and cost assumed, not measured)";
  if (move.cost_assumed) return " (cost assumed, not measured)";
  if (move.cpu_assumed) return " (speed assumed, not measured)";
  return "";
}

// Only then the supersteps to come have a limit (price.h).
bool goes_by_price(const Plan& plan) { return plan.spending.limit > 0; }

// What Auto weighed by.
std::vector<std::string> explain_rules(const Plan& plan) {
  const Rules& r = plan.rules;
  if (plan.heuristic != Heuristic::kAuto || !(r.supersteps > 0)) return {};
  std::string line =
      std::format("weighed over {} to come; a gain counts from {:.2g} % of a superstep",
                  counted(static_cast<std::uint64_t>(std::llround(r.supersteps)), "superstep"), r.least_gain * 100);
  if (r.replayed) line += ", whatever the work, because every move is to a faster processor";
  if (r.noise > 0) line += std::format(" (standard error of the work {:.2g} %)", r.noise * 100);
  if (r.unsteady > r.least_gain)
    line += std::format("; between these nodes from {:.2g} %, as their speeds change for a while", r.unsteady * 100);
  if (std::isfinite(r.budget))
    line += std::format("; besides what staying costs, a wave may cost {}, owed {}{}", seconds(std::max(0.0, r.budget)),
                        seconds(r.owed), goes_by_price(plan) ? ", at the price of a second where the job began" : "");
  if (r.waves > 1) line += std::format("; the first of {} waves", r.waves);
  return {std::move(line)};
}

// The objective before and after: time, or money.
std::string change_of(const Plan& plan) {
  const Objective& o = plan.objective;
  const double rate = plan.spending.before / 3600;
  const bool by_cost = o.name == "cost to the end";
  if (!by_cost || !(rate > 0))  // without a rate all slots cost the same
    return std::format("{} {} → {}{}", by_cost ? "time to the end" : o.name, seconds(o.before), seconds(o.after),
                       percent(o.before, o.after));
  return std::format("{} {:.3g} → {:.3g}{}", o.name, o.before * rate, o.after * rate, percent(o.before, o.after));
}

}  // namespace

std::string place_name(const Snapshot& snapshot, ProcessorId p) {
  const Processor& processor = snapshot.platform.processor(p);
  return std::format("{}/{}", set_name(snapshot, processor.set), processor.name);
}

std::string describe(const Move& move, const Snapshot& snapshot) {
  const bool longer = move.gain_superstep < 0, pays = move.gain_window > 0;
  const bool finds_out = snapshot.platform.sets[move.to_set.value].untried;
  // Those that the plan counts, up to the next call or the end of the job.
  const double counted = pays ? std::round((move.gain_window + move.cost) / move.gain_superstep) : 0;
  return std::format("rank {}: {} → {}, its superstep {} {}, {}{}, costs {} once{}", move.rank.value,
                     place_name(snapshot, move.from), place_name(snapshot, move.to),
                     seconds(std::abs(move.gain_superstep)), longer ? "longer" : "shorter",
                     pays        ? seconds(move.gain_window)
                     : finds_out ? std::format("shows how fast {} is", set_name(snapshot, move.to_set))
                                 : "pays only together with the others",
                     pays ? std::format(" gained over {:.0f} superstep{}", counted, counted == 1 ? "" : "s") : "",
                     seconds(move.cost), assumed_mark(move));
}

std::string describe(const Stay& stay, const Plan& plan, const Snapshot& snapshot) {
  const std::string& set = set_name(snapshot, stay.target);
  const auto because = [&](std::string text) { return std::format("{}: {}", to_string(stay.reason), text); };
  switch (stay.reason) {
    case Reason::kBestSetIsOwn:
      return because(std::format("no Set has a higher PM than its own, {}", set));
    case Reason::kNotCandidate:
    case Reason::kGainBelowCost:
      return because(strategy_for(plan.heuristic).why(stay, set, plan));
    case Reason::kGainBelowMinimum:
      if (plan.heuristic == Heuristic::kAuto && stay.value <= stay.limit)
        return because("what it and others would gain is no more than the noise of what was measured");
      return because(
          std::format("{} is not low enough, the minimum gain asks for {}", seconds(stay.value), seconds(stay.limit)));
    case Reason::kNoCapacity:
      if (plan.heuristic == Heuristic::kAuto && !plan.moves.empty())
        return because(std::format("its slot in {} is not free before the next wave", set));
      return because(std::format("no free slot in {}", set));
    case Reason::kCordoned:
      return because(std::format("{} is cordoned", set));
    case Reason::kTargetFailed:
      return because(std::format("its last target in {} did not come up", set));
    case Reason::kCpuFeaturesDiffer:
      return because(std::format("the CPUs of {} lack {}, which its program may use", set,
                                 snapshot.ranks[stay.rank.value].cpu_lacks));
    case Reason::kCooldown:
      return because(std::format("moved {} {} ago, may move again after {}", stay.value,
                                 stay.value == 1 ? "superstep" : "supersteps", stay.limit));
    case Reason::kNotMigratable:
      return because(snapshot.ranks[stay.rank.value].not_migratable);
    case Reason::kMoveLimit:
      if (plan.moves.empty())
        return because("the limit of moves per call excludes it, and the moves within the limit do not pay");
      return because("the limit of moves per call is used up by higher PMs");
    case Reason::kTriedFirst:
      if (plan.moves.empty())
        return because(std::format("nothing is known of the speed of {}, and it is tried after a longer window", set));
      return because(std::format("rank {} tries {} first, as nothing is known of its speed", plan.moves[0].rank.value,
                                 set_name(snapshot, plan.moves[0].to_set)));
  }
  check(false, "every reason is described");
  return {};
}

std::string headline(const Plan& plan, const Snapshot& snapshot) {
  const std::string call = std::format("call after superstep {}: {}", plan.superstep.value, to_string(plan.heuristic));
  if (plan.moves.empty()) return std::format("{} moves no rank", call);
  if (plan.rules.takes_back)
    return std::format("{} takes the last wave back, since which a superstep takes {} instead of {}: {} of {}", call,
                       seconds(plan.forecast.before), seconds(plan.forecast.after), plan.moves.size(),
                       counted(snapshot.ranks.size(), "rank"));
  if (plan.rules.tries) {
    const Move& trial = plan.moves.front();
    const std::string hope =
        plan.rules.explores ? std::format("it is {} times as fast as assumed", Exploring::kHoped) : "all goes well";
    return std::format("{} tries {}, of whose speed nothing is known, with rank {}; if {}, {}", call,
                       set_name(snapshot, trial.to_set), trial.rank.value, hope, change_of(plan));
  }
  return std::format("{} moves {} of {}, {}", call, plan.moves.size(), counted(snapshot.ranks.size(), "rank"),
                     change_of(plan));
}

std::vector<std::string> explain_pm_list(const Plan& plan, const Snapshot& snapshot, std::size_t most) {
  if (plan.pm_list.empty()) return {"PM list: empty"};
  std::vector<std::string> lines{
      std::format("PM list (ms)            {:>12}{:>12}{:>12}{:>12}", "Comp", "+ Comm", "- Mem", "= PM")};
  const std::size_t shown = std::min(most, plan.pm_list.size());
  for (std::size_t q = 0; q < shown; ++q) {
    const PmEntry& e = plan.pm_list[q];
    lines.push_back(std::format("  {:<22}{:>12.3f}{:>12.3f}{:>12.3f}{:>12.3f}",
                                rank_to(e.rank, set_name(snapshot, e.target)), e.comp * 1e3, e.comm * 1e3, e.mem * 1e3,
                                e.pm * 1e3));
  }
  cut(lines, shown, plan.pm_list.size());
  return lines;
}

std::vector<std::string> explain_levels(const Plan& plan, const Snapshot& snapshot, std::size_t most) {
  if (plan.levels.empty()) return {};
  std::vector<std::string> lines{
      std::format("levels (ms)             {:>12}{:>12}{:>12}{:>12}", "Time", "+ Comm", "+ Mem", "= pf")};
  const auto add = [&](const Level& l) {
    std::string name = "0 now";
    if (l.level > 0) {
      const auto e = std::ranges::find(plan.pm_list, l.rank, &PmEntry::rank);
      name = std::format("{} {}", l.level, rank_to(l.rank, set_name(snapshot, e->target)));
    }
    lines.push_back(std::format("{} {:<22}{:>12.3f}{:>12.3f}{:>12.3f}{:>12.3f}",
                                l.level == plan.chosen_level ? '*' : ' ', name, l.time * 1e3, l.comm * 1e3, l.mem * 1e3,
                                l.pf * 1e3));
  };
  const std::size_t shown = std::min(most, plan.levels.size());
  for (std::size_t l = 0; l < shown; ++l) add(plan.levels[l]);
  cut(lines, shown, plan.levels.size());
  if (plan.chosen_level >= shown) add(plan.levels[plan.chosen_level]);
  return lines;
}

std::vector<std::string> explain_moves(const Plan& plan, const Snapshot& snapshot, std::size_t most) {
  std::vector<std::string> lines;
  const std::size_t shown = std::min(most, plan.moves.size());
  for (std::size_t m = 0; m < shown; ++m) lines.push_back(std::format("move {}", describe(plan.moves[m], snapshot)));
  cut(lines, shown, plan.moves.size());
  return lines;
}

std::vector<std::string> explain_stays(const Plan& plan, const Snapshot& snapshot, std::size_t most) {
  std::vector<std::string> lines;
  std::map<Reason, std::size_t> rest;
  for (std::size_t s = 0; s < plan.stays.size(); ++s) {
    const Stay& stay = plan.stays[s];
    if (s < most) {
      lines.push_back(std::format("stay rank {}: {}", stay.rank.value, describe(stay, plan, snapshot)));
    } else {
      ++rest[stay.reason];
    }
  }
  for (const auto& [reason, ranks] : rest)
    lines.push_back(std::format("stay {}: {}", counted(ranks, "more rank"), to_string(reason)));
  return lines;
}

std::string explain_cadence(const Plan& plan) {
  return std::format("next call after superstep {}: α {} → {}, D {:.3g} → {:.3g}, {} without a move",
                     plan.next.k.value + plan.next.alpha - 1, plan.now.alpha, plan.next.alpha, plan.now.d, plan.next.d,
                     counted(plan.next.gamma, "call"));
}

namespace {

// Nodes without a price, where the plan goes by price.
std::string unpriced_of(const Plan& plan, const Snapshot& snapshot) {
  if (!goes_by_price(plan)) return "";
  std::set<std::string_view> nodes, unknown;
  for (const Processor& p : snapshot.platform.processors) {
    nodes.insert(p.name);
    if (!(p.price > 0)) unknown.insert(p.name);
  }
  return unknown.empty() ? "" : unpriced_text(unknown.size(), nodes.size());
}

// Whether the deadline will be met, as far as it is foreseen.
std::string deadline_text(const Plan& plan, const Snapshot& snapshot) {
  const double left = snapshot.time_left, needed = plan.rules.supersteps * plan.forecast.after;
  if (left < 0) return std::format("the deadline passed {} ago", seconds(-left));
  if (left == 0 || needed <= left) return "";
  return std::format("the deadline will be missed by about {}", seconds(needed - left));
}

}  // namespace

std::string unpriced_text(std::size_t unknown, std::size_t nodes) {
  if (unknown == nodes) return "no node has a price, so that the cheapest job is the shortest";
  return std::format("{} of {} {} no price and {} as the dearest", unknown, counted(nodes, "node"),
                     unknown == 1 ? "has" : "have", unknown == 1 ? "counts" : "count");
}

std::vector<std::string> explain_spending(const Plan& plan, const Snapshot& snapshot) {
  const Spending& s = plan.spending;
  std::vector<std::string> lines;
  if (s.before > 0) {
    std::string line = std::format("the ranks' slots cost {:.4g} an hour", s.before);
    if (!plan.moves.empty())
      line += std::format(", {:.4g} after this wave{}; a superstep costs {:.3g} → {:.3g}{}", s.after,
                          percent(s.before, s.after), plan.forecast.before * s.before / 3600,
                          plan.forecast.after * s.after / 3600,
                          percent(plan.forecast.before * s.before, plan.forecast.after * s.after));
    lines.push_back(std::move(line));
  }
  if (goes_by_price(plan))  // both as the model counts: what it has no term for is the same in each mapping
    lines.push_back(std::format("the supersteps to come may take {}, and take {} where the ranks are", seconds(s.limit),
                                seconds(plan.objective.before)));
  for (std::string text : {unpriced_of(plan, snapshot), deadline_text(plan, snapshot)})
    if (!text.empty()) lines.push_back(std::move(text));
  return lines;
}

std::vector<std::string> explain(const Plan& plan, const Snapshot& snapshot, std::size_t most) {
  std::vector<std::string> lines{headline(plan, snapshot)};
  append(lines, explain_pm_list(plan, snapshot, most));
  append(lines, explain_levels(plan, snapshot, most));
  append(lines, explain_moves(plan, snapshot, most));
  append(lines, explain_stays(plan, snapshot, most));
  append(lines, explain_rules(plan));
  append(lines, explain_spending(plan, snapshot));
  lines.push_back(std::format("superstep predicted {} → {}{}", seconds(plan.forecast.before),
                              seconds(plan.forecast.after), percent(plan.forecast.before, plan.forecast.after)));
  lines.push_back(explain_cadence(plan));
  return lines;
}

}  // namespace bsp::decide
