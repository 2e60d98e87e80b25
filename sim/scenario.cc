#include "sim/scenario.h"

#include <algorithm>
#include <format>

#include "operator/decide/auto/partners.h"
#include "operator/decide/make_plan.h"
#include "operator/decide/model/links.h"
#include "sim/heard.h"
#include "sim/routes.h"
#include "sim/supersteps.h"

namespace bsp::sim {
namespace {

class Run {
 public:
  Run(const Scenario& scenario, decide::Platform platform)
      : s_(scenario),
        params_(scenario.params),
        ranks_(scenario.workload.ranks()),
        heard_(ranks_, platform.sets.size()),
        links_(platform.sets.size(), platform.sets.size()) {
    params_.migrates = s_.mode == Mode::kMigrating;
    snapshot_.platform = std::move(platform);
    snapshot_.ranks.resize(ranks_);
    for (std::uint32_t i = 0; i < ranks_; ++i) snapshot_.ranks[i].processor = s_.mapping[i];
    out_.mapping = s_.mapping;
  }

  Result<Outcome> whole() {
    BSP_TRY(barrier_of_, outsiders_barrier(s_.platform));
    BSP_TRY(Supersteps supersteps, Supersteps::start(s_.platform, snapshot_.platform, s_.memoise));
    const std::uint64_t last = s_.workload.supersteps();
    out_.supersteps.reserve(std::min<std::uint64_t>(last, 1 << 20));
    std::uint64_t t = 0;
    Demand demand;
    while (t < last) {
      Stretch stretch{.first = {t + 1},
                      .begin = out_.makespan,
                      .mapping = out_.mapping,
                      .compute_seconds = std::vector<double>(ranks_, 0)};
      decide::Window window(state_, params_, ranks_, snapshot_.platform.sets.size());
      while (t < last && !window.call_due()) {
        s_.workload.demand(++t, demand);
        BSP_TRY(const Simulated* done, supersteps.run(demand, out_.mapping));
        const double barrier = barrier_seconds();
        out_.messages += demand.messages.size();
        out_.supersteps.push_back(done->seconds + barrier);
        spend(done->seconds + barrier, rate(out_.mapping));
        for (std::uint32_t i = 0; i < ranks_; ++i) stretch.compute_seconds[i] += done->compute_seconds[i];
        if (s_.mode == Mode::kAlone) continue;
        heard_.add(demand, out_.makespan);
        decide::MeasuredSuperstep seen = measured(Superstep{t}, demand, *done, barrier);
        learn_links(seen);
        if (s_.on_call) window_supersteps_.push_back(seen);
        window.add(std::move(seen));
      }
      stretch.last = {t};
      stretch.end = out_.makespan;
      out_.stretches.push_back(std::move(stretch));
      if (t == last || s_.mode == Mode::kAlone) break;
      BSP_CHECK_OK(call(std::move(window)));
    }
    out_.simulated = supersteps.simulated();
    return std::move(out_);
  }

 private:
  // [a, j]: what each process in Set j adds to the barrier if process 1 is in Set a.
  static Result<decide::Grid<double>> outsiders_barrier(const Platform& platform) {
    const std::size_t sets = platform.sets.size();
    decide::Grid<double> seconds(sets, sets, platform.barrier.per_outsider);
    for (std::size_t a = 0; a < sets; ++a) seconds[a, a] = 0;
    if (platform.barrier.per_trunk == 0 || !platform.file.empty()) return seconds;
    BSP_TRY(const Routes routes, find_routes(platform));
    for (std::size_t a = 0; a < sets; ++a)
      for (std::size_t j = 0; j < sets; ++j)
        seconds[a, j] += platform.barrier.per_trunk * static_cast<double>(routes.trunks[a, j].size());
    return seconds;
  }

  [[nodiscard]] double barrier_seconds() const {
    const auto set_of = [this](ProcessorId p) { return snapshot_.platform.processor(p).set.value; };
    double seconds = s_.platform.barrier.constant;
    for (const ProcessorId p : out_.mapping) seconds += barrier_of_[set_of(out_.mapping[0]), set_of(p)];
    return seconds;
  }

  static decide::MeasuredSuperstep measured(Superstep t, const Demand& demand, const Simulated& done, double barrier) {
    const double slowest = done.compute_seconds.empty() ? 0 : std::ranges::max(done.compute_seconds);
    return {.superstep = t,
            .instructions = demand.instructions,
            .compute_seconds = done.compute_seconds,
            .communication_seconds = done.seconds - slowest + barrier,
            .recv_bytes = done.recv_bytes,
            .recv_seconds = done.recv_seconds};
  }

  // What the operator learns of links that ranks share (observe/calibration.h): T is known here.
  void learn_links(const decide::MeasuredSuperstep& seen) {
    if (!decide::Heard::is_for(ranks_, links_.rows())) return;
    std::vector<SetId> own;
    for (const ProcessorId p : out_.mapping) own.push_back(snapshot_.platform.processor(p).set);
    decide::learn(links_, seen, own, snapshot_.platform);
  }

