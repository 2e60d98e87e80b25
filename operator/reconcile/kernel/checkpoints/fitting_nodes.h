// On which nodes the ranks of a checkpoint set are restored, as far as that is known of a node. Pure.
//
//   its CPU lacks what a rank's libraries have seen     none of those ranks, ever
//   the like, of all of its Set of which that is known  only where no other Set has room (observe/cpu_facts.h)
//   a restore of the set has failed there               only where no other node has room
//
// So a set that a node's CPU refuses is tried on others, and given up only when none may have what it needs. In a cluster whose scheduler
// chooses the node, the pods say the same to that.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

// The nodes for the mapping of an attempt that starts from the set: those that are out are cordoned. As they are where no rest has room,
// or Kueue has admitted the job to certain Sets.
std::vector<observe::NodeFacts> nodes_to_resume_on(const crds::StoredSet& set, const Observed& o,
                                                   std::vector<observe::NodeFacts> nodes);
// Nodes of that Set whose CPUs lack something for one of these ranks.
std::vector<std::string> unfit_nodes(const crds::StoredSet& set, std::span<const std::uint32_t> ranks,
                                     const std::string& of_set, const Observed& o);
// There may be nodes for all ranks. Without a scheduler that waits for them, they have room now.
bool may_fit(const crds::StoredSet& set, const Observed& o);

}  // namespace bsp::reconcile
