#include "sim/reproduce/runs.h"

#include <algorithm>
#include <format>
#include <nlohmann/json.hpp>

#include "operator/decide/model/strategy.h"
#include "sim/applications/calibration.h"
#include "sim/applications/fractal.h"
#include "sim/applications/lattice_boltzmann.h"
#include "sim/applications/lu.h"
#include "sim/applications/platforms.h"
#include "sim/applications/smith_waterman.h"
#include "sim/grid5000/program.h"
#include "sim/scenario.h"
#include "sim/yardsticks/yardsticks.h"

namespace bsp::sim {
namespace {

bool regular(const RunKey& key) { return key.application == "lattice-boltzmann" || key.application == "fractal"; }

Result<std::unique_ptr<Workload>> workload_of(const RunKey& key) {
  const auto size = static_cast<std::uint64_t>(key.size);
  if (!key.mapping.empty())
    return make(LatticeBoltzmann{.ranks = key.processes,
                                 .supersteps = size,
                                 .instructions = grid5000::kInstructions * key.processes,
                                 .program_bytes = 0,
                                 .border_bytes = grid5000::kBytes});
  if (key.application == "lattice-boltzmann")
    return make(LatticeBoltzmann{.ranks = key.processes, .supersteps = size, .program_bytes = 0});
  if (key.application == "smith-waterman") return make(SmithWaterman{.ranks = key.processes, .program_bytes = 0});
  if (key.application == "lu")
    return make(Lu{.ranks = key.processes,
                   .order = size,
                   .update_instructions = calibration::kLuUpdate,
                   .memory_bytes = calibration::kLuMemory});
  if (key.application == "fractal") return make(Fractal{.ranks = key.processes, .domain = key.size});
  return fail(
      ErrorCode::kInvalid,
      std::format("unknown application '{}': use lattice-boltzmann, smith-waterman, lu or fractal", key.application));
}

double call_factor(const RunKey& key) {
  if (!key.mapping.empty()) return calibration::kCallOnGrid5000;
  if (key.application == "smith-waterman") return calibration::kCallOfSmithWaterman;
  if (key.application == "lu") return calibration::kCallOfLu;
  if (key.application == "fractal") return calibration::kCallOfFractal;
  return calibration::kCallOfLatticeBoltzmann;
}

// The last superstep's time without the slowest node's computation.
double rest_of_last(const Outcome& outcome, const decide::Platform& nodes, const Workload& workload) {
  Demand demand;
  workload.demand(workload.supersteps(), demand);
  std::vector<double> seconds(nodes.processors.size(), 0);
  for (std::uint32_t i = 0; i < workload.ranks(); ++i) {
    const decide::Processor& p = nodes.processor(outcome.mapping[i]);
    seconds[outcome.mapping[i].value] += demand.instructions[i] / p.available();
  }
  return outcome.supersteps.back() - std::ranges::max(seconds);
}

decide::Params params_of(const RunKey& key) {
  decide::Params params{.alpha0 = key.alpha,
                        .d0 = calibration::kD0,
                        .omega = static_cast<std::uint64_t>(calibration::kOmega),
                        .delta = calibration::kDelta,
                        .beta = calibration::kBeta,
                        .x = calibration::kX,
                        .horizon = key.choice.horizon};
  if (const auto strategy = decide::strategy_named(key.heuristic)) params.heuristic = (*strategy)->heuristic;
  return params;
}

RunResult result_of(const RunKey& key) {
  grid5000::Program program{
      .mapping = decide::mapping_named(key.mapping).value(),
      .supersteps = static_cast<std::uint32_t>(key.size),
      .heuristic = key.heuristic == "MigHull" ? grid5000::Heuristic::kMigHull : grid5000::Heuristic::kMigCube};
  RunResult result{.alone = grid5000::run(program).seconds};
  program.alpha = static_cast<std::uint32_t>(key.alpha);
  result.deciding = grid5000::run(program).seconds;
  program.migrates = true;
  const grid5000::Ran ran = grid5000::run(program);
  result.migrating = ran.seconds;
  for (const auto& call : ran.calls) result.calls.push_back({call.superstep, call.moves});
  const auto site = [](grid5000::Machine m) { return std::string(grid5000::kSiteOf[m.site].name); };
  for (const auto& moved : ran.moves)
    result.moves.push_back({moved.process + 1, std::format("{}-{}", site(moved.to), moved.to.number + 1),
                            site(moved.from), site(moved.to), moved.superstep});
  return result;
}

RunResult result_of(const Scenarios& scenarios, const decide::Platform& nodes, const Workload& workload) {
  RunResult result{.alone = scenarios.alone.makespan,
                   .deciding = scenarios.deciding.makespan,
                   .migrating = scenarios.migrating.makespan,
                   .rest_alone = rest_of_last(scenarios.alone, nodes, workload),
                   .rest_migrating = rest_of_last(scenarios.migrating, nodes, workload)};
  for (const Call& call : scenarios.migrating.calls)
    result.calls.push_back({call.superstep.value, static_cast<std::uint32_t>(call.plan.moves.size())});
  for (const Moved& moved : scenarios.migrating.moves) {
    const auto set_name = [&](ProcessorId p) { return nodes.sets[nodes.processor(p).set.value].name; };
    result.moves.push_back({moved.rank.value + 1, nodes.processor(moved.to).name, set_name(moved.from),
                            set_name(moved.to), moved.superstep.value});
  }
  return result;
}

}  // namespace

std::string RunKey::case_name() const {
  std::string what;
  if (application == "lattice-boltzmann") {
    what = std::format("{} processes, {:g} supersteps", processes, size);
  } else if (application == "smith-waterman") {
    what = std::format("order {}", processes);
  } else {
    what = std::format("{} {:g}, {} processes", application == "lu" ? "order" : "domain", size, processes);
  }
  if (!mapping.empty()) what = std::format("{}, {}", mapping, what);
  return application + " " + what;
}

std::string RunKey::name() const { return std::format("{}, {}, α₀ = {}", case_name(), heuristic, alpha); }

Result<void> validate(const RunKey& key) {
  const bool yardstick = std::ranges::find(kYardsticks, key.heuristic) != std::end(kYardsticks);
  if (!yardstick)
    if (const auto known = decide::strategy_named(key.heuristic); !known)
      return fail(ErrorCode::kInvalid, known.error().message + ", or of GreedyLB, RefineLB and Nothing");
  if (key.alpha < 1) return fail(ErrorCode::kInvalid, "alpha must be at least 1 superstep");
  if (key.processes < 1 || key.processes > 100'000) return fail(ErrorCode::kInvalid, "processes must be 1 to 100000");
  if (key.application == "smith-waterman" && key.processes < 2)
    return fail(ErrorCode::kInvalid, "smith-waterman needs order 2 or more");
  if (key.application == "fractal" && !(key.size >= 1 && key.size <= 1000))
    return fail(ErrorCode::kInvalid,
                "the fractal application's domain must be 1 to 1000 pixels, the edge of its image");
  if (!(key.size >= 1 && key.size <= 1e6))
    return fail(ErrorCode::kInvalid, "supersteps, order or domain must be 1 to 1000000");
  if (!key.mapping.empty()) BSP_CHECK_OK(decide::mapping_named(key.mapping).transform([](decide::Mapping) {}));
  if (!key.mapping.empty() && key.processes != grid5000::kProcesses)
    return fail(ErrorCode::kInvalid, std::format("on Grid'5000 there are {} processes", grid5000::kProcesses));
  if (key.as_published && (key.mapping.empty() || (key.heuristic != "MigCube" && key.heuristic != "MigHull")))
    return fail(ErrorCode::kInvalid, "only MigCube and MigHull on Grid'5000 can run as published");
  return workload_of(key).transform([](const std::unique_ptr<Workload>&) {});
}

Result<RunResult> run(const RunKey& key) {
  BSP_CHECK_OK(validate(key));
  if (key.as_published) return result_of(key);
  BSP_TRY(const std::unique_ptr<Workload> workload, workload_of(key));
  Platform platform = key.mapping.empty() ? five_sets(key.choice) : grid5000_platform(key.choice);
  platform.call.factor = call_factor(key);
  if (key.application == "fractal") {
    platform.barrier.per_outsider *= calibration::kBarriersOfFractal;
    platform.barrier.per_trunk *= calibration::kBarriersOfFractal;
  }
  Scenario scenario{.platform = platform, .workload = *workload, .params = params_of(key), .memoise = regular(key)};
  if (key.mapping.empty()) {
    BSP_TRY(scenario.mapping, initial_mapping(platform, decide::Mapping::kContiguous, key.processes));
  } else {
    BSP_TRY(const decide::Mapping mapping, decide::mapping_named(key.mapping));
    scenario.mapping = grid5000_mapping(mapping);
  }
  scenario.planner = yardstick_named(key.heuristic);
  if (key.mapping.empty() && key.application == "lattice-boltzmann" && key.heuristic == "Top")
    for (const std::uint32_t process : calibration::kPrintedOrder) scenario.leave_first.push_back(RankId{process - 1});
  BSP_TRY(const decide::Platform nodes, decision_platform(platform));
  BSP_TRY(const Scenarios scenarios, simulate_all(scenario));
  return result_of(scenarios, nodes, *workload);
}

double expected_cost(const RunKey& key) {
  if (key.as_published) return 0;
  double supersteps = key.size;
  if (key.application == "smith-waterman") supersteps = 2.0 * key.processes;
  if (key.application == "lu") supersteps = 2 * key.size;
  if (key.application == "fractal") supersteps = 2000 / key.size;
  return supersteps * key.processes * (regular(key) ? 0.02 : 1);
}

std::string to_json(const RunResult& result) {
  nlohmann::json calls = nlohmann::json::array(), moves = nlohmann::json::array();
  for (const RunCall& call : result.calls) calls.push_back({call.superstep, call.moves});
  for (const RunMove& move : result.moves)
    moves.push_back({move.process, move.node, move.from, move.to, move.superstep});
  return nlohmann::json{{"i", result.alone},
                        {"ii", result.deciding},
                        {"iii", result.migrating},
                        {"rest_i", result.rest_alone},
                        {"rest_iii", result.rest_migrating},
                        {"calls", calls},
                        {"moves", moves}}
      .dump();
}

Result<RunResult> run_result_from_json(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    RunResult result{.alone = json.at("i"),
                     .deciding = json.at("ii"),
                     .migrating = json.at("iii"),
                     .rest_alone = json.at("rest_i"),
                     .rest_migrating = json.at("rest_iii")};
    for (const auto& call : json.at("calls")) result.calls.push_back({call.at(0), call.at(1)});
    for (const auto& move : json.at("moves"))
      result.moves.push_back({move.at(0), move.at(1), move.at(2), move.at(3), move.at(4)});
    return result;
  } catch (const nlohmann::json::exception& e) {
    return fail(ErrorCode::kFailed, std::format("invalid result from a worker: {}", e.what()));
  }
}

}  // namespace bsp::sim
