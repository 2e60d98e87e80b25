#include "operator/advise/options.h"

#include <format>
#include <ranges>

#include "operator/cli/command.h"
#include "operator/cli/prices.h"
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

// Sets `member` to the number.
template <class Number>
cli::Setter number(std::vector<Change>& into, Number decide::Params::* member) {
  return [&into, member](const std::string& text) {
    std::optional<Number> value;
    std::string wrong = cli::number(value)(text);
    if (value) into.push_back([member, number = *value](decide::Params& p) { p.*member = number; });
    return wrong;
  };
}

// Sets `member` to one of the choices.
template <class Choice>
cli::Setter choice(std::vector<Change>& into, Choice decide::Params::* member,
                   std::vector<std::pair<std::string, Choice>> choices) {
  return [&into, member, choices = std::move(choices)](const std::string& text) {
    Choice value{};
    std::string wrong = cli::one_of(value, choices)(text);
    if (wrong.empty()) into.push_back([member, value](decide::Params& p) { p.*member = value; });
    return wrong;
  };
}

std::string all_heuristics() {
  std::string names;
  for (const std::string_view name : names_of(Of<decide::Heuristic>{})) names += std::format("{}, ", name);
  return names + "or all";
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

decide::Params changed(decide::Params recorded, const std::vector<Change>& changes) {
  for (const Change& change : changes) change(recorded);
  return recorded;
}

Result<Options> parse_options(std::span<const std::string> words) {
  Options o;
  using P = decide::Params;
  std::vector<Change>& c = o.changes;
  cli::Command command("bsp-operator advise",
                       "Decide the rescheduling calls of a recorded run again, with other parameters if given.");
  command
      .text("-f,--filename", "RECORD.jsonl",
            "from local run --record, controller --record-directory or simulate --record; - for standard input", o.file)
      .required();
  command.option("--heuristic", "H[,H…]", all_heuristics() + " (default: as recorded)", heuristics(o.heuristics));
  command.option("--x", "X", "Percentage: move ranks with a PM of at least X times the highest (default: as recorded)",
                 number(c, &P::x));
  command.option(
      "--horizon", "H", "what a gain is counted over: Window or Superstep (default: as recorded)",
      choice(c, &P::horizon, {{"Window", decide::Horizon::kWindow}, {"Superstep", decide::Horizon::kSuperstep}}));
  // A deadline is the recorded job's own.
  command.option(
      "--objective", "O", "Auto: Time or Price, by the recorded prices or --prices (default: as recorded)",
      choice(c, &P::objective, {{"Time", decide::ObjectiveType::kTime}, {"Price", decide::ObjectiveType::kPrice}}));
  command.option("--prices", "SET=PRICE,…", "what a slot of a Set costs an hour (default: as recorded)",
                 cli::prices(o.prices, "slow=1,fast=3"));
  command.option("--max-slowdown", "S", "Price: how much longer the job may take, ratio (default: as recorded)",
                 number(c, &P::max_slowdown));
  command.option("--min-gain", "G", "least relative gain that is worth a move (default: as recorded)",
                 number(c, &P::min_gain));
  command.option("--cooldown", "N", "supersteps for which a moved rank stays (default: as recorded)",
                 number(c, &P::cooldown));
  command.option("--max-moves", "N", "limit of moves per call (default: as recorded)", number(c, &P::max_moves));
  const std::string own = "; the whole run's supersteps are then put into new windows";
  command.option("--alpha", "N", "first alpha, supersteps between calls" + own, number(c, &P::alpha0));
  command.option("--d", "D", "first D, tolerated imbalance" + own, number(c, &P::d0));
  command.option("--omega", "N", "calls without a move before D grows" + own, number(c, &P::omega));
  command.option("--delta", "X", "tolerated error of predicted instructions" + own, number(c, &P::delta));
  command.option("--beta", "X", "tolerated error of predicted bytes" + own, number(c, &P::beta));
  command.option("-o,--output", "FORMAT", "text or json (default: text)",
                 cli::one_of(o.json, {{"text", false}, {"json", true}}));
  command.flag("--brief", "omit the explanations", o.brief);
  BSP_CHECK_OK(command.parse(words));
  if (auto good = decide::validate(changed({}, c)); !good) return command.wrong(in_flags(good.error().message));
  return o;
}

}  // namespace bsp::advise
