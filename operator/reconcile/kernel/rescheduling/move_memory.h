// The memory that a move takes on its target's node besides the slot: the checkpoint arrives in the pod's tmpfs and is still
// there when the process has been restored from it. So for a moment the rank is in memory twice.
//
// The scheduler doesn't count the checkpoint. A request for it would stay with the pod for life and halve a pool's capacity;
// so the operator counts it here and in its reservations (reservations.h) while the wave lasts. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

struct MoveMemory {
  std::int64_t process = 0;     // what the template asks for, or what the rank holds if that is more
  std::int64_t checkpoint = 0;  // what it holds
  [[nodiscard]] std::int64_t both() const { return process + checkpoint; }
};

// For one reconcile of a job: the pods are counted once.
class MoveCapacity {
 public:
  explicit MoveCapacity(const Observed& o);

  [[nodiscard]] MoveMemory of(const crds::RankPlace& rank) const;
  [[nodiscard]] MoveMemory of_largest(const std::map<std::uint32_t, std::string>& without = {}) const;
  // By rank, why it fits on none of the nodes with a free slot, its own apart. Nobody, if there is none.
  [[nodiscard]] std::map<std::uint32_t, std::string> too_large() const;
  // The same of the ranks that fit on one; of all, if none does.
  [[nodiscard]] MoveMemory of_largest_that_fits(const std::map<std::uint32_t, std::string>& too_large) const;
  // What a node has left for targets of this job, free seats included: slots, and bytes (INT64_MAX where memory is not counted).
  [[nodiscard]] std::uint32_t free_slots(const observe::NodeFacts& node) const;
  [[nodiscard]] std::int64_t free_memory(const observe::NodeFacts& node) const;
  // What each rank's container asks for, that of a free seat too.
  [[nodiscard]] std::int64_t asked() const { return asked_; }
  // "node fast-1 has a free slot, but not …"
  [[nodiscard]] std::string lack(const observe::NodeFacts& node, const MoveMemory& move) const;
  // "" unless a Set has free slots, but none on a node with the memory for a move, or a rank fits nowhere.
  [[nodiscard]] std::string lack() const;

 private:
  const Observed& o_;
  std::int64_t asked_;                         // by a rank
  std::map<std::string, std::uint32_t> held_;  // slots but for free seats, by node
};

// Hides from decisions the slots for which a node lacks the memory. Returns the ranks that are too large: they stay, and don't
// count for the others.
std::map<std::uint32_t, std::string> keep_memory(std::vector<observe::NodeFacts>& nodes, const Observed& o);

}  // namespace bsp::reconcile
