#include "crds/pod_schema.h"

#include <algorithm>
#include <format>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/json/fields.h"
#include "crds/meta.h"
#include "crds/nearest.h"
#include "crds/reflect.h"

namespace bsp::crds {
namespace {

using nlohmann::json;
using enum Shape;

constexpr Field kProfile[] = {{"type", kText}, {"localhostProfile", kText}};
constexpr Field kCapabilities[] = {{"add", kTexts}, {"drop", kTexts}};
constexpr Field kSecurityContext[] = {  // a pod's and a container's
    {"runAsUser", kNumber},
    {"runAsGroup", kNumber},
    {"runAsNonRoot", kFlag},
    {"privileged", kFlag},
    {"allowPrivilegeEscalation", kFlag},
    {"readOnlyRootFilesystem", kFlag},
    {"capabilities", kObject, kCapabilities},
    {"seccompProfile", kObject, kProfile},
    {"appArmorProfile", kObject, kProfile},
    {"seLinuxOptions", kObject},
    {"windowsOptions", kObject},
    {"procMount", kText},
    {"fsGroup", kNumber},
    {"fsGroupChangePolicy", kText},
    {"supplementalGroups", kNumbers},
    {"supplementalGroupsPolicy", kText},
    {"sysctls", kObjects}};
constexpr Field kResources[] = {{"limits", kQuantities}, {"requests", kQuantities}, {"claims", kObjects}};
constexpr Field kKeyRef[] = {{"name", kText}, {"key", kText}, {"optional", kFlag}};
constexpr Field kFieldRef[] = {{"apiVersion", kText}, {"fieldPath", kText}};
constexpr Field kValueFrom[] = {{"fieldRef", kObject, kFieldRef},
                                {"secretKeyRef", kObject, kKeyRef},
                                {"configMapKeyRef", kObject, kKeyRef},
                                {"resourceFieldRef", kObject},
                                {"fileKeyRef", kObject}};
constexpr Field kEnv[] = {{"name", kText}, {"value", kText}, {"valueFrom", kObject, kValueFrom}};
constexpr Field kVolumeMount[] = {{"name", kText},        {"mountPath", kText},        {"subPath", kText},
                                  {"subPathExpr", kText}, {"mountPropagation", kText}, {"recursiveReadOnly", kText},
                                  {"readOnly", kFlag}};
constexpr Field kContainer[] = {{"args", kTexts},
                                {"command", kTexts},
                                {"env", kObjects, kEnv, true},
                                {"envFrom", kObjects},
                                {"image", kText},
                                {"imagePullPolicy", kText},
                                {"lifecycle", kObject},
                                {"livenessProbe", kObject},
                                {"name", kText},
                                {"ports", kObjects},
                                {"readinessProbe", kObject},
                                {"resizePolicy", kObjects},
                                {"resources", kObject, kResources},
                                {"restartPolicy", kText},
                                {"restartPolicyRules", kObjects},
                                {"securityContext", kObject, kSecurityContext},
                                {"startupProbe", kObject},
                                {"stdin", kFlag},
                                {"stdinOnce", kFlag},
                                {"terminationMessagePath", kText},
                                {"terminationMessagePolicy", kText},
                                {"tty", kFlag},
                                {"volumeDevices", kObjects},
                                {"volumeMounts", kObjects, kVolumeMount},
                                {"workingDir", kText}};

constexpr Field kItem[] = {{"key", kText}, {"path", kText}, {"mode", kNumber}};
constexpr Field kFiles[] = {
    {"secretName", kText}, {"name", kText}, {"defaultMode", kNumber}, {"items", kObjects, kItem}, {"optional", kFlag}};
constexpr Field kEmptyDir[] = {{"medium", kText}, {"sizeLimit", kQuantity}};
constexpr Field kHostPath[] = {{"path", kText}, {"type", kText}};
constexpr Field kImage[] = {{"reference", kText}, {"pullPolicy", kText}};
constexpr Field kVolume[] = {{"name", kText},
                             {"emptyDir", kObject, kEmptyDir},
                             {"secret", kObject, kFiles},
                             {"configMap", kObject, kFiles},
                             {"hostPath", kObject, kHostPath},
                             {"image", kObject, kImage},
                             {"persistentVolumeClaim", kObject},
                             {"projected", kObject},
                             {"downwardAPI", kObject},
                             {"ephemeral", kObject},
                             {"csi", kObject},
                             {"nfs", kObject}};

constexpr Field kRequirement[] = {{"key", kText}, {"operator", kText}, {"values", kTexts}};
constexpr Field kTerm[] = {{"matchExpressions", kObjects, kRequirement}, {"matchFields", kObjects, kRequirement}};
constexpr Field kNodeSelector[] = {{"nodeSelectorTerms", kObjects, kTerm}};
constexpr Field kPreferred[] = {{"weight", kNumber}, {"preference", kObject, kTerm}};
constexpr Field kNodeAffinity[] = {{"requiredDuringSchedulingIgnoredDuringExecution", kObject, kNodeSelector},
                                   {"preferredDuringSchedulingIgnoredDuringExecution", kObjects, kPreferred}};
constexpr Field kAffinity[] = {
    {"nodeAffinity", kObject, kNodeAffinity}, {"podAffinity", kObject}, {"podAntiAffinity", kObject}};
constexpr Field kToleration[] = {
    {"key", kText}, {"operator", kText}, {"value", kText}, {"effect", kText}, {"tolerationSeconds", kNumber}};

constexpr Field kPodSpec[] = {{"activeDeadlineSeconds", kNumber},
                              {"affinity", kObject, kAffinity},
                              {"automountServiceAccountToken", kFlag},
                              {"containers", kObjects, kContainer, true},
                              {"dnsConfig", kObject},
                              {"dnsPolicy", kText},
                              {"enableServiceLinks", kFlag},
                              {"ephemeralContainers", kObjects},
                              {"hostAliases", kObjects},
                              {"hostIPC", kFlag},
                              {"hostNetwork", kFlag},
                              {"hostPID", kFlag},
                              {"hostUsers", kFlag},
                              {"hostname", kText},
                              {"hostnameOverride", kText},
                              {"imagePullSecrets", kObjects},
                              {"initContainers", kObjects, kContainer, true},
                              {"nodeName", kText},
                              {"nodeSelector", kTextMap},
                              {"os", kObject},
                              {"overhead", kQuantities},
                              {"preemptionPolicy", kText},
                              {"priority", kNumber},
                              {"priorityClassName", kText},
                              {"readinessGates", kObjects},
                              {"resourceClaims", kObjects},
                              {"resources", kObject, kResources},
                              {"restartPolicy", kText},
                              {"runtimeClassName", kText},
                              {"schedulerName", kText},
                              {"schedulingGates", kObjects},
                              {"schedulingGroup", kObject},
                              {"securityContext", kObject, kSecurityContext},
                              {"serviceAccount", kText},
                              {"serviceAccountName", kText},
                              {"setHostnameAsFQDN", kFlag},
                              {"shareProcessNamespace", kFlag},
                              {"subdomain", kText},
                              {"terminationGracePeriodSeconds", kNumber},
                              {"tolerations", kObjects, kToleration},
                              {"topologySpreadConstraints", kObjects},
                              {"volumes", kObjects, kVolume},
                              {"workloadRef", kObject}};
constexpr Field kMetadata[] = {
    {"labels", kTextMap}, {"annotations", kTextMap}, {"finalizers", kTexts},       {"name", kText},
    {"namespace", kText}, {"generateName", kText},   {"ownerReferences", kObjects}};
constexpr Field kTemplate[] = {{"metadata", kObject, kMetadata}, {"spec", kObject, kPodSpec, true}};

constexpr int kDeepest = 64;

const Field kAnything{"", kObject};

const Field* field_of(const Field& of, std::string_view name) {
  const auto it = std::ranges::find(of.fields, name, &Field::name);
  return it == of.fields.end() ? nullptr : &*it;
}

std::unexpected<Error> wrong(const std::string& path, std::string_view wanted, const json& value,
                             std::string_view remedy) {
  return fail(ErrorCode::kInvalid, std::format("{}: must be {}, not {}{}{}", path, wanted, reflect::type_name(value),
                                               remedy.empty() ? "" : "; ", remedy));
}

std::string quoted(const json& value) {
  return value.is_primitive() && !value.is_null()
             ? std::format("put it in quotes: \"{}\"", value.is_string() ? value.get<std::string>() : value.dump())
             : "";
}

Result<void> check_one(const json& value, Shape shape, const std::string& path) {
  switch (shape) {
    case kText:
      return value.is_string() ? Result<void>() : wrong(path, "a string", value, quoted(value));
    case kFlag:
      return value.is_boolean() ? Result<void>() : wrong(path, "true or false", value, "leave quotes out");
    case kNumber:
      return value.is_number_integer() ? Result<void>() : wrong(path, "a whole number", value, "leave quotes out");
    case kQuantity:
      if (value.is_string())
        return quantity_value(value.get<std::string>())
            .transform([](std::uint64_t) {})
            .transform_error([&](const Error& e) { return e.in(path); });
      return value.is_number() ? Result<void>() : wrong(path, "a quantity", value, "write for example 500m or 2Gi");
    default:
      return {};
  }
}

Result<void> check_each(const json& list, Shape shape, const std::string& path) {
  for (std::size_t i = 0; i < list.size(); ++i) BSP_CHECK_OK(check_one(list[i], shape, std::format("{}[{}]", path, i)));
  return {};
}

std::string unknown_field(std::string_view name, const Field& of) {
  std::vector<std::string_view> known;
  for (const Field& f : of.fields) known.push_back(f.name);
  const std::string near = nearest(name, known);
  return near.empty() ? "unknown field" : std::format("unknown field; did you mean {}?", near);
}

Result<void> check_members(const json& object, const Field& field, const std::string& path) {
  if (!object.is_object()) return wrong(path, "an object", object, "write its fields below it");
  for (const auto& [name, value] : object.items()) {
    const std::string at = std::format("{}.{}", path, name);
    if (const Field* member = field_of(field, name))
      BSP_CHECK_OK(check_shape(value, *member, at));
    else if (field.closed)
      return fail(ErrorCode::kInvalid, std::format("{}: {}", at, unknown_field(name, field)));
  }
  return {};
}

}  // namespace

const Field kPodTemplate{"template", kObject, kTemplate, true};
constexpr Field kAmounts[] = {{"limits", kQuantities}, {"requests", kQuantities}};
const Field kContainerResources{"resources", kObject, kAmounts, true};

void normalise(json& value, const Field& field) {
  if (field.shape == kNumber && value.is_number_float())
    if (const auto whole = whole_number<std::int64_t>(value)) value = *whole;
  if (value.is_array())
    for (json& item : value) normalise(item, {field.name, kObject, field.fields, field.closed});
  if (!value.is_object()) return;
  if (field.shape == kTextMap) {
    for (auto& [name, text] : value.items())
      if (text.is_null()) text = "";
    return;
  }
  auto& members = value.get_ref<json::object_t&>();
  std::erase_if(members, [](const auto& member) { return member.second.is_null(); });
  for (auto& [name, member] : members) {
    const Field* known = field_of(field, name);
    normalise(member, known ? *known : kAnything);
  }
}

void drop_unknown(json& value, const Field& field, const std::string& path, const Dropped& dropped) {
  if (field.shape == kObjects && value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i)
      drop_unknown(value[i], {field.name, kObject, field.fields, field.closed}, std::format("{}[{}]", path, i),
                   dropped);
  if (field.shape != kObject || !value.is_object()) return;
  std::erase_if(value.get_ref<json::object_t&>(), [&](auto& member) {
    const std::string at = std::format("{}.{}", path, member.first);
    const Field* known = field_of(field, member.first);
    if (known != nullptr) drop_unknown(member.second, *known, at, dropped);
    if (known != nullptr || !field.closed) return false;
    if (!member.second.is_null()) dropped(at, unknown_field(member.first, field));
    return true;
  });
}

Result<void> check_shape(const json& value, const Field& field, const std::string& path) {
  switch (field.shape) {
    case kTexts:
      if (!value.is_array())
        return wrong(path, "a list of strings", value, "write for example [my_program, \"--steps\", \"100\"]");
      return check_each(value, kText, path);
    case kNumbers:
      if (!value.is_array()) return wrong(path, "a list of whole numbers", value, "write for example [1000]");
      return check_each(value, kNumber, path);
    case kTextMap:
    case kQuantities:
      if (!value.is_object())
        return wrong(path, field.shape == kTextMap ? "a map of strings" : "a map of quantities", value,
                     field.shape == kTextMap ? "write for example {app: solver}" : "write for example {cpu: 500m}");
      for (const auto& [name, entry] : value.items())
        BSP_CHECK_OK(check_one(entry, field.shape == kTextMap ? kText : kQuantity, std::format("{}.{}", path, name)));
      return {};
    case kObject:
      if (field.fields.empty() && value.is_object()) return {};
      return check_members(value, field, path);
    case kObjects:
      if (!value.is_array()) return wrong(path, "a list", value, "begin each of its entries with \"- \"");
      for (std::size_t i = 0; i < value.size(); ++i)
        BSP_CHECK_OK(check_members(value[i], field, std::format("{}[{}]", path, i)));
      return {};
    default:
      return check_one(value, field.shape, path);
  }
}

Result<void> check_nesting(const json& value, const std::string& path) {
  std::vector<const json*> level{&value}, next;  // no recursion, for it may be deep
  for (int depth = 0; !level.empty(); ++depth, level.swap(next)) {
    if (depth > kDeepest)
      return fail(ErrorCode::kInvalid,
                  std::format("{}: is nested more than {} levels deep; no pod is", path, kDeepest));
    next.clear();
    for (const json* part : level)
      for (const json& inner : *part)
        if (inner.is_structured()) next.push_back(&inner);
  }
  return {};
}

}  // namespace bsp::crds
