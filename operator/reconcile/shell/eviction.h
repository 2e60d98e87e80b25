// An eviction of a rank's pod: reads what kernel/eviction.h needs, and creates the RankMigration that it asks for.
#pragma once

#include "operator/kube/client.h"
#include "operator/reconcile/kernel/eviction.h"

namespace bsp::reconcile {

// Asks the API server, since a replica that doesn't lead has no cache. An error: there is no answer.
Result<EvictionAnswer> evict(kube::Client& client, const EvictionReview& review);

}  // namespace bsp::reconcile
