// Comm(i,j) of the ranks of a call, mostly without reading Bytes(i,·) where that is long: of the Sets k at i's peaks
// (peaks.h) the product is known, and of the others none exceeds rest · max_k T(k,j).
#pragma once

#include <span>
#include <vector>

#include "operator/decide/model/means.h"
#include "operator/decide/model/strategy.h"

namespace bsp::decide {

// T with its arguments swapped: row j holds T(k, j) for every k.
Grid<double> transposed(const Grid<double>& T);

// Comm(i,j) from Bytes(i,·) and T(·,j); s.
double Comm(std::span<const double> Bytes, std::span<const double> T_to_j);
double Comm(const SparseGrid& Bytes, RankId i, std::span<const double> T_to_j);

class CommOf final : public CommTimes {
 public:
  explicit CommOf(const Case& c);
  double operator()(RankId i, SetId j) const override;

 private:
  const Metrics& metrics_;
  Grid<double> T_to_;
  std::vector<double> largest_T_to_;  // by Set
};

}  // namespace bsp::decide
