// What the ranks decide together at a committed gate.
#pragma once

#include <cstdint>
#include <string>

#include "sidecar/shim/epoch/blockers.h"

namespace bsp::shim {

// The ranks' verdict on a committed gate, identical on every rank.
enum class Verdict { kClose, kPostpone, kDrop };
struct Agreement {
  Verdict verdict = Verdict::kPostpone;
  std::string reason{};  // of a postponement; "" if it is another rank's alone
  bool settled = false;  // the ranks may have taken messages, to be delivered again
};

// `blocker`: this rank's; `gate`: the word that says whether the gate is to be dropped.
Agreement agree(Blocker blocker, std::uint64_t gate);

}  // namespace bsp::shim
