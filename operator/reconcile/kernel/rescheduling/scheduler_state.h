// What a job's scheduler keeps in status.rescheduler, so that a fresh operator goes on as if there had been no restart. Opaque to
// every other reader.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/core/fields.h"
#include "crds/rank_groups.h"
#include "operator/decide/model/model.h"
#include "operator/migrate/wave.h"

namespace bsp::reconcile {

// Superstep times before a wave, to be compared with those after.
struct Baseline {
  std::uint32_t wave = 0;
  std::uint64_t alpha = 0;
  double seconds = 0, error = 0;  // and its standard error
  double longest = 0;             // computing time of the longest rank; 0: not known
  double beside = 0;              // of those that don't move and have a node in common with one that does, at most
  std::map<std::uint32_t, double> compute;  // by rank, of those that move
  std::map<std::uint32_t, double> stayed;   // of some that don't, on nodes that none of the others leaves or comes to
  std::map<std::uint32_t, double> work;     // of all of those, instructions; empty: they aren't counted
  std::uint64_t after = 0;                  // supersteps from here on are measured in the new mapping; 0: not yet
};

// Of one rank in this attempt.
struct RankMoves {
  std::uint64_t last = 0;         // superstep after which it moved last
  std::vector<std::string> left;  // nodes, in order: the first is where it began, the last one where it came from
  bool operator==(const RankMoves&) const = default;
};
// By rank, of those that moved. RankMigrations don't say it: they also tell of earlier attempts, whose supersteps were others, and
// the oldest of them are deleted.
using Moves = std::map<std::uint32_t, RankMoves>;
// Of each rank: its first node, and the last ones.
void note_moves(Moves& moves, const migrate::Wave& wave, std::size_t ranks);

struct SchedulerState {
  decide::State window;         // of its start
  std::uint32_t wave_seen = 0;  // ended waves up to this one have been taken into account
  double counted = 0;           // supersteps over which the last plan that moves counts its gain; 0: none yet
  nlohmann::json work;          // observe/work.h
  nlohmann::json factors;       // observe/rank_factors.h
  std::optional<Baseline> baseline;
  Moves moves;
};

// P in the steps in which it is stored, one of 64: so that an operator that continues and one that restarts have the same.
void round_predictabilities(decide::State& state);

nlohmann::json to_json(const SchedulerState& state);
// What the next attempt goes on with: what CPU time is worth and what ranks' instructions are, as status.calibration stays in these units.
// Null: nothing.
nlohmann::json for_next_attempt(const nlohmann::json& stored);
// What an older operator has stored, too. What can't be read is as in a new job.
SchedulerState scheduler_state_from_json(const nlohmann::json& j, std::size_t ranks, std::size_t sets);

}  // namespace bsp::reconcile
