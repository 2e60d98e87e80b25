// Bottleneck, our own: the moves that make the time to the next call shortest, of any ranks.
//
//   F = α · (max_i Time(i) + max_i Comm(i,·)) + max over the moved of Mem        s        (bottleneck.h)
//
// AutoMig asks how many of the PM list to move, and where each goes is settled; here both are open: every rank that may
// move, to every processor with a free slot, those of its own Set too. The search starts from the level of the PM list
// (levels.h) with the lowest F, and never gets above it. So F is at most what AutoMig's answer has, and where α = 1,
// with horizon: superstep, F is pf: pf is at most AutoMig's.
//
// The moves are one wave; they are listed by what the moved rank itself gains (equal: the cheaper, then the smaller
// rank).
#include "operator/decide/bottleneck/bottleneck.h"

#include <algorithm>
#include <format>
#include <tuple>

#include "operator/decide/fast/comm_of.h"
#include "operator/decide/fast/processors.h"
#include "operator/decide/model/pf.h"
#include "operator/decide/model/text.h"
#include "operator/decide/papers/levels.h"

namespace bsp::decide {
namespace {

// Each rank where the level with the lowest F has it.
std::vector<ProcessorId> best_level_placement(const Case& c, std::span<const PmEntry> list, const Levels& made,
                                              double alpha) {
  const auto F = [alpha](const Level& l) { return alpha * (l.time + l.comm) + l.mem; };
  const auto best = std::ranges::min_element(made.levels, {}, F);
  std::vector<ProcessorId> placement = c.columns.on;
  for (std::ptrdiff_t l = 0; l < best - made.levels.begin(); ++l) {
    const LevelMove& move = made.moves[static_cast<std::size_t>(l)];
    placement[list[move.q].rank.value] = move.to;
  }
  return placement;
}

void add_moves_of(const Case& c, const Trial& trial, double alpha, Plan& plan) {
  if (trial.moves() == 0) return;
  const std::vector<double> before = processor_seconds(c.columns, c.metrics.last.instructions, c.columns.on);
  for (std::uint32_t r = 0; r < c.columns.on.size(); ++r) {
    const RankId i{r};
    if (!trial.moved(i)) continue;
    const SetId j = c.columns.set[trial.on(i).value];
    Move move = move_of(c, {.rank = i, .target = j, .mem = trial.Mem_to(i, j)}, trial.on(i));
    move.t_stay = before[move.from.value] + trial.comm_here(i);
    move.t_move = trial.processors().time(move.to) + trial.comm_at(i);
    move.gain_superstep = move.t_stay - move.t_move;
    move.gain_window = move.gain_superstep * alpha - move.cost;
    plan.moves.push_back(move);
  }
  std::ranges::sort(plan.moves, {}, [](const Move& m) { return std::tuple(-m.gain_superstep, m.cost, m.rank); });
}

// Why the ranks of the PM list that do not move stay. Only one that alone holds up a superstep could gain by moving.
void add_stays_of(const Case& c, std::span<const PmEntry> list, const Trial& trial, const BottleneckSearch& search,
                  double alpha, Plan& plan) {
  const Processors& processors = trial.processors();
  const ProcessorId slowest = processors.slowest_processor();
  const double others = processors.slowest_but(slowest), superstep = trial.time() + trial.comm();
  std::vector<double> takes;  // by rank: its own part of a superstep, s; visited as memory has them
  takes.reserve(c.columns.on.size());
  for (std::uint32_t i = 0; i < c.columns.on.size(); ++i)
    takes.push_back(processors.time_of(RankId{i}) + trial.comm_at({i}));
  for (const PmEntry& e : list) {
    const RankId i = e.rank;
    if (trial.moved(i)) continue;
    Stay stay{
        .rank = i, .reason = Reason::kNotCandidate, .target = e.target, .value = takes[i.value], .limit = superstep};
    const bool holds_up_time = trial.on(i) == slowest && others < trial.time();
    const bool holds_up_comm = trial.comm_at(i) == trial.comm() && trial.comm_without(i) < trial.comm();
    if (holds_up_time || holds_up_comm) {
      stay.reason = search.move_limit_reached() ? Reason::kMoveLimit : Reason::kNoCapacity;
      const auto pick = search.move_limit_reached() ? std::nullopt : processors.pick(e.target, i);
      if (pick) {
        const double rest =
            processors.time(slowest) - c.metrics.last.instructions[i.value] / c.columns.available[slowest.value];
        const double time = holds_up_time ? std::max(others, rest) : trial.time();
        const double comm = holds_up_comm ? trial.comm_without(i) : trial.comm();
        stay.reason = Reason::kGainBelowCost;
        stay.value = alpha * (std::max(time, pick->time) + std::max(comm, trial.Comm_in(i, e.target))) +
                     std::max(trial.mem(), e.mem);
        stay.limit = search.F();
      }
    }
    plan.stays.push_back(stay);
  }
}

}  // namespace

template <>
void plan<Heuristic::kBottleneck>(const Case& c, std::span<const PmEntry> list, Plan& plan) {
  plan.objective.name = "time to the next call";
  if (c.snapshot.ranks.empty()) return;
  const bool window = c.params.horizon != Horizon::kSuperstep;
  const double alpha = window ? static_cast<double>(c.alpha_next) : 1;
  const std::span<const double> I_last = c.metrics.last.instructions;
  const CommOf comm_of(c);
  const std::vector<double> here = comm_here(c, comm_of);
  Processors processors(c.columns, window ? std::span<const double>(c.metrics.I_window) : I_last, I_last,
                        c.params.reuse_vacated_slots);
  Level now;  // no rank moved
  {
    const Levels made = make_levels(c, list, here, comm_of, processors);
    now = made.levels[0];
    processors.restart(best_level_placement(c, list, made, alpha), I_last, I_last);
  }
  Trial trial(c, processors, here, comm_of, BottleneckSearch::kTriedTogether);
  BottleneckSearch search(c, trial, alpha);
  search.run(list);

  plan.forecast.before = plan.forecast.after = now.time + now.comm;
  plan.objective.before = plan.objective.after = alpha * plan.forecast.before;
  add_stays_of(c, list, trial, search, alpha, plan);
  const double worth_it = plan.objective.before * (1 - c.params.min_gain);
  if (search.F() < plan.objective.before && search.F() <= worth_it) {
    plan.objective.after = search.F();
    plan.forecast.after = trial.time() + trial.comm();
    std::erase_if(plan.stays, [&](const Stay& stay) { return trial.moved(stay.rank); });
    add_moves_of(c, trial, alpha, plan);
    return;
  }
  for (const PmEntry& e : list) {
    if (!trial.moved(e.rank)) continue;
    plan.stays.push_back(
        {.rank = e.rank,
         .reason = search.F() < plan.objective.before ? Reason::kGainBelowMinimum : Reason::kGainBelowCost,
         .target = e.target,
         .value = search.F(),
         .limit = worth_it});
  }
}

template <>
std::string why<Heuristic::kBottleneck>(const Stay& stay, const std::string& set, const Plan& plan) {
  if (stay.reason == Reason::kNotCandidate)
    return std::format("moving it alone shortens nothing: it takes {} of a superstep of {}", seconds(stay.value),
                       seconds(stay.limit));
  return std::format("with it moved to {} the {} is {}, without {}", set, plan.objective.name, seconds(stay.value),
                     seconds(stay.limit));
}

}  // namespace bsp::decide
