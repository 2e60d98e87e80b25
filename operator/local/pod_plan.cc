#include "operator/local/pod_plan.h"

#include <algorithm>
#include <cmath>
#include <format>

#include "base/json/fields.h"
#include "crds/meta.h"
#include "crds/names.h"
#include "operator/local/outlet.h"
#include "operator/local/pod_volumes.h"
#include "operator/local/podman.h"

namespace bsp::local {
namespace {

using nlohmann::json;
using Env = std::vector<std::pair<std::string, std::string>>;

std::unexpected<Error> unsupported(const std::string& path, const std::string& what) {
  return fail(ErrorCode::kInvalid, std::format("{}: {}", path, what));
}

std::string text_or(const json& j, const char* field, std::string otherwise) {
  const json& value = part_at(j, field);
  return value.is_string() ? value.get<std::string>() : otherwise;
}

std::vector<std::string> texts_at(const json& j, const char* field) {
  std::vector<std::string> texts;
  for (const json& item : part_at(j, field))
    if (item.is_string()) texts.push_back(item.get<std::string>());
  return texts;
}

Result<std::string> field_ref(const json& pod, const PlanInput& input, const std::string& field) {
  const json& metadata = part_at(pod, "metadata");
  if (field == "metadata.name") return text_at(metadata, "name");
  if (field == "metadata.namespace") return text_at(metadata, "namespace");
  if (field == "metadata.uid") return text_at(metadata, "uid");
  if (field == "spec.nodeName") return text_at(part_at(pod, "spec"), "nodeName");
  if (field == "status.podIP") return input.pod_ip;
  for (const char* map : {"labels", "annotations"}) {
    const std::string prefix = std::format("metadata.{}['", map);
    if (field.starts_with(prefix) && field.ends_with("']")) {
      const std::string key = field.substr(prefix.size(), field.size() - prefix.size() - 2);
      return text_at(part_at(metadata, map), key.c_str());
    }
  }
  return fail(ErrorCode::kInvalid, std::format("fieldPath {} is not supported", field));
}

// Replaces $(NAME) by the value of a variable set before; $$(NAME) becomes $(NAME).
std::string expand(const std::string& in, const Env& env) {
  std::string out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] != '$' || i + 1 >= in.size()) {
      out += in[i];
      continue;
    }
    if (in[i + 1] == '$') {
      out += '$';
      ++i;
      continue;
    }
    const std::size_t close = in[i + 1] == '(' ? in.find(')', i) : std::string::npos;
    if (close != std::string::npos) {
      const std::string name = in.substr(i + 2, close - i - 2);
      const auto it = std::ranges::find(env, name, &Env::value_type::first);
      if (it != env.end()) {
        out += it->second;
        i = close;
        continue;
      }
    }
    out += in[i];
  }
  return out;
}

Result<Env> environment(const json& pod, const json& container, const PlanInput& input, const std::string& path) {
  Env env;
  if (!part_at(container, "envFrom").empty())
    return unsupported(path + ".envFrom", "not supported in local mode; list the variables in env");
  int index = 0;
  for (const json& entry : part_at(container, "env")) {
    const std::string where = std::format("{}.env[{}]", path, index++);
    const std::string name = text_at(entry, "name");
    if (name.empty() || name.find('=') != std::string::npos)
      return unsupported(where + ".name", "must be a valid variable name");
    const json& from = part_at(entry, "valueFrom");
    std::string value = expand(text_at(entry, "value"), env);
    if (from.contains("fieldRef")) {
      auto found = field_ref(pod, input, text_at(part_at(from, "fieldRef"), "fieldPath"));
      if (!found) return std::unexpected(found.error().in(where + ".valueFrom.fieldRef"));
      value = *found;
    } else if (from.contains("secretKeyRef") || from.contains("configMapKeyRef")) {
      const bool secret = from.contains("secretKeyRef");
      const json& ref = part_at(from, secret ? "secretKeyRef" : "configMapKeyRef");
      auto files = referenced_files(secret ? "Secret" : "ConfigMap", text_at(ref, "name"), input);
      if (!files) return std::unexpected(files.error().in(where + ".valueFrom"));
      const auto it = files->find(text_at(ref, "key"));
      if (it == files->end()) return unsupported(where + ".valueFrom", std::format("no key {}", text_at(ref, "key")));
      value = it->second;
    } else if (!from.empty()) {
      return unsupported(where + ".valueFrom",
                         "only fieldRef, secretKeyRef and configMapKeyRef are supported in local mode");
    }
    // A later entry replaces an earlier one of the same name.
    std::erase_if(env, [&](const auto& pair) { return pair.first == name; });
    env.emplace_back(name, std::move(value));
  }
  return env;
}