  Result<void> call(decide::Window window) {
    const Superstep after = window.completed();
    for (std::uint32_t i = 0; i < ranks_; ++i)
      snapshot_.ranks[i].memory_bytes = s_.platform.image_copies * s_.workload.memory_bytes({i}, after.value);
    heard_.report(snapshot_.ranks);
    snapshot_.platform.capacity = decide::capacities(links_);
    if (s_.deadline > 0) snapshot_.time_left = s_.deadline - out_.makespan;
    BSP_TRY(decide::Plan plan,
            s_.planner ? s_.planner(snapshot_, window, params_) : decide::make_plan(snapshot_, window, params_));
    if (plan.moves.size() == 1) replace_by_first(plan.moves[0]);
    if (s_.on_call) s_.on_call({snapshot_, state_, window_supersteps_, window, params_, plan});
    window_supersteps_.clear();
    if (s_.keep_calls) out_.calls.push_back({after, out_.makespan, snapshot_, plan});
    ++out_.calls_made;
    const double cost = s_.platform.call.seconds(ranks_);
    out_.call_seconds += cost;
    spend(cost, rate(out_.mapping));
    if (s_.mode == Mode::kMigrating) apply(plan);
    state_ = std::move(window).close(plan.next);
    return {};
  }

  void replace_by_first(decide::Move& move) const {
    for (const RankId rank : s_.leave_first) {
      if (rank.value >= ranks_) continue;
      const ProcessorId at = snapshot_.ranks[rank.value].processor;
      if (snapshot_.platform.processor(at).set != move.from_set) continue;
      move.rank = rank;
      move.from = at;
      return;
    }
  }

  void apply(const decide::Plan& plan) {
    double longest = 0;  // migrations overlap
    const double before = rate(out_.mapping);
    for (const decide::Move& move : plan.moves) {
      longest = std::max(longest, move.cost);
      out_.mapping[move.rank.value] = move.to;
      snapshot_.ranks[move.rank.value].processor = move.to;
      snapshot_.ranks[move.rank.value].last_move = plan.superstep;
      snapshot_.ranks[move.rank.value].left.push_back(move.from);
      out_.moves.push_back({move.rank, move.from, move.to, plan.superstep});
    }
    if (!plan.moves.empty()) {
      if (s_.platform.move_repeats) longest = std::max(longest, out_.supersteps.back());
      heard_.begin_epoch();
    }
    out_.migration_seconds += longest;
    spend(longest, std::max(before, rate(out_.mapping)));
  }

  // Of all ranks' slots, an hour.
  [[nodiscard]] double rate(const std::vector<ProcessorId>& on) const {
    double sum = 0;
    for (const ProcessorId p : on) sum += snapshot_.platform.processor(p).price;
    return sum;
  }
  void spend(double seconds, double rate) {
    out_.makespan += seconds;
    out_.cost += seconds * rate / 3600;
  }

  const Scenario& s_;
  decide::Params params_;
  std::uint32_t ranks_;
  decide::Snapshot snapshot_;                                 // current
  decide::State state_;                                       // at the window's start
  std::vector<decide::MeasuredSuperstep> window_supersteps_;  // only if there is an on_call
  decide::Grid<double> barrier_of_;                           // see outsiders_barrier()
  HeardOf heard_;
  decide::Grid<decide::LinkSeen> links_;  // from Set to Set
  Outcome out_;
};

// Joins all stretches into one: without calls nothing separates them.
void join(std::vector<Stretch>& stretches) {
  for (std::size_t k = 1; k < stretches.size(); ++k) {
    stretches[0].last = stretches[k].last;
    stretches[0].end += stretches[k].end - stretches[k].begin;
    for (std::size_t i = 0; i < stretches[0].compute_seconds.size(); ++i)
      stretches[0].compute_seconds[i] += stretches[k].compute_seconds[i];
  }
  stretches.resize(std::min<std::size_t>(stretches.size(), 1));
}

}  // namespace

Result<Outcome> simulate(const Scenario& scenario) {
  BSP_CHECK_OK(decide::validate(scenario.params));
  BSP_TRY(decide::Platform platform, decision_platform(scenario.platform));
  if (scenario.mapping.size() != scenario.workload.ranks())
    return fail(ErrorCode::kInvalid, std::format("the mapping places {} ranks, but {} has {}", scenario.mapping.size(),
                                                 scenario.workload.name(), scenario.workload.ranks()));
  for (const ProcessorId p : scenario.mapping)
    if (p.value >= platform.processors.size())
      return fail(ErrorCode::kInvalid,
                  std::format("the mapping has processor {}, but there are {}", p.value, platform.processors.size()));
  return Run(scenario, std::move(platform)).whole();
}

Result<Scenarios> simulate_all(Scenario scenario) {
  Scenarios out;
  scenario.mode = Mode::kMigrating;
  BSP_TRY(out.migrating, simulate(scenario));
  out.deciding = out.migrating;
  if (!out.migrating.moves.empty()) {
    scenario.mode = Mode::kDeciding;
    scenario.on_call = {};
    BSP_TRY(out.deciding, simulate(scenario));
  }
  out.alone = out.deciding;  // it has the same supersteps and mapping
  out.alone.calls.clear();
  out.alone.calls_made = 0;
  out.alone.call_seconds = 0;
  out.alone.makespan = 0;
  for (const double seconds : out.alone.supersteps) out.alone.makespan += seconds;
  if (out.deciding.makespan > 0) out.alone.cost *= out.alone.makespan / out.deciding.makespan;
  join(out.alone.stretches);
  return out;
}

Result<std::vector<ProcessorId>> initial_mapping(const Platform& platform, decide::Mapping mapping,
                                                 std::uint32_t ranks) {
  BSP_TRY(const decide::Platform nodes, decision_platform(platform));
  return decide::initial_mapping(mapping, ranks, nodes);
}

}  // namespace bsp::sim
