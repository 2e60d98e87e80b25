// Seats that their ranks have left: their containers wait for other ranks, so a move into one needs neither a pod nor a slot.
// Their slots are the job's. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "crds/seat.h"
#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

// By node, in order.
using FreeSeats = std::map<std::string, std::vector<Seat>>;

// Only those that are seen to wait, of pods that have ranks and that none of them has to leave: another seat
// (its container has ended, its sidecar doesn't answer) holds its slot for nothing.
FreeSeats free_seats(const Observed& o);

struct Leftover {
  Seat seat;
  std::string migration;
};
// Seats without a rank that hold something of a migration, whose wave is over: a message came late, or a sidecar failed. Until it is
// discarded no rank can move there.
std::vector<Leftover> leftovers(const Observed& o);

}  // namespace bsp::reconcile
