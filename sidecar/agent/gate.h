// Arms, commits, cancels and drops the gate on the ring (the gate word of sidecar/ring/ring.h).
//
//            arm s                commit s
//   none ────────────> armed s ────────────> committed s ──(epoch opens: clear)──> none
//     ^───── cancel ──────┘                      │ cancel                           ^
//     ^                                          v                                  │
//     └──(all ranks dropped it: settle)──── dropping s ──(they had agreed to close)─┘
//
// The word in the ring is the only state, so it survives this process.
#pragma once

#include <cstdint>

#include "base/core/error.h"
#include "sidecar/ring/ring.h"

namespace bsp::sidecar {

struct Armed {
  std::uint64_t completed = 0;  // by the rank, after the gate was set
  bool late = false;            // the rank had passed the superstep and may or may not have seen the gate
};

Result<Armed> arm_gate(bsp_ring& ring, std::uint64_t superstep);
Result<void> commit_gate(bsp_ring& ring, std::uint64_t superstep);
// An armed gate is cleared at once, a committed one when the ranks have agreed to drop it (or have closed). With a
// superstep other than 0: only if the gate is set there.
void cancel_gate(bsp_ring& ring, std::uint64_t superstep);
// Clears the word once the rank has dropped the gate. Call at each poll of the ring.
void settle_gate(bsp_ring& ring);
void clear_gate(bsp_ring& ring);

}  // namespace bsp::sidecar
