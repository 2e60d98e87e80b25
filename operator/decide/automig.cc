// AutoMig (Righi et al., INFOCOMP 2011): how many ranks of the PM list to move, without a
// parameter.
//
//   level l      the first l ranks of the PM list moved, each to the Set of its highest PM, to the
//                processor that the Set's manager picks with the earlier levels' moves already made
//   pf(l)        max_i Time(i) + max_i Comm(i,·) + max over the moved of Mem        (pf.h)
//   choice       the level with the smallest pf, if below pf(0); else nothing moves
//
// Levels differ by one move, so each is made from the one before:
//   max Time     kept by processors.h as the moves are made
//   max Comm     the larger of what the moved ranks have in their new Set and what the others have
//   in
//                theirs; the latter is a running maximum from the end of the list
//   max Mem      running maximum
// which is O(n log n + n·Sets) for all levels together. An entry whose Set has no slot left is
// skipped (NoCapacity) and the levels go on with the next; entries with PM ≤ 0 count like all
// others.
#include "operator/decide/automig.h"

#include <algorithm>

#include "operator/decide/pf.h"
#include "operator/decide/processors.h"
#include "operator/decide/strategy.h"

namespace bsp::decide {
namespace {

// Comm(i,·) of each rank where it is and, for those in the list, where it would go. s.
struct CommTimes {
  std::vector<double> here, there;  // [i]
};

CommTimes comm_times(const Case& c, std::span<const PmEntry> list) {
  const Grid<double> T_to = transposed(c.snapshot.platform.T);
  const Grid<double>& Bytes = c.metrics.last.recv_bytes;
  std::vector<SetId> target;
  const std::size_t n = c.snapshot.ranks.size();
  for (std::uint32_t i = 0; i < n; ++i) target.push_back(c.snapshot.set(RankId{i}));
  for (const PmEntry& e : list) target[e.rank.value] = e.target;
  CommTimes comm{std::vector<double>(n), std::vector<double>(n)};
  for (std::uint32_t i = 0; i < n; ++i) {  // in rank order: Bytes is read once, from front to back
    const SetId own = c.snapshot.set(RankId{i});
    comm.here[i] = Comm(Bytes.row(i), T_to.row(own.value));
    comm.there[i] = target[i] == own ? comm.here[i] : Comm(Bytes.row(i), T_to.row(target[i].value));
  }
  return comm;
}

// rest[q] = max Comm(i,·) of the ranks that are in the list from position q on, or not in it at
// all.
std::vector<double> comm_of_the_rest(std::span<const PmEntry> list, const CommTimes& comm) {
  std::vector<bool> listed(comm.here.size(), false);
  for (const PmEntry& e : list) listed[e.rank.value] = true;
  std::vector<double> rest(list.size() + 1, 0.0);
  for (std::size_t i = 0; i < listed.size(); ++i)
    if (!listed[i]) rest.back() = std::max(rest.back(), comm.here[i]);
  for (std::size_t q = list.size(); q-- > 0;)
    rest[q] = std::max(rest[q + 1], comm.here[list[q].rank.value]);
  return rest;
}

struct Accepted {
  std::uint32_t q;  // position in the PM list
  ProcessorId to;
};

// Appends every level to plan.levels, and a Stay for each entry that has no slot or exceeds
// max_moves.
std::vector<Accepted> make_levels(const Case& c, std::span<const PmEntry> list,
                                  const CommTimes& comm, Plan& plan) {
  const std::span<const double> I_last = c.metrics.last.instructions;
  const bool window = c.params.horizon == Horizon::kWindow;
  Processors processors(c.snapshot, window ? std::span<const double>(c.metrics.I_window) : I_last,
                        I_last, c.params.reuse_vacated_slots);
  const std::vector<double> rest = comm_of_the_rest(list, comm);
  double comm_before_q = 0, mem = 0;  // max over the entries passed; max over the moved
  std::vector<Accepted> accepted;
  const auto add_level = [&](RankId rank, std::size_t q) {
    Level l{.level = static_cast<std::uint32_t>(accepted.size()),
            .rank = rank,
            .time = processors.slowest(),
            .comm = std::max(comm_before_q, rest[q]),
            .mem = mem};
    l.pf = l.time + l.comm + l.mem;
    plan.levels.push_back(l);
  };

  plan.levels.reserve(list.size() + 1);
  accepted.reserve(list.size());
  add_level(RankId{}, 0);
  for (std::size_t q = 0; q < list.size(); ++q) {
    const PmEntry& e = list[q];
    const bool full = c.params.max_moves > 0 && accepted.size() >= c.params.max_moves;
    const auto pick = full ? std::nullopt : processors.pick(e.target, e.rank);
    if (!pick) {
      const Reason reason = full ? Reason::kMoveLimit : Reason::kNoCapacity;
      plan.stays.push_back({.rank = e.rank, .reason = reason, .target = e.target});
      comm_before_q = std::max(comm_before_q, comm.here[e.rank.value]);
      continue;
    }
    processors.move(e.rank, pick->processor);
    comm_before_q = std::max(comm_before_q, comm.there[e.rank.value]);
    mem = std::max(mem, e.mem);
    accepted.push_back({static_cast<std::uint32_t>(q), pick->processor});
    add_level(e.rank, q + 1);
  }
  return accepted;
}

// The chosen moves, each with what the rank's own superstep gains by the whole plan.
void add_moves(const Case& c, std::span<const PmEntry> list, std::span<const Accepted> chosen,
               const CommTimes& comm, Plan& plan) {
  if (chosen.empty()) return;
  const std::vector<double>& I = c.metrics.last.instructions;
  std::vector<ProcessorId> placement = current_placement(c.snapshot);
  const std::vector<double> before = processor_seconds(c.snapshot, I, placement);
  for (const Accepted& a : chosen) placement[list[a.q].rank.value] = a.to;
  const std::vector<double> after = processor_seconds(c.snapshot, I, placement);
  for (const Accepted& a : chosen) {
    Move move = move_of(c, list[a.q], a.to);
    move.t_stay = before[move.from.value] + comm.here[move.rank.value];
    move.t_move = after[move.to.value] + comm.there[move.rank.value];
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

void plan_automig(const Case& c, std::span<const PmEntry> list, Plan& plan) {
  const CommTimes comm = comm_times(c, list);
  const std::vector<Accepted> accepted = make_levels(c, list, comm, plan);
  const std::vector<Level>& levels = plan.levels;
  const std::size_t best = best_level(levels);
  const double worth_it = levels[0].pf * (1 - c.params.min_gain);
  const bool enough = best > 0 && levels[best].pf <= worth_it;
  plan.chosen_level = enough ? static_cast<std::uint32_t>(best) : 0;
  plan.objective = {.name = "pf", .before = levels[0].pf, .after = levels[plan.chosen_level].pf};
  add_moves(c, list, std::span(accepted).first(plan.chosen_level), comm, plan);

  for (std::size_t l = plan.chosen_level; l < accepted.size(); ++l) {
    const PmEntry& e = list[accepted[l].q];
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

}  // namespace bsp::decide
