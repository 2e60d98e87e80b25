// Nodes that are drained, by kubectl, an autoscaler or the cloud: their ranks move away before their pods end. A
// PodDisruptionBudget keeps evictions off meanwhile, and the drain goes on by itself once the pods have gone.
//
//   a node with ranks is cordoned, tainted or being deleted ─> one wave moves all of them away ─> the node is empty
//                                    │                └ no slot, no memory: Draining says NowhereToGo, tried again
//                                    └ after spec.runPolicy.drainTimeoutSeconds the pods may be evicted: a restart
//
// Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "operator/reconcile/kernel/conditions.h"
#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

// A request for each rank that has to leave its node, except ranks that a RankMigration made by hand moves.
std::vector<MoveRequest> ranks_to_move_away(const Observed& o, const std::vector<MoveRequest>& asked);
// The condition; `stuck`: why a rank can't move away now. True if it is new or another one than before.
bool show_drain(const Observed& o, const std::string& stuck, crds::BspJobStatus& status);
// So many pods of the job as it is have to stay where they are; 0: they may be evicted.
std::uint32_t pods_to_keep(const Observed& o, crds::JobPhase phase);
nlohmann::json make_disruption_budget(const crds::BspJob& job, std::uint32_t pods);

}  // namespace bsp::reconcile