Result<void> add_security(const json& pod_spec, const json& container, std::vector<std::string>& args,
                          const std::string& path) {
  const json& own = part_at(container, "securityContext");
  const json& shared = part_at(pod_spec, "securityContext");
  auto setting = [&](const char* field) -> const json& {
    return part_at(part_at(own, field).is_null() ? shared : own, field);
  };
  if (const json& user = setting("runAsUser"); user.is_number_integer()) {
    const json& group = setting("runAsGroup");
    args.insert(args.end(),
                {"--user", group.is_number_integer() ? std::format("{}:{}", user.get<long>(), group.get<long>())
                                                     : std::to_string(user.get<long>())});
  }
  auto add_group = [&](const json& gid) {
    if (gid.is_number_integer()) args.insert(args.end(), {"--group-add", gid.dump()});
  };
  for (const json& gid : part_at(shared, "supplementalGroups")) add_group(gid);
  add_group(part_at(shared, "fsGroup"));
  if (flag_at(own, "privileged", false)) args.push_back("--privileged");
  const json& capabilities = part_at(own, "capabilities");
  for (const std::string& c : texts_at(capabilities, "drop")) args.insert(args.end(), {"--cap-drop", c});
  for (const std::string& c : texts_at(capabilities, "add")) args.insert(args.end(), {"--cap-add", c});
  const std::string seccomp = text_or(setting("seccompProfile"), "type", "Unconfined");
  if (seccomp == "Unconfined")
    args.insert(args.end(), {"--security-opt", "seccomp=unconfined"});
  else if (seccomp != "RuntimeDefault")
    return unsupported(path + ".securityContext.seccompProfile.type",
                       std::format("{} is not supported in local mode; use Unconfined or RuntimeDefault", seccomp));
  if (text_at(setting("appArmorProfile"), "type") == "Unconfined")
    args.insert(args.end(), {"--security-opt", "apparmor=unconfined"});
  if (!flag_at(own, "allowPrivilegeEscalation", true)) args.insert(args.end(), {"--security-opt", "no-new-privileges"});
  if (flag_at(own, "readOnlyRootFilesystem", false))
    args.insert(args.end(), {"--read-only", "--read-only-tmpfs=false"});
  return {};
}

std::string quantity(const json& j) { return j.is_string() ? j.get<std::string>() : j.dump(); }

Result<void> add_resources(const json& container, ContainerRole role, double node_cpu, std::vector<std::string>& args,
                           const std::string& path) {
  const json& limits = part_at(part_at(container, "resources"), "limits");
  BSP_TRY(const std::vector<std::string> cpu, cpu_args(container, role, node_cpu, path));
  args.insert(args.end(), cpu.begin(), cpu.end());
  if (limits.contains("memory")) {
    auto bytes = crds::quantity_value(quantity(part_at(limits, "memory")));
    if (!bytes || *bytes == 0)
      return unsupported(path + ".resources.limits.memory", "must be a quantity such as 512Mi");
    args.insert(args.end(), {"--memory", std::to_string(*bytes)});
  }
  return {};
}

Result<void> add_mounts(const json& container, const std::vector<VolumePlan>& volumes, std::vector<std::string>& args,
                        const std::string& path) {
  int index = 0;
  for (const json& mount : part_at(container, "volumeMounts")) {
    const std::string where = std::format("{}.volumeMounts[{}]", path, index++);
    const std::string name = text_at(mount, "name");
    const std::string target = text_at(mount, "mountPath");
    if (!target.starts_with('/')) return unsupported(where + ".mountPath", "must be an absolute path");
    const auto volume = std::ranges::find(volumes, name, &VolumePlan::name);
    if (volume == volumes.end())
      return unsupported(where + ".name", std::format("the pod has no volume named {}", name));
    const std::string sub = text_at(mount, "subPath");
    if (sub.find("..") != std::string::npos) return unsupported(where + ".subPath", "must stay inside the volume");
    const bool read_only =
        flag_at(mount, "readOnly", false) || volume->type == VolumeType::kFiles || volume->type == VolumeType::kImage;
    args.insert(args.end(), {"-v", std::format("{}{}{}:{}{}", volume->path, sub.empty() ? "" : "/", sub, target,
                                               read_only ? ":ro" : "")});
  }
  return {};
}

