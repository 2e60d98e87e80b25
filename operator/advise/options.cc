#include "operator/advise/options.h"

#include <format>
#include <ranges>

#include "operator/cli/command.h"
#include "operator/decide/model/strategy.h"

namespace bsp::advise {
namespace {

cli::Setter heuristics(std::vector<decide::Heuristic>& into) {
  return [&into](const std::string& text) -> std::string {
    into.clear();
    if (text == "all") {
      for (const decide::Strategy& s : decide::strategies()) into.push_back(s.heuristic);
      return "";
    }
    for (const auto part : std::views::split(text, ',')) {
      const auto strategy = decide::strategy_named(std::string_view(part));
      if (!strategy) return strategy.error().message + ", or all";
      into.push_back((*strategy)->heuristic);
    }
    return text.empty() ? "must not be empty" : "";
  };
}

cli::Setter horizon(std::optional<decide::Horizon>& into) {
  return [&into](const std::string& text) -> std::string {
    into = enum_named<decide::Horizon>(text);
    return into ? "" : "must be Window or Superstep";
  };
}

// A deadline is the recorded job's own.
cli::Setter objective(std::optional<decide::ObjectiveType>& into) {
  return [&into](const std::string& text) -> std::string {
    into = enum_named<decide::ObjectiveType>(text);
    return into && into != decide::ObjectiveType::kDeadline ? "" : "must be Time or Price";
  };
}

// Replaces the field in a message of `decide` by its option.
std::string in_flags(std::string message) {
  for (const auto& [field, flag] : {std::pair{"rescheduling: alpha0", "--alpha"},
                                    {"rescheduling: d0", "--d"},
                                    {"rescheduling: min_gain", "--min-gain"},
                                    {"rescheduling: max_slowdown", "--max-slowdown"},
                                    {"rescheduling: ", "--"}})
    if (message.starts_with(field)) return flag + message.substr(std::string_view(field).size());
  return message;
}

}  // namespace

decide::Params changed(decide::Params p, const Changes& c) {
  p.alpha0 = c.alpha0.value_or(p.alpha0);
  p.omega = c.omega.value_or(p.omega);
  p.cooldown = c.cooldown.value_or(p.cooldown);
  p.max_moves = c.max_moves.value_or(p.max_moves);
  p.d0 = c.d0.value_or(p.d0);
  p.delta = c.delta.value_or(p.delta);
  p.beta = c.beta.value_or(p.beta);
  p.x = c.x.value_or(p.x);
  p.min_gain = c.min_gain.value_or(p.min_gain);
  p.horizon = c.horizon.value_or(p.horizon);
  p.objective = c.objective.value_or(p.objective);
  p.max_slowdown = c.max_slowdown.value_or(p.max_slowdown);
  return p;
}

Result<Options> parse_options(std::span<const std::string> words) {
  Options o;
  Changes& c = o.changes;
  cli::Command command("bsp-operator advise",
                       "Decide the rescheduling calls of a recorded run again, with other parameters if given.");
  command
      .text("-f,--filename", "RECORD.jsonl",
            "from local run --record, controller --record-directory or simulate --record; - for standard input", o.file)
      .required();
  command.option("--heuristic", "H[,H…]",
                 "Top, Percentage, AutoMig, MigCube, MigHull, Bottleneck, Auto, or all (default: as recorded)",
                 heuristics(o.heuristics));
  command.option("--x", "X", "Percentage: move ranks with a PM of at least X times the highest (default: as recorded)",
                 cli::number(c.x));
  command.option("--horizon", "H", "what a gain is counted over: Window or Superstep (default: as recorded)",
                 horizon(c.horizon));
  command.option("--objective", "O", "Auto: Time or Price, by the recorded prices (default: as recorded)",
                 objective(c.objective));
  command.option("--max-slowdown", "S", "Price: how much longer the job may take, ratio (default: as recorded)",
                 cli::number(c.max_slowdown));
  command.option("--min-gain", "G", "least relative gain that is worth a move (default: as recorded)",
                 cli::number(c.min_gain));
  command.option("--cooldown", "N", "supersteps for which a moved rank stays (default: as recorded)",
                 cli::number(c.cooldown));
  command.option("--max-moves", "N", "limit of moves per call (default: as recorded)", cli::number(c.max_moves));
  const std::string own = "; the whole run's supersteps are then put into new windows";
  command.option("--alpha", "N", "first alpha, supersteps between calls" + own, cli::number(c.alpha0));
  command.option("--d", "D", "first D, tolerated imbalance" + own, cli::number(c.d0));
  command.option("--omega", "N", "calls without a move before D grows" + own, cli::number(c.omega));
  command.option("--delta", "X", "tolerated error of predicted instructions" + own, cli::number(c.delta));
  command.option("--beta", "X", "tolerated error of predicted bytes" + own, cli::number(c.beta));
  command.option("-o,--output", "FORMAT", "text or json (default: text)",
                 cli::one_of(o.json, {{"text", false}, {"json", true}}));
  command.flag("--brief", "omit the explanations", o.brief);
  BSP_CHECK_OK(command.parse(words));
  if (auto good = decide::validate(changed({}, c)); !good) return command.wrong(in_flags(good.error().message));
  return o;
}

}  // namespace bsp::advise
