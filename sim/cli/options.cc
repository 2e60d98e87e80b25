#include "sim/cli/options.h"

#include <format>
#include <limits>

#include "operator/cli/command.h"
#include "operator/cli/prices.h"
#include "operator/decide/model/strategy.h"

namespace bsp::sim {

Result<Options> parse_options(std::span<const std::string> words, const std::string& applications) {
  Options o;
  bool all = false;
  cli::Command command("bsp-operator simulate",
                       "Simulate a job on pools that needn't exist: without the scheduler, with "
                       "decisions only, and with moves.");
  command.text("-f,--file", "JOB.yaml", "a BSPJob, as kubectl apply takes it; - reads standard input", o.job)
      .required();
  command.text("--platform", "PLATFORM.xml", "the Sets, as a SimGrid platform", o.platform_file);
  command.text("--pools", "NAME=NODESx[SLOTSx]CPU,…",
               "the Sets, as local run takes them, for example slow=3x0.25,fast=2x0.6", o.pools);
  command.option("--prices", "SET=PRICE,…", "what a node of a Set costs an hour, for spec.objective",
                 cli::prices(o.prices, "slow=1,fast=3"));
  command
      .text("--application", "NAME[:KEY=VALUE,…]", "what the job computes and sends; see the list below", o.application)
      .required();
  command.option("--heuristic", "NAME", "heuristic, instead of the manifest's",
                 [&o](const std::string& name) -> std::string {
                   const auto strategy = decide::strategy_named(name);
                   if (strategy) o.heuristic = (*strategy)->heuristic;
                   return strategy ? "" : strategy.error().message;
                 });
  command.option("--mig", "SECONDS", "cost of a migration besides its bytes, instead of the platform's",
                 cli::number(o.mig_seconds, 0.0, 1e6));
  command.option("--call", "SECONDS", "cost of a rescheduling call, instead of the platform's",
                 cli::number(o.call_seconds, 0.0, 1e6));
  command.text("--timeline", "FILE.svg", "draw the run with moves", o.timeline);
  command.text("--record", "FILE.jsonl", "record every call of the run with moves, for bsp-operator advise", o.record);
  command.flag("--all", "print every row of every decision", all);
  command.option("-o,--output", "FORMAT", "text or json (default: text)",
                 cli::one_of(o.json, {{"text", false}, {"json", true}}));
  command.footer("\n" + applications);
  BSP_CHECK_OK(command.parse(words));
  if (o.platform_file.empty() == o.pools.empty()) return command.wrong("give either --platform or --pools");
  if (all) o.rows = std::numeric_limits<std::size_t>::max();
  return o;
}

}  // namespace bsp::sim
