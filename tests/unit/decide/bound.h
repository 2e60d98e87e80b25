// What F of bottleneck.h is at least, whatever the plan: to say how far from the best a plan can be where there are too
// many mappings to try them all.
//
// If the dearest move of a plan costs μ, every rank is in a Set with Mem ≤ μ (or where it was), so that
//   Time   ≥ max_i I(i) ÷ the fastest processor open to i at that cost
//   Time   ≥ Σ I(i) ÷ Σ available capacity                                 the best share is an even one
//   Time   ≥ max_k (k-th largest I) ÷ (k-th fastest slot)                  where slots are limited
//   Comm   ≥ max_i of the least Comm(i,j) at that cost
// and F ≥ the least of α·(Time + Comm) + μ over all μ.
#pragma once

#include "operator/decide/model/strategy.h"

namespace bsp::decide {

// s. O(n·Sets·(Sets + log n)).
double objective_lower_bound(const Case& c, double alpha);

}  // namespace bsp::decide
