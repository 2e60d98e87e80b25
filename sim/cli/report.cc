#include "sim/cli/report.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <format>
#include <vector>

#include "base/core/counted.h"
#include "operator/decide/explain.h"
#include "operator/decide/model/strategy.h"

namespace bsp::sim {
namespace {

using nlohmann::json;

std::string against(double makespan, double alone) {
  return alone > 0 ? std::format("{:+.1f} %", (makespan / alone - 1) * 100) : "";
}

std::string sets_text(const Platform& platform) {
  std::string text;
  for (const Set& set : platform.sets)
    text += std::format("{}{} ({})", text.empty() ? "" : ", ", set.name, counted(set.nodes.size(), "node"));
  return text;
}

// The number of ranks in each Set: "fast 2, slow 2".
std::string places_text(const Platform& platform, const decide::Platform& nodes,
                        const std::vector<ProcessorId>& mapping) {
  std::vector<std::size_t> count(platform.sets.size());
  for (const ProcessorId p : mapping) ++count[nodes.processor(p).set.value];
  std::string text;
  for (std::size_t j = 0; j < count.size(); ++j)
    if (count[j] > 0) text += std::format("{}{} {}", text.empty() ? "" : ", ", platform.sets[j].name, count[j]);
  return text;
}

decide::Platform nodes_of(const Platform& platform) {
  auto nodes = decision_platform(platform);
  check(nodes.has_value(), "a simulated platform is valid");
  return std::move(*nodes);
}

json json_of(const decide::Plan& plan, const decide::Snapshot& snapshot) {
  json moves = json::array(), stays = json::array(), potentials = json::array(), levels = json::array();
  const auto set_name = [&](SetId j) { return snapshot.platform.sets[j.value].name; };
  for (const decide::Move& move : plan.moves)
    moves.push_back({{"rank", move.rank.value},
                     {"fromSet", set_name(move.from_set)},
                     {"from", snapshot.platform.processor(move.from).name},
                     {"toSet", set_name(move.to_set)},
                     {"to", snapshot.platform.processor(move.to).name},
                     {"gainSuperstepSeconds", move.gain_superstep},
                     {"gainWindowSeconds", move.gain_window},
                     {"costSeconds", move.cost}});
  for (const decide::Stay& stay : plan.stays)
    stays.push_back({{"rank", stay.rank.value},
                     {"reason", decide::to_string(stay.reason)},
                     {"message", decide::describe(stay, plan, snapshot)}});
  for (const decide::PmEntry& entry : plan.pm_list)
    potentials.push_back({{"rank", entry.rank.value},
                          {"targetSet", set_name(entry.target)},
                          {"comp", entry.comp},
                          {"comm", entry.comm},
                          {"mem", entry.mem},
                          {"pm", entry.pm}});
  for (const decide::Level& level : plan.levels) {
    levels.push_back({{"level", level.level},
                      {"timeSeconds", level.time},
                      {"commSeconds", level.comm},
                      {"memSeconds", level.mem},
                      {"pfSeconds", level.pf}});
    if (level.level > 0) levels.back()["rank"] = level.rank.value;
  }
  return {{"superstep", plan.superstep.value},
          {"heuristic", decide::strategy_for(plan.heuristic).name},
          {"alpha", plan.now.alpha},
          {"alphaNext", plan.next.alpha},
          {"d", plan.now.d},
          {"dNext", plan.next.d},
          {"objective",
           {{"name", plan.objective.name},
            {"beforeSeconds", plan.objective.before},
            {"afterSeconds", plan.objective.after}}},
          {"forecast", {{"beforeSeconds", plan.forecast.before}, {"afterSeconds", plan.forecast.after}}},
          {"potentials", potentials},
          {"levels", levels},
          {"chosenLevel", plan.chosen_level},
          {"moves", moves},
          {"stays", stays}};
}

json json_of(const Outcome& outcome) {
  json calls = json::array();
  for (const Call& call : outcome.calls) {
    json one = json_of(call.plan, call.snapshot);
    one["atSeconds"] = call.at;
    calls.push_back(std::move(one));
  }
  return {{"makespanSeconds", outcome.makespan},
          {"cost", outcome.cost},
          {"callSeconds", outcome.call_seconds},
          {"migrationSeconds", outcome.migration_seconds},
          {"messages", outcome.messages},
          {"moves", outcome.moves.size()},
          {"calls", calls}};
}

}  // namespace

std::string title(const Workload& workload) {
  const std::string name = workload.name();
  const bool has_supersteps = name.find("superstep") != std::string::npos;
  return std::format("{}, {}", name, counted(workload.ranks(), "rank")) +
         (has_supersteps ? "" : ", " + counted(workload.supersteps(), "superstep"));
}

std::string report_text(const Platform& platform, const Workload& workload, const Scenarios& s, std::size_t rows) {
  const decide::Platform nodes = nodes_of(platform);
  std::string text = std::format("{}, {} messages; on {}\n", title(workload), s.alone.messages, sets_text(platform));
  text += std::format("starts on {}\n\n", places_text(platform, nodes, s.alone.mapping));
  text += std::format("{:<30}{:>14}  {:>11}{:>8}{:>8}\n", "scenario", "makespan", "against (i)", "calls", "moves");
  for (const auto& [name, outcome] :
       {std::pair{"(i)   the application alone", &s.alone}, std::pair{"(ii)  deciding, not moving", &s.deciding},
        std::pair{"(iii) with moves", &s.migrating}})
    text += std::format("{:<30}{:>12.2f} s  {:>11}{:>8}{:>8}\n", name, outcome->makespan,
                        outcome == &s.alone ? "" : against(outcome->makespan, s.alone.makespan), outcome->calls_made,
                        outcome->moves.size());
  text += std::format(
      "\n(ii) pays {:.3f} s for its calls; (iii) {:.3f} s for calls and {:.3f} s for migrations, and ends on {}\n",
      s.deciding.call_seconds, s.migrating.call_seconds, s.migrating.migration_seconds,
      places_text(platform, nodes, s.migrating.mapping));
  if (s.alone.cost > 0)
    text += std::format("the ranks' slots cost {:.4g} in (i), {:.4g} in (ii) and {:.4g} in (iii) ({:+.1f} %)\n",
                        s.alone.cost, s.deciding.cost, s.migrating.cost, (s.migrating.cost / s.alone.cost - 1) * 100);
  if (s.migrating.calls.empty()) text += "\nno rescheduling call: the run ends before the first one\n";
  for (const Call& call : s.migrating.calls) {
    text += std::format("\nat {:.2f} s, ", call.at);
    for (const std::string& line : decide::explain(call.plan, call.snapshot, rows)) text += line + "\n";
  }
  return text;
}

json report_json(const Platform& platform, const Workload& workload, const Scenarios& s) {
  json sets = json::array();
  for (const Set& set : platform.sets) sets.push_back({{"name", set.name}, {"nodes", set.nodes.size()}});
  return {{"application", workload.name()},
          {"ranks", workload.ranks()},
          {"supersteps", workload.supersteps()},
          {"sets", sets},
          {"alone", json_of(s.alone)},
          {"deciding", json_of(s.deciding)},
          {"migrating", json_of(s.migrating)},
          {"overhead", s.alone.makespan > 0 ? s.deciding.makespan / s.alone.makespan - 1 : 0},
          {"gain", s.alone.makespan > 0 ? 1 - s.migrating.makespan / s.alone.makespan : 0}};
}

}  // namespace bsp::sim
