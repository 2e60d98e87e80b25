// Maps spec.volumes to paths on this machine (pure), and creates and removes them.
#pragma once

#include <map>

#include "operator/local/pod_plan.h"

namespace bsp::local {

// Pure. Errors name the volume and the types that local mode supports.
Result<std::vector<VolumePlan>> plan_volumes(const nlohmann::json& pod_spec, const PlanInput& input,
                                             const std::string& pod_dir);
// The files in a Secret (data decoded from base64, stringData as is) or ConfigMap.
Result<std::map<std::string, std::string>> referenced_files(const std::string& kind, const std::string& name,
                                                            const PlanInput& input);

// Mounts volumes and writes their files. Keeps existing data, as an adopted pod needs it, except files.
Result<void> create_volumes(const std::vector<VolumePlan>& volumes);
// Updates the files of a Secret or ConfigMap, all at once like a kubelet: a reader never finds a new certificate beside an old
// key. The volume's directory must exist.
Result<void> write_files(const VolumePlan& volume);
// Unmounts everything below `dir` and removes it. Succeeds if it doesn't exist.
Result<void> remove_mounted_tree(const std::string& dir);

}  // namespace bsp::local
