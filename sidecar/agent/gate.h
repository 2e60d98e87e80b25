// Arming, committing, cancelling and dropping the gate on the ring (the gate word of sidecar/ring/ring.h).
//
//            arm s                commit s
//   none ────────────> armed s ────────────> committed s ──(epoch opens: clear)──> none
//     ^───── cancel ──────┘                      │ cancel                           ^
//     ^                                          v                                  │
//     └──(all ranks dropped it: settle)──── dropping s ──(they had agreed to close)─┘
//
// The word is the only memory of it: it survives this process in the ring.
#pragma once

#include <cstdint>

#include "base/core/error.h"
#include "sidecar/ring/ring.h"

namespace bsp::sidecar {

struct Armed {
  std::uint64_t completed = 0;  // by the rank, after the gate was set
  bool late = false;            // it had passed the superstep: the rank may or may not have seen the gate
};

Result<Armed> arm_gate(bsp_ring& ring, std::uint64_t superstep);
Result<void> commit_gate(bsp_ring& ring, std::uint64_t superstep);
// An armed gate is gone at once; a committed one when the ranks have agreed to drop it (or have closed).
// With a superstep other than 0: only if the gate is set there.
void cancel_gate(bsp_ring& ring, std::uint64_t superstep);
// The rank has dropped the gate that is set: clears the word. To be called at each poll of the ring.
void settle_gate(bsp_ring& ring);
void clear_gate(bsp_ring& ring);

}  // namespace bsp::sidecar