// As the kubelet, the node makes what a subPath names in a volume of the pod.
void note_directories(const json& pod_spec, std::vector<VolumePlan>& volumes) {
  for (const char* list : {"initContainers", "containers"})
    for (const json& container : part_at(pod_spec, list))
      for (const json& mount : part_at(container, "volumeMounts"))
        if (const std::string sub = text_at(mount, "subPath"); !sub.empty())
          for (VolumePlan& volume : volumes)
            if (volume.name == text_at(mount, "name") &&
                (volume.type == VolumeType::kTmpfs || volume.type == VolumeType::kDirectory))
              volume.directories.insert(sub);
}

Result<ContainerPlan> plan_container(const json& pod, const json& container, ContainerRole role, const PlanInput& input,
                                     const PodPlan& plan, const std::string& path) {
  ContainerPlan c{.name = text_at(container, "name"),
                  .podman_name = "",
                  .role = role,
                  .image = text_at(container, "image"),
                  .command = "",
                  .log_path = "",
                  .pid_path = "",
                  .run_args = {}};
  if (c.name.empty()) return unsupported(path + ".name", "is required");
  if (c.image.empty()) return unsupported(path + ".image", "is required");
  c.podman_name = podman_name(input.store_dir, plan.pod, c.name);
  c.log_path = std::format("{}/{}.log", log_dir(input.store_dir, plan.pod), c.name);
  c.pid_path = std::format("{}/{}.pid", pod_dir(input.store_dir, plan.pod, plan.uid), c.name);
  std::vector<std::string>& args = c.run_args;
  args = {"run",          "-d",
          "--pull",       "never",
          "--name",       c.podman_name,
          "--label",      store_label(input.store_dir),
          "--label",      std::format("{}={}", names::kLabelPod, plan.pod),
          "--label",      std::format("{}={}", names::kLabelPodUid, plan.uid),
          "--network",    "ns:" + input.network_path,
          "--hostname",   text_or(part_at(pod, "spec"), "hostname", plan.pod),
          "--log-driver", "k8s-file",
          "--log-opt",    "path=" + c.log_path,
          "--pidfile",    c.pid_path,
          "--sdnotify",   "ignore"};
  podman::add_limits(args);
  BSP_CHECK_OK(add_security(part_at(pod, "spec"), container, args, path));
  BSP_CHECK_OK(add_resources(container, role, input.node_cpu, args, path));
  BSP_CHECK_OK(add_mounts(container, plan.volumes, args, path));
  BSP_TRY(const Env env, environment(pod, container, input, path));
  for (const auto& [name, value] : env) args.insert(args.end(), {"-e", std::format("{}={}", name, value)});
  if (const auto endpoint = std::ranges::find(env, std::string(names::kEnvStorageEndpoint), &Env::value_type::first);
      endpoint != env.end())
    if (const std::string alias = Outlet::host_alias(endpoint->second); !alias.empty())
      args.insert(args.end(), {"--add-host", alias});
  if (const std::string dir = text_at(container, "workingDir"); !dir.empty()) args.insert(args.end(), {"-w", dir});

  json command = json::array();
  for (const std::string& word : texts_at(container, "command")) command.push_back(expand(word, env));
  if (!command.empty()) {
    c.command = command[0].get<std::string>();
    args.insert(args.end(), {"--entrypoint", command.dump()});
  }
  args.push_back(c.image);
  for (const std::string& word : texts_at(container, "args")) args.push_back(expand(word, env));
  return c;
}

}  // namespace

std::string pod_dir(const std::string& store_dir, const std::string& pod, const std::string& uid) {
  return std::format("{}/pods/{}.{}", store_dir, pod, uid);
}
std::string log_dir(const std::string& store_dir, const std::string& pod) {
  return std::format("{}/logs/{}", store_dir, pod);
}
std::string store_label(const std::string& store_dir) { return std::format("{}={}", names::kLabelStore, store_dir); }
std::string podman_name(const std::string& store_dir, const std::string& pod, const std::string& container) {
  // FNV-1a of the directory, because two stores may have pods with the same name.
  std::uint32_t hash = 2166136261u;
  for (const char ch : store_dir) hash = (hash ^ static_cast<unsigned char>(ch)) * 16777619u;
  return std::format("bsp-{:08x}-{}-{}", hash, pod, container);
}

