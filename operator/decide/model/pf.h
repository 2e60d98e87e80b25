// The predicted time of one superstep (AutoMig, Righi et al., INFOCOMP 2011, equations 5 to 7).
//
//   Time(i)   = Instructions(i) / ((1 − load)·cpu)        of the processor that holds i; sharing adds up
//   Comm(i,j) = max over Sets k of Bytes(i,k) · T(k,j)    j the Set of i
//   pf        = max_i Time(i) + max_i Comm(i,·) + max over the moved i of Mem(i, target)
//
// Instructions and Bytes are those of the last superstep, whatever the horizon: the equations say
// so. Bytes(i,k) was received from ranks that were in Set k in the measured superstep.
#pragma once

#include <span>
#include <vector>

#include "operator/decide/model/metrics.h"
#include "operator/decide/model/model.h"
#include "operator/decide/model/plan.h"
#include "operator/decide/model/strategy.h"

namespace bsp::decide {

// max_i Time(i) + max_i Comm(i,·) before and after moves, neither with their cost; s.
Forecast forecast_of(const Case& c, std::span<const Move> moves);

// Σ_{i on p} Instructions(i) / ((1 − load)·cpu) for every processor p; s.
std::vector<double> processor_seconds(const Columns& columns, std::span<const double> Instructions,
                                      std::span<const ProcessorId> placement);

}  // namespace bsp::decide
