#include "operator/advise/options.h"

#include <algorithm>
#include <charconv>
#include <format>

#include "operator/arguments.h"
#include "operator/decide/strategy.h"

namespace bsp::advise {
namespace {

constexpr const char* kUsage =
    "usage: bsp-operator advise -f RECORD.jsonl [OPTION…]   decide the calls of a recorded run again\n"
    "  -f RECORD.jsonl      from local run --record, controller --record-directory or simulate; - for the standard "
    "input\n"
    "  --heuristic H[,H…]   Top, Percentage, AutoMig, MigCube, MigHull, Bottleneck, Auto, or all (default: as "
    "recorded)\n"
    "  --x X --horizon Window|Superstep|Job --min-gain G --cooldown N --max-moves N\n"
    "                       parameters of a decision, instead of the recorded ones\n"
    "  --alpha N --d D --omega N --delta X --beta X\n"
    "                       parameters of when to decide: the whole run's supersteps are put into windows of their "
    "own\n"
    "  -o text|json         (default: text)\n"
    "  --brief              no explanations\n";

std::unexpected<Error> wrong(const std::string& what) {
  return fail(ErrorCode::kInvalid, std::format("{}\n{}", what, kUsage));
}

template <class Number>
Result<void> read_number(const Args& args, const std::string& name, std::optional<Number>& into) {
  if (!args.has(name)) return {};
  const std::string text = args.get(name);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    return wrong(
        std::format("--{}: \"{}\" is not a {}", name, text, std::is_integral_v<Number> ? "whole number" : "number"));
  into = value;
  return {};
}

Result<void> read_horizon(const Args& args, std::optional<decide::Horizon>& into) {
  if (!args.has("horizon")) return {};
  const std::string text = args.get("horizon");
  into = enum_named<decide::Horizon>(text);
  if (!into) return wrong(std::format("--horizon: \"{}\" is none of Window, Superstep, Job", text));
  return {};
}

Result<void> read_heuristics(std::string text, std::vector<decide::Heuristic>& into) {
  if (text == "all") {
    for (const decide::Strategy& s : decide::strategies()) into.push_back(s.heuristic);
    return {};
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto strategy = decide::strategy_named(text.substr(begin, end - begin));
    if (!strategy) return wrong(std::format("--heuristic: {}, or all", strategy.error().message));
    into.push_back((*strategy)->heuristic);
    begin = end + 1;
  }
  return {};
}

// What decide says of a field, of the flag that gave it.
std::string in_flags(std::string message) {
  for (const auto& [field, flag] : {std::pair{"rescheduling: alpha0", "--alpha"},
                                    {"rescheduling: d0", "--d"},
                                    {"rescheduling: min_gain", "--min-gain"},
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
  return p;
}

Result<Options> parse_options(std::span<const std::string> words) {
  BSP_TRY(const Args args, parse_arguments(words, {kUsage,
                                                   {{"-f", "filename"},
                                                    {"-o", "output"},
                                                    {"--heuristic", "heuristic"},
                                                    {"--alpha", "alpha"},
                                                    {"--d", "d"},
                                                    {"--omega", "omega"},
                                                    {"--delta", "delta"},
                                                    {"--beta", "beta"},
                                                    {"--x", "x"},
                                                    {"--horizon", "horizon"},
                                                    {"--min-gain", "min-gain"},
                                                    {"--cooldown", "cooldown"},
                                                    {"--max-moves", "max-moves"}},
                                                   {{"--brief", "brief"}}}));
  if (!args.words.empty()) return wrong(std::format("what is {} for?", args.words[0]));
  Options o{.file = args.get("filename"), .heuristics = {}, .changes = {}, .json = false, .brief = args.has("brief")};
  if (o.file.empty()) return wrong("-f is missing: which record?");
  const std::string output = args.get("output", "text");
  if (output != "text" && output != "json") return wrong(std::format("-o: \"{}\" is neither text nor json", output));
  o.json = output == "json";
  if (args.has("heuristic")) BSP_CHECK_OK(read_heuristics(args.get("heuristic"), o.heuristics));
  Changes& c = o.changes;
  BSP_CHECK_OK(read_number(args, "alpha", c.alpha0));
  BSP_CHECK_OK(read_number(args, "omega", c.omega));
  BSP_CHECK_OK(read_number(args, "cooldown", c.cooldown));
  BSP_CHECK_OK(read_number(args, "max-moves", c.max_moves));
  BSP_CHECK_OK(read_number(args, "d", c.d0));
  BSP_CHECK_OK(read_number(args, "delta", c.delta));
  BSP_CHECK_OK(read_number(args, "beta", c.beta));
  BSP_CHECK_OK(read_number(args, "x", c.x));
  BSP_CHECK_OK(read_number(args, "min-gain", c.min_gain));
  BSP_CHECK_OK(read_horizon(args, c.horizon));
  if (auto good = decide::validate(changed({}, c)); !good) return wrong(in_flags(good.error().message));
  return o;
}

}  // namespace bsp::advise
