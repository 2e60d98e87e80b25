#include "crds/pod_template.h"

#include <algorithm>
#include <format>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/json/fields.h"
#include "crds/names.h"
#include "crds/pod_schema.h"

namespace bsp::crds {
namespace {

using nlohmann::json;
using Names = std::vector<std::string_view>;

// Had a template a volume of the name of the sidecar's storage, its own containers could mount that.
const Names kReservedVolumes{"bsp-runtime", "bsp-run", "bsp-shm", "bsp-tls", "bsp-sets", "bsp-sets-ca", "bsp-set-key"};
const Names kReservedContainers{names::kSidecarContainer, "bsp-runtime", "bsp-user"};

std::unexpected<Error> invalid(const std::string& field, std::string_view what) {
  return fail(ErrorCode::kInvalid, std::format("{}: {}", field, what));
}

Result<void> check_container(const json& container, const std::string& path) {
  const std::string name = text_at(container, "name");
  if (name.empty()) return invalid(path + ".name", "required: name the container that runs the MPI program app");
  if (std::ranges::contains(kReservedContainers, name))
    return invalid(path + ".name", std::format("{} is reserved for the operator; choose another name", name));
  if (text_at(container, "image").empty())
    return invalid(path + ".image", "required: the image that holds the MPI program");
  const json& env = part_at(container, "env");
  for (std::size_t i = 0; i < env.size(); ++i)
    if (text_at(env[i], "name").empty())
      return invalid(std::format("{}.env[{}].name", path, i), "required: the variable's name");
  return {};
}

// The operator reserves the names of what it adds to every pod.
Result<void> check_reserved_names(const json& spec, const char* list, const Names& taken, const std::string& path) {
  const json& items = part_at(spec, list);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string at = std::format("{}.{}[{}].name", path, list, i), name = text_at(items[i], "name");
    if (name.empty()) return invalid(at, "is required");
    if (std::ranges::find(taken, name) != taken.end())
      return invalid(at, std::format("{} is reserved for the operator; choose another name", name));
  }
  return {};
}

}  // namespace

Result<void> validate_pod_template(const json& pod_template, const std::string& path) {
  BSP_CHECK_OK(check_nesting(pod_template, path));
  if (!part_at(pod_template, "spec").is_object())
    return invalid(path + ".spec", "required: the pod template needs spec.containers with one container named app");
  const json& spec = part_at(pod_template, "spec");
  const std::string at = path + ".spec.containers";
  const json& containers = part_at(spec, "containers");
  if (!containers.is_array() || containers.empty())
    return invalid(at, "must be a list with one container named app (the one that runs the MPI program)");
  BSP_CHECK_OK(check_shape(pod_template, kPodTemplate, path));
  BSP_CHECK_OK(check_reserved_names(spec, "initContainers", kReservedContainers, path + ".spec"));
  BSP_CHECK_OK(check_reserved_names(spec, "volumes", kReservedVolumes, path + ".spec"));
  if (!text_at(spec, "nodeName").empty())
    return invalid(path + ".spec.nodeName",
                   "leave it out: it would bypass the scheduler and bind every rank to one node; select nodes with "
                   "spec.sets, nodeSelector or affinity");
  int apps = 0;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    BSP_CHECK_OK(check_container(containers[i], std::format("{}[{}]", at, i)));
    if (text_at(containers[i], "name") == names::kAppContainer) ++apps;
  }
  if (apps != 1)
    return invalid(at,
                   std::format("{} containers are named app; exactly one must be (the one that runs the MPI program)",
                               apps == 0 ? "no" : std::to_string(apps)));
  return {};
}

}  // namespace bsp::crds
