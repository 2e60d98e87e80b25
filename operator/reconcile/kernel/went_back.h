// A job whose stored status is older than what its ranks do: the API server's store was restored from a backup, or somebody has put
// an older status back. The sidecars show it, since they let a program only into an epoch that was committed, and follow only waves
// that were stored.
//
//   the ranks are in another epoch, or have stopped in a wave that the status doesn't know     their status is rebuilt (rebuild.h),
//                                                                                              or the job restarts
//   they have only followed a later wave                                                       waves count on from it (job_run.cc)
#pragma once

#include <cstdint>
#include <string>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

inline constexpr const char* kStatusWentBack = "StatusWentBack";

// What a sidecar says that can't be if the status is the newest one; "": nothing.
std::string ahead_of_status(const Observed& o);

}  // namespace bsp::reconcile
