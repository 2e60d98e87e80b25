#include "operator/screens/move.h"

#include <chrono>
#include <format>

#include "crds/names.h"
#include "crds/nearest.h"
#include "operator/cli/exit_code.h"
#include "operator/screens/printable.h"

namespace bsp::screens {
namespace {

Result<void> check_known(const char* what, const std::string& name, const std::set<std::string>& known) {
  if (known.contains(name)) return {};
  return fail(ErrorCode::kInvalid,
              std::format("there is no {} {}{}", what, name, crds::suggestion(name, {known.begin(), known.end()})));
}

// The time makes it unique, since a rank may move many times.
std::string name_for(const crds::BspJob& job, std::uint32_t rank, Time now) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  return named_after(job.metadata, std::format("-r{}-{:x}", rank, ms));
}

}  // namespace

Result<void> check_rank(const crds::BspJob& job, std::uint32_t rank) {
  if (rank < job.spec.ranks) return {};
  return fail(ErrorCode::kInvalid,
              std::format("job {} has no rank {}, only 0 to {}", job.metadata.name, rank, job.spec.ranks - 1));
}

Result<crds::RankMigration> migration_for(const crds::BspJob& job, const MoveWish& wish,
                                          const std::set<std::string>& sets,
                                          const std::optional<std::set<std::string>>& nodes, Time now) {
  const auto& s = job.status;
  BSP_CHECK_OK(check_rank(job, wish.rank));
  if (crds::is_finished(s.phase))
    return fail(ErrorCode::kRefused, std::format("job {} has ended ({})", job.metadata.name, crds::to_string(s.phase)));
  if (!wish.set.empty()) BSP_CHECK_OK(check_known("Set", wish.set, sets));
  if (!wish.node.empty() && wish.node != crds::kAnyOtherNode && nodes)
    BSP_CHECK_OK(check_known("node", wish.node, *nodes));
  if (wish.rank < s.ranks.size() && !wish.set.empty() && s.ranks[wish.rank].set == wish.set)
    return fail(ErrorCode::kRefused, std::format("rank {} is already in Set {}", wish.rank, wish.set));
  if (wish.rank < s.ranks.size() && !wish.node.empty() && s.ranks[wish.rank].node == wish.node)
    return fail(ErrorCode::kRefused, std::format("rank {} is already on node {}", wish.rank, wish.node));
  crds::RankMigration migration;
  migration.metadata.name = name_for(job, wish.rank, now);
  migration.metadata.name_space = job.metadata.name_space;
  migration.metadata.labels[std::string(names::kLabelJob)] = job.metadata.name;
  migration.spec.job = job.metadata.name;
  migration.spec.rank = RankId{wish.rank};
  migration.spec.target_set = wish.set;
  migration.spec.target_node = wish.node;
  return migration;
}

std::string created_line(const crds::RankMigration& migration) {
  return std::format("rankmigration.{}/{} created", names::kGroup, migration.metadata.name);
}

Result<int> follow(const std::function<Result<crds::RankMigration>()>& read,
                   const std::function<void(const std::string&)>& say) {
  for (std::string said;;) {
    BSP_TRY(const crds::RankMigration migration, read());
    const auto& s = migration.status;
    std::string line =
        printable(std::format("{}{}{}", crds::to_string(s.phase), s.message.empty() ? "" : ": ", s.message));
    if (line != said) say(line);
    if (crds::is_finished(s.phase)) return s.phase == crds::MigrationPhase::kSucceeded ? cli::kDone : cli::kFailed;
    said = std::move(line);
  }
}

}  // namespace bsp::screens
