#include "sim/cli/options.h"

#include <algorithm>
#include <charconv>
#include <format>
#include <limits>

#include "operator/arguments.h"
#include "operator/decide/strategy.h"

namespace bsp::sim {
namespace {

constexpr const char* kUsage =
    "usage: bsp-operator simulate -f JOB.yaml (--platform PLATFORM.xml | --pools slow=3x0.25,fast=2x0.6)\n"
    "           --application NAME[:key=value,…]     what the job computes and sends: lattice-boltzmann, lu, …\n"
    "           [--heuristic NAME]                   instead of the manifest's\n"
    "           [--mig SECONDS] [--call SECONDS]     what a migration costs beside its bytes; what a rescheduling call "
    "costs\n"
    "           [--timeline FILE.svg]                picture of the run with moves\n"
    "           [--record FILE.jsonl]                every call of that run, for `bsp-operator advise`\n"
    "           [--all] [-o text|json]               every row of every decision; format\n";

Result<std::optional<double>> seconds(const Args& args, const std::string& name) {
  if (!args.has(name)) return std::nullopt;
  const std::string text = args.get(name);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc{} || read.ptr != end || !(value >= 0 && value <= 1e6))
    return fail(ErrorCode::kInvalid, std::format("--{}: \"{}\" is no number of seconds from 0 to 1000000", name, text));
  return value;
}

}  // namespace

Result<Options> parse_options(std::span<const std::string> words, const std::string& applications) {
  const Syntax syntax{.usage = kUsage,
                      .valued = {{"-f", "file"},
                                 {"--platform", "platform"},
                                 {"--pools", "pools"},
                                 {"--application", "application"},
                                 {"--heuristic", "heuristic"},
                                 {"--mig", "mig"},
                                 {"--call", "call"},
                                 {"--timeline", "timeline"},
                                 {"--record", "record"},
                                 {"-o", "output"}},
                      .flags = {{"--all", "all"}},
                      .more_help = applications};
  BSP_TRY(const Args args, parse_arguments(words, syntax));
  const auto wrong = [](const std::string& what) { return fail(ErrorCode::kInvalid, what + "\n" + kUsage); };
  if (!args.words.empty()) return wrong(std::format("what is \"{}\"?", args.words.front()));
  for (const auto& [name, value] : args.options)
    if (value.empty()) return wrong(std::format("--{}: its value is empty", name));
  if (!args.has("file")) return wrong("-f: name the job's manifest");
  if (args.has("platform") == args.has("pools")) return wrong("give either --platform or --pools");
  if (!args.has("application"))
    return wrong("--application: say what the job computes and sends, for example lattice-boltzmann");
  Options options{.job = args.get("file"),
                  .platform_file = args.get("platform"),
                  .pools = args.get("pools"),
                  .application = args.get("application"),
                  .timeline = args.get("timeline"),
                  .record = args.get("record")};
  if (args.has("heuristic")) {
    BSP_TRY(const decide::Strategy* strategy, decide::strategy_named(args.get("heuristic")));
    options.heuristic = strategy->heuristic;
  }
  BSP_TRY(options.mig_seconds, seconds(args, "mig"));
  BSP_TRY(options.call_seconds, seconds(args, "call"));
  const std::string output = args.get("output", "text");
  if (output != "text" && output != "json") return wrong(std::format("-o: \"{}\" is neither text nor json", output));
  options.json = output == "json";
  if (args.has("all")) options.rows = std::numeric_limits<std::size_t>::max();
  return options;
}

}  // namespace bsp::sim
