#include "crds/bspjob.h"

#include <algorithm>

#include "crds/names.h"
#include "crds/object.h"
#include "crds/pod_template.h"
#include "crds/reflect.h"

namespace bsp::crds {
namespace {

using nlohmann::json;

std::unexpected<Error> invalid(std::string_view field, std::string_view what) {
  return fail(ErrorCode::kInvalid, std::format("{}: {}", field, what));
}

}  // namespace

const json* app_container(const BspJobSpec& spec) {
  if (!spec.pod_template.is_object()) return nullptr;
  const auto pod = spec.pod_template.find("spec");
  if (pod == spec.pod_template.end() || !pod->is_object()) return nullptr;
  const auto containers = pod->find("containers");
  if (containers == pod->end() || !containers->is_array()) return nullptr;
  for (const json& c : *containers)
    if (c.is_object() && c.value("name", "") == names::kAppContainer) return &c;
  return nullptr;
}

void to_json(json& j, const BspJobSpec& spec) { j = reflect::write(spec); }
void to_json(json& j, const BspJobStatus& status) { j = reflect::write(status); }
void to_json(json& j, const Decision& decision) { j = reflect::write(decision); }
void to_json(json& j, const BspJob& job) {
  j = json{{"apiVersion", names::kApiVersion}, {"kind", names::kBspJobKind}};
  j["metadata"] = reflect::write(job.metadata);
  j["spec"] = reflect::write(job.spec);
  j["status"] = reflect::write(job.status);
}

Result<BspJob> bsp_job_from_json(const json& j) {
  BspJob job;
  BSP_CHECK_OK(read_object(j, names::kBspJobKind, job.metadata, job.spec, job.status));
  return job;
}

Result<void> validate(const BspJobSpec& spec) {
  if (spec.ranks < 1) return invalid("spec.ranks", "must be at least 1");
  BSP_CHECK_OK(validate_pod_template(spec.pod_template, "spec.template"));
  if (spec.sets.label.empty()) return invalid("spec.sets.label", "must not be empty; leave it out for migbsp.io/set");
  for (std::size_t i = 0; i < spec.sets.names.size(); ++i) {
    const std::string& name = spec.sets.names[i];
    if (name.empty()) return invalid(std::format("spec.sets.names[{}]", i), "must not be empty");
    if (std::ranges::find(spec.sets.names.begin(), spec.sets.names.begin() + i, name) !=
        spec.sets.names.begin() + i)
      return invalid(std::format("spec.sets.names[{}]", i), std::format("{} is named twice", name));
  }
  const ReschedulingSpec& r = spec.rescheduling;
  if (r.alpha < 1) return invalid("spec.rescheduling.alpha", "must be at least 1 superstep");
  if (!(r.d > 0 && r.d < 1)) return invalid("spec.rescheduling.d", "must lie between 0 and 1, both excluded");
  if (r.omega < 1) return invalid("spec.rescheduling.omega", "must be at least 1 call");
  if (!(r.delta >= 0 && r.delta <= 1)) return invalid("spec.rescheduling.delta", "must lie between 0 and 1");
  if (!(r.beta >= 0 && r.beta <= 1)) return invalid("spec.rescheduling.beta", "must lie between 0 and 1");
  if (!(r.x > 0 && r.x <= 1)) return invalid("spec.rescheduling.x", "must lie above 0 and be at most 1");
  if (!(r.min_gain >= 0 && r.min_gain < 1))
    return invalid("spec.rescheduling.minGain", "must be a fraction: at least 0 and below 1");
  if (!spec.superstep.call.starts_with("MPI_"))
    return invalid("spec.superstep.call", "must name an MPI collective, for example MPI_Barrier or "
                                          "MPI_Allreduce");
  if (spec.superstep.stride < 1) return invalid("spec.superstep.stride", "must be at least 1");
  if (auto size = quantity_value(spec.checkpoint.size_limit.text); !size || *size == 0)
    return invalid("spec.checkpoint.sizeLimit", "must be a size such as 512Mi or 2Gi");
  for (std::size_t i = 0; i < spec.carry_paths.size(); ++i)
    if (!spec.carry_paths[i].starts_with('/') || spec.carry_paths[i].find(':') != std::string::npos)
      return invalid(std::format("spec.carryPaths[{}]", i), "must be an absolute path without a colon");
  if (spec.run_policy.active_deadline_seconds == 0)
    return invalid("spec.runPolicy.activeDeadlineSeconds", "must be at least 1; leave it out for no limit");
  return {};
}

}  // namespace bsp::crds
