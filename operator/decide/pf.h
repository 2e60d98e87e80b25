// The predicted time of one superstep (AutoMig, Righi et al., INFOCOMP 2011, equations 5 to 7).
//
//   Time(i)   = Instructions(i) / ((1 − load)·cpu)    of the processor that holds i; sharing adds
//   up Comm(i,j) = max over Sets k of Bytes(i,k) · T(k,j)     j the Set of i pf        = max_i
//   Time(i) + max_i Comm(i,·) + max over the moved i of Mem(i, target)
//
// Instructions and Bytes are those of the last superstep, whatever the horizon: the equations say
// so. Bytes(i,k) was received from ranks that were in Set k in the measured superstep.
#pragma once

#include <span>
#include <vector>

#include "operator/decide/metrics.h"
#include "operator/decide/model.h"
#include "operator/decide/plan.h"

namespace bsp::decide {

// T with its arguments swapped: row j holds T(k, j) for every k.
Grid<double> transposed(const Grid<double>& T);

// Comm(i,j) from Bytes(i,·) and T(·,j); s.
double Comm(std::span<const double> Bytes, std::span<const double> T_to_j);

// max_i Time(i) + max_i Comm(i,·) with each rank on the processor that `placement` says; s.
// O(n·Sets).
double superstep_seconds(const Snapshot& snapshot, const Metrics& metrics,
                         std::span<const ProcessorId> placement);

// The same before and after moves, neither with their cost. In one pass over all ranks.
Forecast forecast_of(const Snapshot& snapshot, const Metrics& metrics, std::span<const Move> moves);

// Σ_{i on p} Instructions(i) / ((1 − load)·cpu) for every processor p; s.
std::vector<double> processor_seconds(const Snapshot& snapshot,
                                      std::span<const double> Instructions,
                                      std::span<const ProcessorId> placement);

std::vector<ProcessorId> current_placement(const Snapshot& snapshot);

}  // namespace bsp::decide
