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

#include "operator/decide/metrics.h"
#include "operator/decide/model.h"
#include "operator/decide/plan.h"
#include "operator/decide/strategy.h"

namespace bsp::decide {

// T with its arguments swapped: row j holds T(k, j) for every k.
Grid<double> transposed(const Grid<double>& T);

// Comm(i,j) from Bytes(i,·) and T(·,j); s.
double Comm(std::span<const double> Bytes, std::span<const double> T_to_j);
double Comm(const SparseGrid& Bytes, RankId i, std::span<const double> T_to_j);

// Comm(i,j) of the ranks of a call, where Bytes(i,·) is long mostly without reading it: of the Sets k at i's peaks
// (peaks.h) the product is known, and of the others none exceeds rest · max_k T(k,j).
class CommOf {
 public:
  explicit CommOf(const Case& c);
  double operator()(RankId i, SetId j) const;  // s

 private:
  const Metrics& metrics_;
  Grid<double> T_to_;
  std::vector<double> largest_T_to_;  // by Set
};

// max_i Time(i) + max_i Comm(i,·) with each rank on the processor that `placement` says; s.
// O(n·Sets).
double superstep_seconds(const Snapshot& snapshot, const Metrics& metrics, std::span<const ProcessorId> placement);

// The same before and after moves, neither with their cost.
Forecast forecast_of(const Case& c, std::span<const Move> moves);

// Σ_{i on p} Instructions(i) / ((1 − load)·cpu) for every processor p; s.
std::vector<double> processor_seconds(const Snapshot& snapshot, std::span<const double> Instructions,
                                      std::span<const ProcessorId> placement);
std::vector<double> processor_seconds(const Columns& columns, std::span<const double> Instructions,
                                      std::span<const ProcessorId> placement);

std::vector<ProcessorId> current_placement(const Snapshot& snapshot);

}  // namespace bsp::decide
