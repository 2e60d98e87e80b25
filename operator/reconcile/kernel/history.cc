#include "operator/reconcile/kernel/history.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {
namespace {

// The next reconcile continues where there are thousands.
constexpr std::size_t kPerReconcile = 16;

}  // namespace

std::vector<MigrationDeletion> beyond_history(const Observed& o) {
  const std::size_t limit = o.job.spec.run_policy.migration_history_limit;
  std::vector<const crds::RankMigration*> ended;
  for (const auto* migrations : {&o.migrations, &o.older_migrations})
    for (const crds::RankMigration& m : *migrations)
      if (crds::is_finished(m.status.phase) && m.metadata.deletion_timestamp == Time{}) ended.push_back(&m);
  if (ended.size() <= limit) return {};
  std::set<std::string> needed;
  if (const auto wave = stored_wave(o.job.status); wave && *wave)
    for (const migrate::Move& move : (*wave)->moves) needed.insert(move.migration);
  for (const crds::RankMigration& asked : asked_on_pods(o)) needed.insert(asked.metadata.name);
  std::ranges::sort(ended, {},
                    [](const crds::RankMigration* m) { return std::tie(m->status.completion_time, m->metadata.name); });
  std::vector<MigrationDeletion> out;
  for (std::size_t i = 0; i < ended.size() - limit && out.size() < kPerReconcile; ++i)
    if (const crds::RankMigration& m = *ended[i]; !needed.contains(m.metadata.name))
      out.push_back({m.metadata.name, m.metadata.uid});
  return out;
}

}  // namespace bsp::reconcile
