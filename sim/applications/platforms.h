// The two platforms of the sources. Their parameters are in calibration.h.
#pragma once

#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "operator/decide/model/mapping.h"
#include "sim/applications/calibration.h"
#include "sim/platform.h"

namespace bsp::sim {

// The platform of the MigBSP chapter and of AutoMig, in the order in which the initial mapping fills it (one process
// per node, then again from the start):
//
//   Labtec L, 20 nodes ── R1 ── 1 Gb/s ── R2 ── 1 Gb/s ── R3        L1 … L20, C1 … C16, F1 … F6, I1 … I112, A1 … A20
//   Corisco C, 16 ─────── R1              R2 ── Frontal F, 6        10 processes: L1–10
//                                         R2 ── ICE I, 112          25: L1–20, C1–5
//                                         R3 ── Aquario A, 20       50: L1–20, C1–16, F1–6, I1–8
Platform five_sets(const calibration::Choice& choice = {});

// Three sites of Grid'5000 for 60 processes (sim/grid5000), to compare other heuristics there: each machine is one processor, and all
// messages of a superstep start at once.
Platform grid5000_platform(const calibration::Choice& choice = {});
std::vector<ProcessorId> grid5000_mapping(decide::Mapping mapping);

}  // namespace bsp::sim
