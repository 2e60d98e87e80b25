// The snapshot column by column: what loops over all ranks and processors read, without the names and texts in between.
//
// A call reads the snapshot once, from front to back, and checks it on the way; from then on only these, a fifth as
// long.
#pragma once

#include <cstdint>
#include <vector>

#include "operator/decide/model/model.h"

namespace bsp::decide {

struct Columns {
  std::size_t sets = 0;  // how many there are
  bool priced = false;   // prices of some processors are known

  // By processor.
  std::vector<double> available{};     // (1 − load)·cpu, instructions/s
  std::vector<SetId> set{};            // that it is in
  std::vector<std::uint32_t> slots{};  // for this job's ranks, taken or not; 0 if it, or its Set, takes no new rank
  std::vector<std::uint32_t> held{};   // ranks of this job on it

  // By rank.
  std::vector<ProcessorId> on{};  // where it is at the call
  std::vector<SetId> own{};       // the Set of that
  std::vector<double> M{};        // M(i), bytes
  std::vector<std::uint8_t>
      special{};  // 1: its Rank says something of where it may go (not migratable, last move, no moves to)
};

// kInvalid, naming the first thing in the snapshot that does not fit together.
Result<Columns> columns_of(const Snapshot& snapshot);

// Slots of p that this job's ranks may still take; `held` = its ranks there. Unlimited: 2^31.
std::uint32_t free_slots(const Processor& p, std::uint32_t held);

}  // namespace bsp::decide
