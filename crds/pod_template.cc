#include "crds/pod_template.h"

#include <algorithm>
#include <format>
#include <nlohmann/json.hpp>
#include <vector>

#include "crds/names.h"
#include "crds/nearest.h"
#include "crds/reflect.h"

namespace bsp::crds {
namespace {

using nlohmann::json;
using Names = std::vector<std::string_view>;

const Names kPodSpec{"activeDeadlineSeconds",
                     "affinity",
                     "automountServiceAccountToken",
                     "containers",
                     "dnsConfig",
                     "dnsPolicy",
                     "enableServiceLinks",
                     "ephemeralContainers",
                     "hostAliases",
                     "hostIPC",
                     "hostNetwork",
                     "hostPID",
                     "hostUsers",
                     "hostname",
                     "hostnameOverride",
                     "imagePullSecrets",
                     "initContainers",
                     "nodeName",
                     "nodeSelector",
                     "os",
                     "overhead",
                     "preemptionPolicy",
                     "priority",
                     "priorityClassName",
                     "readinessGates",
                     "resourceClaims",
                     "resources",
                     "restartPolicy",
                     "runtimeClassName",
                     "schedulerName",
                     "schedulingGates",
                     "securityContext",
                     "serviceAccount",
                     "serviceAccountName",
                     "setHostnameAsFQDN",
                     "shareProcessNamespace",
                     "subdomain",
                     "terminationGracePeriodSeconds",
                     "tolerations",
                     "topologySpreadConstraints",
                     "volumes",
                     "workloadRef"};
const Names kContainer{"args",
                       "command",
                       "env",
                       "envFrom",
                       "image",
                       "imagePullPolicy",
                       "lifecycle",
                       "livenessProbe",
                       "name",
                       "ports",
                       "readinessProbe",
                       "resizePolicy",
                       "resources",
                       "restartPolicy",
                       "restartPolicyRules",
                       "securityContext",
                       "startupProbe",
                       "stdin",
                       "stdinOnce",
                       "terminationMessagePath",
                       "terminationMessagePolicy",
                       "tty",
                       "volumeDevices",
                       "volumeMounts",
                       "workingDir"};

std::unexpected<Error> invalid(const std::string& field, std::string_view what) {
  return fail(ErrorCode::kInvalid, std::format("{}: {}", field, what));
}

Result<void> check_names(const json& object, const Names& known, const std::string& path) {
  if (!object.is_object()) return invalid(path, std::format("must be an object, not {}", reflect::type_name(object)));
  for (const auto& [name, value] : object.items()) {
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::string near = nearest(name, known);
    return invalid(std::format("{}.{}", path, name),
                   near.empty() ? std::string("unknown field") : std::format("unknown field; did you mean {}?", near));
  }
  return {};
}

// A list of texts; `args: [--width, 1024]` is the usual mistake.
Result<void> check_texts(const json& container, const char* field, const std::string& path) {
  const auto list = container.find(field);
  if (list == container.end() || list->is_null()) return {};
  const std::string at = std::format("{}.{}", path, field);
  if (!list->is_array())
    return invalid(at,
                   std::format("must be a list of texts, not {}; write for example [my_program, \"--steps\", \"100\"]",
                               reflect::type_name(*list)));
  for (std::size_t i = 0; i < list->size(); ++i)
    if (const json& item = (*list)[i]; !item.is_string())
      return invalid(std::format("{}[{}]", at, i),
                     std::format("must be a text, not {}{}", reflect::type_name(item),
                                 item.is_primitive() ? std::format("; put it in quotes: \"{}\"", item.dump()) : ""));
  return {};
}

Result<void> check_env(const json& container, const std::string& path) {
  const auto list = container.find("env");
  if (list == container.end() || list->is_null()) return {};
  if (!list->is_array()) return invalid(path + ".env", "must be a list of {name: …, value: …}");
  for (std::size_t i = 0; i < list->size(); ++i) {
    const json& item = (*list)[i];
    const std::string at = std::format("{}.env[{}]", path, i);
    BSP_CHECK_OK(check_names(item, {"name", "value", "valueFrom"}, at));
    if (!item.contains("name") || !item["name"].is_string())
      return invalid(at + ".name", "required: the variable's name");
    if (item.contains("value") && !item["value"].is_string())
      return invalid(at + ".value", std::format("must be a text, not {}; put it in quotes: \"{}\"",
                                                reflect::type_name(item["value"]), item["value"].dump()));
  }
  return {};
}

Result<void> check_container(const json& container, const std::string& path) {
  BSP_CHECK_OK(check_names(container, kContainer, path));
  const auto name = container.find("name");
  if (name == container.end() || !name->is_string())
    return invalid(path + ".name", "required: call the container that runs the MPI program app");
  if (*name == std::string(names::kSidecarContainer))
    return invalid(path + ".name", "sidecar is the operator's own container; choose another name");
  const auto image = container.find("image");
  if (image == container.end() || !image->is_string() || image->get_ref<const std::string&>().empty())
    return invalid(path + ".image", "required: the image that holds the MPI program");
  BSP_CHECK_OK(check_texts(container, "command", path));
  BSP_CHECK_OK(check_texts(container, "args", path));
  return check_env(container, path);
}

// What the operator adds to every pod has names of its own.
Result<void> check_names_left(const json& spec, const char* list, const Names& taken, std::string_view whose,
                              const std::string& path) {
  const auto items = spec.find(list);
  if (items == spec.end() || items->is_null()) return {};
  if (!items->is_array()) return invalid(std::format("{}.{}", path, list), "must be a list");
  for (std::size_t i = 0; i < items->size(); ++i) {
    const json& item = (*items)[i];
    const std::string at = std::format("{}.{}[{}].name", path, list, i);
    const auto name = item.is_object() ? item.find("name") : item.end();
    if (name == item.end() || !name->is_string()) return invalid(at, "required, but not given");
    if (std::ranges::find(taken, name->get_ref<const std::string&>()) != taken.end())
      return invalid(at, std::format("{} is the operator's own {}; choose another name",
                                     name->get_ref<const std::string&>(), whose));
  }
  return {};
}

}  // namespace

Result<void> validate_pod_template(const json& pod_template, const std::string& path) {
  BSP_CHECK_OK(check_names(pod_template, {"metadata", "spec"}, path));
  const auto spec = pod_template.find("spec");
  if (spec == pod_template.end() || !spec->is_object())
    return invalid(path + ".spec", "required: the pod template needs spec.containers with one container called app");
  BSP_CHECK_OK(check_names(*spec, kPodSpec, path + ".spec"));
  BSP_CHECK_OK(check_names_left(*spec, "initContainers", {names::kSidecarContainer}, "container", path + ".spec"));
  BSP_CHECK_OK(check_names_left(*spec, "volumes", {"bsp-runtime", "bsp-run", "bsp-tls"}, "volume", path + ".spec"));
  if (const auto node = spec->find("nodeName"); node != spec->end() && !node->is_null() && *node != "")
    return invalid(path + ".spec.nodeName",
                   "leave it out: every rank would be on one node, past the scheduler; choose nodes by "
                   "spec.sets, nodeSelector or affinity");
  const auto containers = spec->find("containers");
  const std::string at = path + ".spec.containers";
  if (containers == spec->end() || !containers->is_array() || containers->empty())
    return invalid(at, "must be a list with one container called app (the one that runs the MPI program)");
  int apps = 0;
  for (std::size_t i = 0; i < containers->size(); ++i) {
    const json& container = (*containers)[i];
    BSP_CHECK_OK(check_container(container, std::format("{}[{}]", at, i)));
    if (container["name"] == std::string(names::kAppContainer)) ++apps;
  }
  if (apps != 1)
    return invalid(at,
                   std::format("{} containers are called app; exactly one must be (the one that runs the MPI program)",
                               apps == 0 ? "no" : std::to_string(apps)));
  return {};
}

}  // namespace bsp::crds
