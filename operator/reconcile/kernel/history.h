// Which finished RankMigrations may be deleted.
#pragma once

#include <string>
#include <vector>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

// Those beyond spec.runPolicy.migrationHistoryLimit, oldest first. Never one that is still needed: those of the stored wave,
// which receive its gain, and those of annotations that still stand, which would ask again. Where ranks have been, the scheduler
// knows without them (scheduler_state.h).
std::vector<MigrationDeletion> beyond_history(const Observed& o);

}  // namespace bsp::reconcile
