// How far the ranks of a running job have come, and when: what one observation alone doesn't show.
#pragma once

#include <cstdint>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

class Progress {
 public:
  // Fills in progress and superstep_ended. Call it in each reconcile, with the job and its sidecars set.
  void fill(Observed& o);

 private:
  std::uint64_t completed_ = 0;   // the superstep that all ranks had completed in the last reconcile
  SteadyTime superstep_ended_{};  // when that was first seen; not set while they don't run
  std::uint64_t newest_ = 0;      // the newest superstep that a rank has completed
  SteadyTime newest_at_{};        // when that was reported
};

}  // namespace bsp::reconcile
