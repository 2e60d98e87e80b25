#include "operator/advise/show.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <map>
#include <nlohmann/json.hpp>

#include "operator/cli/table.h"
#include "operator/decide/explain.h"
#include "operator/decide/model/strategy.h"

namespace bsp::advise {
namespace {

using nlohmann::json;

constexpr std::size_t kMostRows = 40;

std::string seconds(double s) {
  return s != 0 && std::abs(s) < 1 ? std::format("{:.3g} ms", s * 1e3) : std::format("{:.4g} s", s);
}

std::string forecast_text(const decide::Forecast& f) {
  std::string text = std::format("{} -> {}", seconds(f.before), seconds(f.after));
  if (f.before > 0) text += std::format(" ({:+.1f} %)", (f.after / f.before - 1) * 100);
  return text;
}

std::string_view name_of(decide::Heuristic heuristic) { return decide::strategy_for(heuristic).name; }

std::string head_of(const Advice& advice) {
  const record::Call& c = advice.call;
  std::string head = std::format("{}  {}{}{}", advice.where, c.name_space, c.name_space.empty() ? "" : "/", c.job);
  if (c.attempt > 0) head += std::format(", attempt {}", c.attempt + 1);
  if (!c.time.empty()) head += "  " + c.time;
  return head;
}

// The target of each rank that a plan moves.
std::map<std::uint32_t, std::string> targets_of(const decide::Plan& plan, const decide::Snapshot& snapshot) {
  std::map<std::uint32_t, std::string> targets;
  for (const decide::Move& move : plan.moves) targets[move.rank.value] = decide::place_name(snapshot, move.to);
  return targets;
}

std::string fate(const decide::Plan& plan, const std::map<std::uint32_t, std::string>& targets, std::uint32_t rank) {
  if (const auto to = targets.find(rank); to != targets.end()) return to->second;
  for (const decide::Stay& stay : plan.stays)
    if (stay.rank.value == rank) return std::format("stays: {}", decide::to_string(stay.reason));
  return "";
}

std::string side_by_side(const Advice& advice, const decide::Plan& other) {
  const record::Call& c = advice.call;
  const auto done = targets_of(c.plan, c.snapshot), would = targets_of(other, c.snapshot);
  std::map<std::uint32_t, std::string> either = done;
  either.insert(would.begin(), would.end());
  if (either.empty()) return "  both leave every rank where it is\n";
  const bool moved = c.params.migrates;
  cli::Table table({"RANK", "IS ON", std::format("{} {}", name_of(c.plan.heuristic), moved ? "DECIDED" : "ADVISED"),
                    std::format("{} WOULD HAVE", name_of(other.heuristic))});
  std::size_t rows = 0;
  for (const auto& [rank, to] : either) {
    if (++rows > kMostRows) break;
    table.add({std::to_string(rank), decide::place_name(c.snapshot, c.snapshot.ranks[rank].processor),
               fate(c.plan, done, rank), fate(other, would, rank)});
  }
  std::string text = table.text("  ");
  if (either.size() > kMostRows) text += std::format("  … and {} more\n", either.size() - kMostRows);
  return text;
}

std::string explanation(const decide::Plan& plan, const decide::Snapshot& snapshot) {
  std::string text;
  for (const std::string& line : decide::explain(plan, snapshot)) text += std::format("    {}\n", line);
  return text;
}

// One answer beside the recorded plan.
std::string answer_text(const Advice& advice, const Answer& answer, bool brief) {
  const record::Call& c = advice.call;
  std::string text;
  for (const decide::Plan& plan : answer.plans) {
    if (answer.as_recorded && answer.difference.empty()) {
      text += "  decided again: the same plan, bit for bit\n";
    } else {
      text += std::format("  would have: {}\n", decide::headline(plan, c.snapshot));
      if (answer.as_recorded)
        text += std::format(
            "  NOT the same plan under the recorded parameters: {}; another version of bsp-operator made it, or the "
            "line was edited\n",
            answer.difference);
      if (plan.superstep == c.plan.superstep)
        text += std::format("  superstep predicted: {}, and would have been {}\n", forecast_text(c.plan.forecast),
                            forecast_text(plan.forecast)) +
                side_by_side(advice, plan);
    }
    if (!brief) text += explanation(plan, c.snapshot);
  }
  if (answer.plans.empty()) text += "  would have: no call until then\n";
  return text;
}

// Several answers, a row each.
std::string comparison(const Advice& advice) {
  const record::Call& c = advice.call;
  std::vector<std::string> columns{"HEURISTIC", "AFTER", "MOVES", "SUPERSTEP PREDICTED", "COSTS ONCE", "RANKS"};
  const bool priced = std::ranges::any_of(c.snapshot.platform.processors, [](const auto& p) { return p.price > 0; });
  if (priced) columns.insert(columns.end() - 1, "PRICE AN HOUR");
  cli::Table table(columns);
  const auto add = [&](const std::string& name, const decide::Plan& plan) {
    std::string ranks;
    std::size_t shown = 0;
    for (const decide::Move& move : plan.moves) {
      if (++shown > 8) break;
      ranks += std::format("{}{} -> {}", ranks.empty() ? "" : ", ", move.rank.value,
                           c.snapshot.platform.sets[move.to_set.value].name);
    }
    if (plan.moves.size() > 8) ranks += std::format(", … {} more", plan.moves.size() - 8);
    std::vector<std::string> row{name,
                                 std::to_string(plan.superstep.value),
                                 std::to_string(plan.moves.size()),
                                 forecast_text(plan.forecast),
                                 plan.moves.empty() ? "" : seconds(cost_of(plan)),
                                 ranks};
    if (priced) row.insert(row.end() - 1, std::format("{:.4g} -> {:.4g}", plan.spending.before, plan.spending.after));
    table.add(row);
  };
  add(std::format("{} (recorded)", name_of(c.plan.heuristic)), c.plan);
  for (const Answer& answer : advice.answers)
    for (const decide::Plan& plan : answer.plans) add(std::string(name_of(plan.heuristic)), plan);
  std::string text = table.text("  ");
  for (const Answer& answer : advice.answers)
    if (!answer.difference.empty())
      text += std::format(
          "  NOT the same plan under the recorded parameters: {}; another version of bsp-operator made it, or the line "
          "was edited\n",
          answer.difference);
  return text;
}

// What each of Auto's rules contributed; null of another heuristic.
json rules_json(const decide::Plan& plan) {
  const decide::Rules& r = plan.rules;
  if (plan.heuristic != decide::Heuristic::kAuto) return nullptr;
  json j = {{"superstepsToCome", r.supersteps},
            {"leastGain", r.least_gain},
            {"noise", r.noise},
            {"unsteady", r.unsteady},
            {"owedSeconds", r.owed},
            {"budgetSeconds", nullptr},
            {"waves", r.waves},
            {"replayed", r.replayed},
            {"takesBack", r.takes_back},
            {"tries", r.tries},
            {"explores", r.explores}};
  if (std::isfinite(r.budget)) j["budgetSeconds"] = r.budget;
  return j;
}

// null: no price is known.
json spending_json(const decide::Spending& s) {
  if (s == decide::Spending{}) return nullptr;
  return {{"beforePerHour", s.before}, {"afterPerHour", s.after}, {"limitSeconds", s.limit}};
}

json plan_json(const decide::Plan& plan, const decide::Snapshot& snapshot) {
  json moves = json::array(), stays = json::array();
  for (const decide::Move& m : plan.moves)
    moves.push_back({{"rank", m.rank.value},
                     {"from", decide::place_name(snapshot, m.from)},
                     {"to", decide::place_name(snapshot, m.to)},
                     {"gainSuperstepSeconds", m.gain_superstep},
                     {"gainWindowSeconds", m.gain_window},
                     {"costSeconds", m.cost}});
  for (const decide::Stay& s : plan.stays)
    stays.push_back({{"rank", s.rank.value},
                     {"reason", decide::to_string(s.reason)},
                     {"message", decide::describe(s, plan, snapshot)}});
  json potentials = json::array(), levels = json::array();
  for (const decide::PmEntry& e : plan.pm_list)
    potentials.push_back({{"rank", e.rank.value},
                          {"target", snapshot.platform.sets[e.target.value].name},
                          {"compSeconds", e.comp},
                          {"commSeconds", e.comm},
                          {"memSeconds", e.mem},
                          {"pmSeconds", e.pm}});
  for (const decide::Level& l : plan.levels)
    levels.push_back({{"level", l.level},
                      {"timeSeconds", l.time},
                      {"commSeconds", l.comm},
                      {"memSeconds", l.mem},
                      {"pfSeconds", l.pf},
                      {"chosen", l.level == plan.chosen_level}});
  return {{"superstep", plan.superstep.value},
          {"heuristic", name_of(plan.heuristic)},
          {"objective",
           {{"name", plan.objective.name},
            {"beforeSeconds", plan.objective.before},
            {"afterSeconds", plan.objective.after}}},
          {"forecast", {{"beforeSeconds", plan.forecast.before}, {"afterSeconds", plan.forecast.after}}},
          {"costSeconds", cost_of(plan)},
          {"spending", spending_json(plan.spending)},
          {"alpha", plan.now.alpha},
          {"alphaNext", plan.next.alpha},
          {"d", plan.now.d},
          {"dNext", plan.next.d},
          {"rules", rules_json(plan)},
          {"pmList", std::move(potentials)},
          {"levels", std::move(levels)},
          {"moves", std::move(moves)},
          {"stays", std::move(stays)}};
}

}  // namespace

std::string text_of(const Advice& advice, bool brief) {
  const record::Call& c = advice.call;
  std::string text = std::format("{}\n", head_of(advice));
  if (advice.answers.size() > 1) return text + comparison(advice) + "\n";
  text += std::format("  {}: {}\n", c.params.migrates ? "decided" : "advised", decide::headline(c.plan, c.snapshot));
  for (const Answer& answer : advice.answers) text += answer_text(advice, answer, brief);
  return text + "\n";
}

std::string text_of(const Totals& totals) {
  cli::Table table({"HEURISTIC", "CALLS", "THAT MOVE", "MOVES", "SUPERSTEP PREDICTED", "COSTS ONCE"});
  for (const Total& t : totals.all())
    table.add({t.name, std::to_string(t.calls), std::to_string(t.moving), std::to_string(t.moves),
               std::format("{:+.1f} %", t.mean_change() * 100), t.moving ? seconds(t.mean_cost()) : ""});
  return table.text() +
         "Means over the calls. Each call is judged where the run had its ranks at the time, by what the run measured: "
         "this compares\n"
         "decisions, and is no forecast of a whole run (bsp-operator simulate makes those).\n";
}

json json_of(const Advice& advice) {
  const record::Call& c = advice.call;
  json answers = json::array();
  for (const Answer& answer : advice.answers) {
    json plans = json::array();
    for (const decide::Plan& plan : answer.plans) plans.push_back(plan_json(plan, c.snapshot));
    json one = {{"heuristic", name_of(answer.params.heuristic)},
                {"asRecorded", answer.as_recorded},
                {"plans", std::move(plans)}};
    if (answer.as_recorded) one["same"] = answer.difference.empty();
    if (!answer.difference.empty()) one["difference"] = answer.difference;
    answers.push_back(std::move(one));
  }
  return {{"where", advice.where},
          {"namespace", c.name_space},
          {"job", c.job},
          {"uid", c.uid},
          {"attempt", c.attempt},
          {"time", c.time},
          {"recorded", plan_json(c.plan, c.snapshot)},
          {"answers", std::move(answers)}};
}

json json_of(const Totals& totals) {
  json list = json::array();
  for (const Total& t : totals.all())
    list.push_back({{"heuristic", t.name},
                    {"calls", t.calls},
                    {"callsThatMove", t.moving},
                    {"moves", t.moves},
                    {"meanChangeOfSuperstep", t.mean_change()},
                    {"meanCostSeconds", t.mean_cost()}});
  return list;
}

}  // namespace bsp::advise
