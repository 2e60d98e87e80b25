#include "operator/decide/papers/destination.h"

#include <expected>
#include <format>

#include "operator/decide/model/means.h"
#include "operator/decide/model/pf.h"
#include "operator/decide/model/text.h"

namespace bsp::decide {
namespace {

// Σ over the horizon.
struct Sums {
  std::span<const double> I;  // [i] instructions
  const SparseGrid& B;        // [i, j] bytes
  double supersteps;
};

Sums sums_over(const Metrics& m, Horizon horizon) {
  if (horizon == Horizon::kSuperstep) return {m.last.instructions, m.last.recv_bytes, 1};
  return {m.I_window, m.B_window, static_cast<double>(m.supersteps)};
}

struct Accepted {
  Move move;
  Placement::Pick pick;
};

std::expected<Accepted, Stay> test(const Case& c, const PmEntry& e, const Sums& sums, const Placement& placement) {
  Stay stay{.rank = e.rank, .reason = Reason::kNoCapacity, .target = e.target};
  const auto pick = placement.pick(e.target, e.rank);
  if (!pick) return std::unexpected(stay);

  const Grid<double>& T = c.snapshot.platform.T;
  const std::uint32_t own = c.columns.own[e.rank.value].value, j = e.target.value;
  const double B = sums.B[e.rank.value, j];
  Move move = move_of(c, e, pick->processor);
  move.t_move = pick->time + B * T[j, j] + e.mem;
  move.t_stay = placement.time(move.from) + B * T[own, j];
  move.gain_superstep = (move.t_stay - (move.t_move - e.mem)) / sums.supersteps;
  move.gain_window = move.gain_superstep * static_cast<double>(c.alpha) - e.mem;

  stay.value = move.t_move;
  stay.limit = move.t_stay;
  stay.reason = Reason::kGainBelowCost;
  if (!(move.t_move < move.t_stay)) return std::unexpected(stay);
  stay.reason = Reason::kGainBelowMinimum;
  stay.limit = move.t_stay * (1 - c.params.min_gain);
  if (move.t_move > stay.limit) return std::unexpected(stay);
  return Accepted{move, *pick};
}

}  // namespace

void move_viable(const Case& c, std::span<const PmEntry> list, const std::function<Candidacy(std::size_t q)>& candidacy,
                 Plan& plan) {
  const Sums sums = sums_over(c.metrics, c.params.horizon);
  const std::unique_ptr<Placement> placement = c.means->placement(c, sums.I, sums.I);  // Times are not asked for
  plan.objective = {.name = "time of the moved ranks"};
  for (std::size_t q = 0; q < list.size(); ++q) {
    const PmEntry& e = list[q];
    if (const Candidacy candidate = candidacy(q); !candidate.wanted) {
      plan.stays.push_back({.rank = e.rank,
                            .reason = Reason::kNotCandidate,
                            .target = e.target,
                            .value = candidate.value,
                            .limit = candidate.limit});
    } else if (c.params.max_moves > 0 && plan.moves.size() >= c.params.max_moves) {
      plan.stays.push_back({.rank = e.rank, .reason = Reason::kMoveLimit, .target = e.target});
    } else if (auto verdict = test(c, e, sums, *placement)) {
      placement->move(e.rank, verdict->pick, e.target);
      plan.objective.before += verdict->move.t_stay;
      plan.objective.after += verdict->move.t_move;
      plan.moves.push_back(verdict->move);
    } else {
      plan.stays.push_back(verdict.error());
    }
  }
  plan.forecast = forecast_of(c, plan.moves);
}

std::string longer_there(const Stay& stay, const std::string& set) {
  return std::format("in {} it would need {}, where it is {}", set, seconds(stay.value), seconds(stay.limit));
}

std::string low_PM(const Stay& stay) {
  if (stay.value <= 0) return std::format("its PM of {} is not positive", seconds(stay.value));
  if (stay.value == stay.limit)
    return std::format("its PM of {} is the highest, as that of a rank before it", seconds(stay.value));
  return std::format("its PM of {} is below {}", seconds(stay.value), seconds(stay.limit));
}

}  // namespace bsp::decide
