// RankMigrations that have ended: which of them may go.
#pragma once

#include <string>
#include <vector>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

// Those beyond spec.runPolicy.migrationHistoryLimit, the oldest first. Never one that somebody still reads: those of the stored
// wave (its gain is written into them), and each rank's last move while rescheduling.cooldownSupersteps counts from it.
std::vector<Forgotten> beyond_history(const Observed& o);

}  // namespace bsp::reconcile
