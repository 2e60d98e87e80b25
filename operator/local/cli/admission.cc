#include "operator/local/cli/admission.h"

#include <format>

#include "base/json/fields.h"
#include "crds/bspjob.h"
#include "crds/rankmigration.h"

namespace bsp::local {
namespace {

using nlohmann::json;

Result<json> admit_job(const json& next, const json* current) {
  BSP_TRY(const crds::BspJob job, crds::bsp_job_from_json(next));
  BSP_CHECK_OK(crds::validate(job.spec));
  json out = next;
  out["spec"] = json();
  to_json(out["spec"], job.spec);
  if (!current) return out;
  json was = part_at(*current, "spec"), is = out["spec"];
  for (json* spec : {&was, &is}) {
    spec->erase("runPolicy");
    spec->erase("objective");
    // Of spec.rescheduling only what a job begins with can't change.
    const json rescheduling = part_at(*spec, "rescheduling");
    spec->erase("rescheduling");
    for (const char* field : {"heuristic", "alpha", "d"})
      (*spec)[std::format("rescheduling.{}", field)] = part_at(rescheduling, field);
  }
  for (const auto& [field, value] : is.items())
    if (!was.contains(field) || was[field] != value)
      return fail(
          ErrorCode::kInvalid,
          std::format("spec.{}: can't be changed while the job exists; delete the job and create it again", field));
  return out;
}

Result<json> admit_migration(const json& next, const json* current) {
  BSP_TRY(const crds::RankMigration migration, crds::rank_migration_from_json(next));
  BSP_CHECK_OK(crds::validate(migration.spec));
  if (current && part_at(*current, "spec") != part_at(next, "spec"))
    return fail(ErrorCode::kInvalid, "spec: can't be changed; create another RankMigration");
  return next;
}

}  // namespace

Result<kube::Object> admit(const kube::Object& next, const kube::Object* current) {
  const std::string kind = text_at(next, "kind");
  if (kind == names::kBspJobKind) return admit_job(next, current);
  if (kind == names::kRankMigrationKind) return admit_migration(next, current);
  return next;
}

}  // namespace bsp::local
