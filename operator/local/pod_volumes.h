// spec.volumes -> what lies where on this machine (pure), and making and removing it.
#pragma once

#include <map>

#include "operator/local/pod_plan.h"

namespace bsp::local {

// Pure. Errors name the volume and the kinds that local mode has.
Result<std::vector<VolumePlan>> plan_volumes(const nlohmann::json& pod_spec, const PlanInput& input,
                                             const std::string& pod_dir);
// The files in a Secret (base64 decoded, stringData as it is) or ConfigMap.
Result<std::map<std::string, std::string>> referenced_files(const std::string& kind, const std::string& name,
                                                            const PlanInput& input);

// Mounts and writes; what is there already stays as it is (a pod that is adopted keeps its data), but for files.
Result<void> make_volumes(const std::vector<VolumePlan>& volumes);
// Brings the files of a Secret or ConfigMap up to date, all at once, as a kubelet does: a reader never finds a new certificate
// beside an old key. Needs the volume's directory.
Result<void> write_files(const VolumePlan& volume);
// Unmounts everything below `dir` and removes it. Fine if it is gone.
Result<void> remove_mounted_tree(const std::string& dir);

}  // namespace bsp::local
