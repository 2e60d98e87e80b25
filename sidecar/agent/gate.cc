#include "sidecar/agent/gate.h"

#include "base/core/fault.h"
#include "sidecar/ring/ring_access.h"

namespace bsp::sidecar {
namespace {

struct Word {
  std::uint64_t superstep;
  bsp_gate_state state;
};

Word read(const bsp_ring& ring) {
  std::uint64_t word = BSP_RING_LOAD_SEQ(ring.gate);
  return {bsp_gate_superstep(word), bsp_gate_state_of(word)};
}

std::unexpected<Error> is_committed(const Word& word) {
  return fail(ErrorCode::kConflict, std::format("the gate at superstep {} is committed already", word.superstep));
}

}  // namespace

Result<Armed> arm_gate(bsp_ring& ring, std::uint64_t superstep) {
  fault_point("gate.arm");
  if (superstep == 0) return fail(ErrorCode::kInvalid, "a gate needs a superstep of at least 1");
  if (Word word = read(ring); word.state == BSP_GATE_COMMITTED || word.state == BSP_GATE_DROPPING)
    return is_committed(word);
  std::uint64_t completed = bsp_gate_set(&ring, superstep, BSP_GATE_ARMED);
  fault_point("gate.armed");
  return Armed{completed, completed >= superstep};
}

Result<void> commit_gate(bsp_ring& ring, std::uint64_t superstep) {
  fault_point("gate.commit");
  Word word = read(ring);
  if (word.state == BSP_GATE_NONE && superstep > BSP_RING_LOAD_SEQ(ring.completed)) {
    // The arm was lost. Arm first: if the rank was faster than this, it can't be made to take part.
    if (bsp_gate_set(&ring, superstep, BSP_GATE_ARMED) < superstep)
      word = {superstep, BSP_GATE_ARMED};
    else
      clear_gate(ring);
  }
  if (word.superstep != superstep || word.state == BSP_GATE_NONE)
    return fail(ErrorCode::kConflict, std::format("no gate is armed at superstep {}", superstep));
  if (word.state == BSP_GATE_DROPPING)
    return fail(ErrorCode::kConflict, std::format("the gate at superstep {} is being dropped", superstep));
  if (word.state == BSP_GATE_ARMED) bsp_gate_set(&ring, superstep, BSP_GATE_COMMITTED);
  fault_point("gate.committed");
  return {};
}

void cancel_gate(bsp_ring& ring, std::uint64_t superstep) {
  fault_point("gate.cancel");
  settle_gate(ring);
  Word word = read(ring);
  if (superstep != 0 && word.superstep != superstep) return;
  if (word.state == BSP_GATE_COMMITTED)
    bsp_gate_set(&ring, word.superstep, BSP_GATE_DROPPING);
  else if (word.state == BSP_GATE_ARMED)
    clear_gate(ring);
}

void settle_gate(bsp_ring& ring) {
  Word word = read(ring);
  if ((word.state == BSP_GATE_COMMITTED || word.state == BSP_GATE_DROPPING) &&
      BSP_RING_LOAD_SEQ(ring.gate_dropped) == word.superstep)
    clear_gate(ring);
}

void clear_gate(bsp_ring& ring) { bsp_gate_set(&ring, 0, BSP_GATE_NONE); }

}  // namespace bsp::sidecar
