// Reservations: slots for the pods of jobs that start, slots and memory for the targets of all waves under way, in one object
// that every operator writes under its resourceVersion, so that no slot is reserved twice. A start has all its slots or none.
//
//     decide on Reservations as read ─> reserve (refused if another job has reserved since) ─> the wave is stored ─>
//     targets are created
//                                                           removed when the wave has ended, or after kReservationKept
//
// A target that the scheduler has placed is counted where it runs and no longer here, but for its checkpoint; until then
// it holds its slot on the node it was planned for. How many ranks move at once in the whole cluster is counted here too. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "operator/reconcile/capacity/resources.h"

namespace bsp::reconcile {

// For a wave whose operator has died and whose job is gone; a running one renews it.
inline constexpr std::chrono::minutes kReservationKept{10};

// A pod's that is to be made.
struct ReservedSlot {
  std::string pod;
  std::uint32_t rank = 0;
  std::string set;
  std::string node;  // as planned
  bool operator==(const ReservedSlot&) const = default;
};

// A job's, for its start or its wave; it has one at a time.
struct Reservation {
  std::string uid;  // of the BSPJob
  std::uint32_t wave = 0;
  Resources each;  // what one target asks for
  std::int64_t checkpoint =
      0;  // bytes that one takes besides, until it runs (move_memory.h); the scheduler never counts it
  std::vector<ReservedSlot> slots;
  Time until{};
  bool start = false;  // of the job's first pods, not of a wave: no rank moves
  bool operator==(const Reservation&) const = default;
};

Resources of_one(const Reservation& reservation);  // of its pods

// Ranks that are moving now, of all jobs but one.
struct MovesElsewhere {
  std::map<std::string, std::uint32_t> into;  // by Set
  std::uint32_t all = 0;
  bool operator==(const MovesElsewhere&) const = default;
};

struct Reservations {
  std::map<std::string, Reservation> of_job;  // by "<namespace>/<name>"
  std::string version;                        // the object's resourceVersion; "": there is none yet
  // Of operators that exchange loads instead (exchange_store.h): what their pods and targets ask for, by node, and what they
  // move.
  std::map<std::string, Resources> reported = {};
  MovesElsewhere reported_moves = {};
};

// The object's `data`: an entry for each job, a line of JSON. An entry that can't be read is left out, so that it does not stop all jobs.
Reservations reservations_from_json(const nlohmann::json& object);
nlohmann::json reservation_data(const Reservations& reservations);

void drop_expired(Reservations& reservations, Time now);
// It is due to be renewed, so that it does not expire during a long wave.
bool is_to_be_renewed(const Reservation& reservation, Time now);

// What targets of all jobs but this one will ask for, by planned node, and what other operators report of nodes;
// `is_placed(namespace, pod)`: it is counted where it runs.
std::map<std::string, Resources> reserved_by_others(
    const Reservations& reservations, const std::string& job,
    const std::function<bool(const std::string& name_space, const std::string& pod)>& is_placed);

MovesElsewhere moves_elsewhere(const Reservations& reservations, const std::string& job);

// How many moves at once, of all jobs; 0: any number.
struct MoveCaps {
  std::uint32_t into_set = 0;
  std::uint32_t in_cluster = 0;
};

// How many more may begin; nullopt: no limit.
std::optional<std::uint32_t> moves_left(const MoveCaps& caps, const MovesElsewhere& elsewhere, const std::string& set,
                                        std::uint32_t own_into_set, std::uint32_t own);

}  // namespace bsp::reconcile
