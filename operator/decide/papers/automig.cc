// AutoMig (Righi et al., INFOCOMP 2011): how many ranks of the PM list to move, without a parameter.
//
//   level l      the first l ranks of the PM list moved; pf(l) what the superstep then takes         (levels.h)
//   choice       the level with the smallest pf, if below pf(0); else nothing moves
#include "operator/decide/papers/automig.h"

#include <algorithm>
#include <format>

#include "operator/decide/model/means.h"
#include "operator/decide/model/pf.h"
#include "operator/decide/model/strategy.h"
#include "operator/decide/model/text.h"
#include "operator/decide/papers/levels.h"

namespace bsp::decide {
namespace {

// The chosen moves, each with what the rank's own superstep gains by the whole plan.
void add_moves(const Case& c, std::span<const PmEntry> list, std::span<const LevelMove> chosen,
               std::span<const double> here, const CommTimes& Comm, Plan& plan) {
  if (chosen.empty()) return;
  const std::vector<double>& I = c.metrics.last.instructions;
  std::vector<ProcessorId> placement = c.columns.on;
  const std::vector<double> before = processor_seconds(c.columns, I, placement);
  for (const LevelMove& a : chosen) placement[list[a.q].rank.value] = a.to;
  const std::vector<double> after = processor_seconds(c.columns, I, placement);
  for (const LevelMove& a : chosen) {
    Move move = move_of(c, list[a.q], a.to);
    move.t_stay = before[move.from.value] + here[move.rank.value];
    move.t_move = after[move.to.value] + Comm(move.rank, move.to_set);
    move.gain_superstep = move.t_stay - move.t_move;
    move.gain_window = move.gain_superstep * static_cast<double>(c.alpha) - move.cost;
    plan.moves.push_back(move);
  }
}

}  // namespace

std::size_t best_level(std::span<const Level> levels) {
  const auto first_of_equals = std::ranges::min_element(levels, {}, &Level::pf);
  return static_cast<std::size_t>(first_of_equals - levels.begin());
}

template <>
void plan<Heuristic::kAutoMig>(const Case& c, std::span<const PmEntry> list, Plan& plan) {
  const std::unique_ptr<CommTimes> Comm = c.means->comm_times(c);
  const std::vector<double> here = comm_here(c, *Comm);
  const std::span<const double> I_last = c.metrics.last.instructions;
  const bool window = c.params.horizon != Horizon::kSuperstep;
  const std::unique_ptr<Placement> placement =
      c.means->placement(c, window ? std::span<const double>(c.metrics.I_window) : I_last, I_last);
  Levels made = make_levels(c, list, here, *Comm, *placement);
  const std::vector<Level>& levels = plan.levels = std::move(made.levels);
  for (const LeftOut& out : made.left_out)
    plan.stays.push_back({.rank = list[out.q].rank, .reason = out.reason, .target = list[out.q].target});
  const std::size_t best = best_level(levels);
  const double worth_it = levels[0].pf * (1 - c.params.min_gain);
  const bool enough = best > 0 && levels[best].pf <= worth_it;
  plan.chosen_level = enough ? static_cast<std::uint32_t>(best) : 0;
  const Level& chosen = levels[plan.chosen_level];
  plan.objective = {.name = "pf", .before = levels[0].pf, .after = chosen.pf};
  plan.forecast = {.before = levels[0].time + levels[0].comm, .after = chosen.time + chosen.comm};
  add_moves(c, list, std::span(made.moves).first(plan.chosen_level), here, *Comm, plan);

  for (std::size_t l = plan.chosen_level; l < made.moves.size(); ++l) {
    const PmEntry& e = list[made.moves[l].q];
    Stay stay{.rank = e.rank, .reason = Reason::kNotCandidate, .target = e.target};
    stay.value = levels[l + 1].pf;      // what moving it as well would give …
    stay.limit = plan.objective.after;  // … instead of this
    if (best == 0) stay.reason = Reason::kGainBelowCost;
    if (best > 0 && !enough) {
      stay.reason = Reason::kGainBelowMinimum;
      stay.value = levels[best].pf;
      stay.limit = worth_it;
    }
    plan.stays.push_back(stay);
  }
}

template <>
std::string why<Heuristic::kAutoMig>(const Stay& stay, const std::string& set, const Plan&) {
  if (stay.reason == Reason::kNotCandidate)
    return std::format("moving it to {} as well would make pf {}, the chosen level has {}", set, seconds(stay.value),
                       seconds(stay.limit));
  return std::format("with it moved to {} pf is {}, and without any move {}", set, seconds(stay.value),
                     seconds(stay.limit));
}

}  // namespace bsp::decide
