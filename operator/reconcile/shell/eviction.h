// An eviction of a rank's pod: reads what kernel/eviction.h needs, and creates the RankMigration that it asks for.
#pragma once

#include <map>
#include <string>

#include "operator/kube/client.h"
#include "operator/reconcile/kernel/eviction.h"

namespace bsp::reconcile {

// Asks the API server, since a replica that doesn't lead has no cache. An error: there is no answer.
Result<EvictionAnswer> evict(kube::Client& client, const EvictionReview& review);

// Its two halves. `labels`: of the RankMigrations, beside their own.
Result<EvictionFacts> facts_of(kube::Client& client, const EvictionReview& review);
Result<void> ask_to_leave(kube::Client& client, const EvictionReview& review, const EvictionAnswer& answer,
                          const std::map<std::string, std::string>& labels = {});

}  // namespace bsp::reconcile
