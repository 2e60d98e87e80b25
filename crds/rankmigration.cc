#include "crds/rankmigration.h"

#include <format>

#include "crds/names.h"
#include "crds/object.h"
#include "crds/reflect.h"
#include "crds/stored_status.h"

namespace bsp::crds {

using nlohmann::json;

void to_json(json& j, const RankMigrationSpec& spec) { j = reflect::write(spec); }
void to_json(json& j, const RankMigrationStatus& status) { j = reflect::write(status); }
void to_json(json& j, const RankMigration& migration) {
  j = json{{"apiVersion", names::kApiVersion}, {"kind", names::kRankMigrationKind}};
  j["metadata"] = reflect::write(migration.metadata);
  j["spec"] = reflect::write(migration.spec);
  j["status"] = reflect::write(migration.status);
}

std::string gain_text(double seconds, double error, bool is_noise) {
  if (is_noise) return std::format("noise, ± {}", duration_text(error));
  return error > 0 ? std::format("{} ± {}", duration_text(seconds), duration_text(error)) : duration_text(seconds);
}

Result<RankMigration> rank_migration_from_json(const json& j) {
  RankMigration migration;
  BSP_CHECK_OK(read_object(j, names::kRankMigrationKind, migration.metadata, migration.spec, migration.status));
  return migration;
}

Result<void> validate(const RankMigrationSpec& spec) {
  if (spec.job.empty()) return fail(ErrorCode::kInvalid, "spec.job: required: the name of the BSPJob");
  if (spec.target_set.empty() == spec.target_node.empty())
    return fail(ErrorCode::kInvalid, "spec.targetSet: set either spec.targetSet or spec.targetNode, not both");
  return {};
}

}  // namespace bsp::crds