const json& container_in(const json& pod, const std::string& name) {
  for (const char* list : {"containers", "initContainers"})
    for (const json& container : part_at(part_at(pod, "spec"), list))
      if (text_at(container, "name") == name) return container;
  return part_at(pod, "");
}

std::string own_cpu_limit(const json& pod, const std::string& container) {
  const json& limit = part_at(part_at(part_at(container_in(pod, container), "resources"), "limits"), "cpu");
  return limit.is_null() ? "" : quantity(limit);
}

Result<std::vector<std::string>> cpu_args(const json& container, ContainerRole role, double node_cpu,
                                          const std::string& path) {
  const json& limits = part_at(part_at(container, "resources"), "limits");
  double cpu = role == ContainerRole::kSidecar ? 0 : node_cpu;
  if (limits.contains("cpu")) {
    auto milli = crds::quantity_milli(quantity(part_at(limits, "cpu")));
    if (!milli || *milli == 0)
      return unsupported(path + ".resources.limits.cpu", "must be a quantity such as 500m or 2");
    const double limit = static_cast<double>(*milli) / 1000;
    cpu = cpu == 0 ? limit : std::min(cpu, limit);
  }
  if (cpu == 0) return {};
  // The kernel's minimum quota is 1 ms, so the period must be longer below a tenth of a core.
  const double period = cpu < 0.1 ? 100'000 : 10'000;
  return std::vector<std::string>{"--cpu-period", std::format("{:.0f}", period), "--cpu-quota",
                                  std::format("{:.0f}", std::max(1000.0, std::round(period * cpu)))};
}

Result<PodPlan> plan_pod(const json& pod, const PlanInput& input) {
  const json& metadata = part_at(pod, "metadata");
  const json& spec = part_at(pod, "spec");
  PodPlan plan;
  plan.pod = text_at(metadata, "name");
  plan.uid = text_at(metadata, "uid");
  if (const json& grace = part_at(spec, "terminationGracePeriodSeconds");
      !grace.is_null() && (!grace.is_number_integer() || grace < 0))
    return unsupported("spec.terminationGracePeriodSeconds", "must be a whole number of seconds");
  const std::string restart = text_or(spec, "restartPolicy", "Always");
  plan.restart = restart == "Never"       ? RestartPolicy::kNever
                 : restart == "OnFailure" ? RestartPolicy::kOnFailure
                                          : RestartPolicy::kAlways;
  for (const char* field : {"hostNetwork", "hostPID", "hostIPC"})
    if (flag_at(spec, field, false)) return unsupported(std::format("spec.{}", field), "not supported in local mode");
  for (const char* field : {"affinity", "tolerations", "topologySpreadConstraints", "priorityClassName", "hostUsers",
                            "runtimeClassName", "dnsConfig", "serviceAccountName", "nodeSelector", "imagePullSecrets"})
    if (spec.contains(field)) plan.notes.push_back(std::format("spec.{}", field));
  BSP_TRY(plan.volumes, plan_volumes(spec, input, pod_dir(input.store_dir, plan.pod, plan.uid)));
  note_directories(spec, plan.volumes);
  auto add = [&](const char* list, ContainerRole role) -> Result<void> {
    int index = 0;
    for (const json& container : part_at(spec, list)) {
      const std::string path = std::format("spec.{}[{}]", list, index++);
      if (!container.is_object()) return unsupported(path, "must be an object");
      ContainerRole own = role;
      if (role == ContainerRole::kInit && text_at(container, "restartPolicy") == "Always")
        own = ContainerRole::kSidecar;
      for (const char* field : {"livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "ports"})
        if (container.contains(field) && std::string(field) != "ports")
          plan.notes.push_back(std::format("{}.{}", path, field));
      BSP_TRY(ContainerPlan c, plan_container(pod, container, own, input, plan, path));
      plan.containers.push_back(std::move(c));
    }
    return {};
  };
  BSP_CHECK_OK(add("initContainers", ContainerRole::kInit));
  BSP_CHECK_OK(add("containers", ContainerRole::kApp));
  if (std::ranges::none_of(plan.containers, [](const auto& c) { return c.role == ContainerRole::kApp; }))
    return unsupported("spec.containers", "a pod needs at least one container");
  return plan;
}

int grace_seconds(const json& pod) {
  const json& given = part_at(part_at(pod, "spec"), "terminationGracePeriodSeconds");
  return given.is_number_integer() ? static_cast<int>(std::clamp<std::int64_t>(given.get<std::int64_t>(), 0, 1'000'000))
                                   : 30;
}

}  // namespace bsp::local
