// The outcome of one rescheduling call: who moves where, why all others stay, what it gains.
//
// A plan is a value. It holds every number that led to it, so that logs, status and tests need no
// second computation; explain.h turns it into text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "operator/decide/model/model.h"
#include "operator/decide/model/window.h"

namespace bsp::decide {

// One rank of the PM list: PM(i, target) = comp + comm − mem, the target being that of the highest.
struct PmEntry {
  RankId rank;
  SetId target;
  double comp = 0;  // Comp(i, target), s
  double comm = 0;  // Comm(i, target), s
  double mem = 0;   // Mem(i, target), s
  double pm = 0;    // s
};

// AutoMig's level l: the first l movable ranks of the PM list moved. pf = time + comm + mem.
struct Level {
  std::uint32_t level = 0;
  RankId rank;      // the one that this level moves on top of the level before; none for level 0
  double time = 0;  // max_i Time(i), s
  double comm = 0;  // max_i Comm(i, ·), s
  double mem = 0;   // max over the moved of Mem(i, target), s
  double pf = 0;    // s
};

struct Move {
  RankId rank;
  ProcessorId from, to;
  SetId from_set, to_set;
  double gain_superstep = 0;  // s by which the rank's own superstep gets shorter, cost not counted
  double gain_window =
      0;              // s over as many supersteps as the plan counts, cost deducted; not above 0: it moves for others
  double cost = 0;    // Mem(i, target), s, once
  double t_stay = 0;  // s, the viability test's two sides; AutoMig, Bottleneck: the rank's own Time
  double t_move = 0;  //    + Comm of one superstep before and after (t_move without the cost)
  bool cost_assumed = true;  // T(a, target) or Mig(i, target) was never measured
  bool cpu_assumed = true;   // cpu of `from` or of `to` was never measured
};

enum class Reason {
  kBestSetIsOwn,       // no other Set has a higher PM
  kNotCandidate,       // the heuristic did not choose it; `value` against `limit` says by how much
  kGainBelowCost,      // moving costs more than it gains: t_move ≥ t_stay, no level below pf(0), F no lower
  kGainBelowMinimum,   // it gains, but less than min_gain
  kNoCapacity,         // no free slot in the Set it would go to
  kCordoned,           // the Set it would go to takes no new rank
  kTargetFailed,       // its last target in the Set that it would go to did not come up
  kCooldown,           // it moved less than `cooldown` supersteps ago
  kNotMigratable,      // something keeps it where it is: Rank::not_migratable
  kMoveLimit,          // max_moves other ranks go first
  kCpuFeaturesDiffer,  // the CPUs of the Set that it would go to lack features that its program may use
  kTriedFirst,         // one rank tries a Set first of whose speed nothing is known (untried.h)
};
constexpr auto names_of(Of<Reason>) {
  return std::to_array<std::string_view>({"BestSetIsOwn", "NotCandidate", "GainBelowCost", "GainBelowMinimum",
                                          "NoCapacity", "Cordoned", "TargetFailed", "Cooldown", "NotMigratable",
                                          "MoveLimit", "CPUFeaturesDiffer", "TriedFirst"});
}

struct Stay {
  RankId rank;
  Reason reason;
  SetId target;      // where it would have gone; its own Set for kBestSetIsOwn
  double value = 0;  // what was compared …
  double limit = 0;  // … with what: s for kNotCandidate, kGainBelow…; supersteps for kCooldown
};

// What the heuristic lowers. AutoMig: pf, one superstep with its migrations. Bottleneck: F, all supersteps
// up to the next call with the migrations. The others: the summed time of the moved ranks over the
// horizon, t_stay against t_move, migrations included. Auto, with prices: what the rest of the job costs, as the time that the
// ranks' present slots cost as much for.
struct Objective {
  std::string_view name;
  double before = 0;  // s
  double after = 0;   // s; below `before` in every plan that moves anything
};

// A whole superstep as the model predicts it, without migrations: max_i Time(i) + max_i Comm(i, ·).
struct Forecast {
  double before = 0;  // s
  double after = 0;   // s
};

// What the ranks' slots cost, where prices are known.
struct Spending {
  double before = 0, after = 0;  // an hour, where the ranks are and after the plan's moves; 0: not known
  double limit = 0;              // s that the supersteps to come may take with all pauses; 0: none

  bool operator==(const Spending&) const = default;
};

// What Auto's rules contributed to a plan (auto.h).
struct Rules {
  double supersteps = 0;    // H: those to come that it is weighed over
  double least_gain = 0;    // of a superstep, below which nothing is done
  double noise = 0;         // standard error of the measured work, relative
  double unsteady = 0;      // of a superstep, below which the gain may be that of nodes which are slow for a while
  double owed = 0;          // s, before this plan
  double budget = 0;        // s that the wave may cost; infinite: any
  std::uint32_t waves = 0;  // that the mapping takes; this plan is the first
  bool replayed = false;    // every move is to a faster processor, and noise of the work hid what that gains (replay.h)
  bool takes_back = false;  // the plan undoes the judged wave, after which supersteps were longer
  bool tries = false;       // any heuristic: one rank goes to a Set of whose speed nothing is known (untried.h)
  bool explores = false;    // … as the Set may be faster than assumed: by the assumption nobody would go (explore.h)

  bool operator==(const Rules&) const = default;
};

struct Plan {
  Heuristic heuristic{};
  Superstep superstep{};           // the call follows it
  std::vector<PmEntry> pm_list{};  // decreasing PM; ties: smaller rank first
  std::vector<Level> levels{};     // AutoMig only; [0] is the current mapping
  std::uint32_t chosen_level = 0;  // AutoMig only
  std::vector<Move> moves{};       // in the order they were accepted
  std::vector<Stay> stays{};       // every other rank, by rank
  Objective objective{};
  Forecast forecast{};
  Rules rules{};  // Auto only, but `tries`
  Spending spending{};
  Cadence now{};   // of the window that ends: α, D, α' …
  Cadence next{};  // … and of the next one
};

}  // namespace bsp::decide
