#include "operator/reconcile/kernel/pods/pods.h"

#include <algorithm>
#include <format>

#include "base/core/base64.h"
#include "base/json/fields.h"
#include "crds/names.h"
#include "operator/reconcile/kernel/json_child.h"
#include "operator/reconcile/kernel/pods/pod_parts.h"
#include "operator/reconcile/kernel/start/gang.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;

// The container whose log kubectl shows if none is named.
constexpr const char* kDefaultContainer = "kubectl.kubernetes.io/default-container";

constexpr std::chrono::minutes kPatience{10};  // of a rank in MPI_Init, beyond the limit of the job's start

std::string joined(const std::vector<std::string>& parts, char by) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : std::string(1, by)) + part;
  return text;
}

std::string joined(const std::vector<std::uint32_t>& ranks) {
  std::vector<std::string> texts;
  for (const std::uint32_t rank : ranks) texts.push_back(std::to_string(rank));
  return joined(texts, ',');
}

json wrapped_command(const json& app, const PodRequest& request, const ImageDefaults& image) {
  json command = json::array({"/bsp/bsp-init"});
  if (request.target || request.resumes) command.push_back("--restore");
  command.push_back("--");
  // Kubernetes' rule: command replaces the image's entrypoint and its command, args only the command.
  const json &given = part_at(app, "command"), &args = part_at(app, "args");
  const bool own_command = !given.empty();
  if (own_command)
    for (const json& part : given) command.push_back(part);
  else
    for (const std::string& part : image.entrypoint) command.push_back(part);
  if (!args.empty())
    for (const json& part : args) command.push_back(part);
  else if (!own_command)
    for (const std::string& part : image.command) command.push_back(part);
  return command;
}

// A number from the container's security context, else from the pod's, else "".
std::string setting(const json& container, const json& pod, const char* name) {
  for (const json* context : {&container, &pod})
    if (const json& value = part_at(*context, name); value.is_number_integer()) return value.dump();
  return "";
}

// The user that the program runs as: the template's, else the image's. "": root.
std::string program_user(const json& container, const json& pod, const ImageDefaults& image) {
  std::string user = setting(container, pod, "runAsUser");
  const std::string group = setting(container, pod, "runAsGroup");
  if (user.empty()) user = group.empty() ? image.user : image.user.substr(0, image.user.find(':'));
  if (group.empty()) return user;
  return (user.empty() ? "0" : user) + ":" + group;
}

// The supplementary groups of the pod's security context, for bsp-init (kEnvGroups). "": none.
std::string asked_groups(const json& pod) {
  std::string asked;
  auto add = [&](const std::string& word) { asked += (asked.empty() ? "" : " ") + word; };
  for (const json& gid : part_at(pod, "supplementalGroups"))
    if (gid.is_number_integer()) add(gid.dump());
  if (const json& gid = part_at(pod, "fsGroup"); gid.is_number_integer()) add(gid.dump());
  if (text_at(pod, "supplementalGroupsPolicy") == "Strict") add("Strict");
  return asked;
}

constexpr const char* kSharedMemory = "/dev/shm";

bool ends_with_pod(const json& mount, const json& pod_spec) {
  for (const json& volume : part_at(pod_spec, "volumes"))
    if (text_at(volume, "name") == text_at(mount, "name"))
      // Without a source it is an emptyDir.
      return volume.contains("emptyDir") || volume.contains("ephemeral") || volume.size() == 1;
  return false;
}

// The writable volumes that end with the pod, whose contents bsp-init moves. /dev/shm always moves.
std::vector<std::string> mounts_of_the_pods_own(const json& app, const json& pod_spec) {
  std::vector<std::string> paths;
  for (const json& mount : part_at(app, "volumeMounts")) {
    const std::string path = text_at(mount, "mountPath");
    if (part_at(mount, "readOnly") == true || path.empty() || path == kSharedMemory) continue;
    if (ends_with_pod(mount, pod_spec)) paths.push_back(path);
  }
  return paths;
}

// What one rank writes moves with it, so ranks of one pod can't write to the same volume: each has a part of it.
void seat_apart(json& app, std::uint32_t local, const json& pod_spec) {
  for (json& mount : child(app, "volumeMounts", json::value_t::array)) {
    if (text_at(mount, "mountPath") == kSharedMemory || !ends_with_pod(mount, pod_spec)) continue;
    const char* const field = mount.contains("subPathExpr") ? "subPathExpr" : "subPath";
    const std::string own = text_at(mount, field);
    mount[field] = directory_of_seat(local) + (own.empty() ? "" : "/") + own;
  }
  if (local != 0) app.erase("ports");  // they are the pod's, and their names unique in it
}

// user: "" leaves it to bsp-init, which reads the id that asking_container wrote, or else uses root.
void adapt_app(json& app, std::uint32_t local, const std::string& user, const crds::BspJob& job,
               const PodRequest& request, const ImageDefaults& image, const PodOptions& options) {
  const std::vector<std::uint32_t> ranks = request.ranks();
  const bool shares = ranks.size() > 1;
  app["name"] = container_of(local);
  app["command"] = wrapped_command(app, request, image);
  app.erase("args");
  // bsp-init is root with just these; the program it starts has none (design: docs of sidecar/init).
  json& security = child(app, "securityContext", json::value_t::object);
  security["runAsUser"] = 0;
  security["runAsGroup"] = 0;
  security["runAsNonRoot"] = false;  // explicit, to override the pod's setting
  security["capabilities"] = {{"drop", {"ALL"}},
                              {"add", {"CHECKPOINT_RESTORE", "SYS_PTRACE", "SETPCAP", "SETUID", "SETGID", "KILL"}}};
  const json profile = keeps_seccomp(job.spec) ? asked_seccomp(job.spec) : json();
  security["seccompProfile"] = profile.is_null() ? json{{"type", "Unconfined"}} : profile;
  if (!user.empty()) put_env(app, names::kEnvUser, user);
  // The operator ends a start that takes too long and says what it waited for; a rank that gave up before would use up
  // an attempt. It waits for longer, because an operator that was away meanwhile counts anew.
  const auto patience = std::chrono::duration_cast<std::chrono::seconds>(options.start + kPatience);
  put_env(app, names::kEnvFirstEpoch, std::to_string(patience.count()));
  const crds::SuperstepSpec& edge = job.spec.superstep;
  put_env(app, names::kEnvSuperstep,
          edge.call == names::kEdgeAuto ? edge.call : std::format("{}:{}", edge.call, edge.stride));
  // The variables that mpirun sets for scripts around an MPI program; a pod is its node.
  put_env(app, "OMPI_COMM_WORLD_RANK", std::to_string(ranks[local]));
  put_env(app, "OMPI_COMM_WORLD_SIZE", std::to_string(job.spec.ranks));
  put_env(app, "OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(local));
  put_env(app, "OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(ranks.size()));
  put_env(app, "OMPI_COMM_WORLD_NODE_RANK", std::to_string(local));
  if (!job.spec.carry_paths.empty()) put_env(app, names::kEnvCarryPaths, joined(job.spec.carry_paths, ':'));
  if (job.spec.cpu == crds::CpuLevel::kCommon) put_env(app, names::kEnvCpu, "Common");
  if (const auto own = mounts_of_the_pods_own(app, part_at(job.spec.pod_template, "spec")); !own.empty())
    put_env(app, names::kEnvPodVolumes, joined(own, ':'));
  if (const std::string path = text_at(app, "terminationMessagePath"); !path.empty())
    put_env(app, names::kEnvTerminationLog, path);
  if (job.metadata.annotations.contains(std::string(names::kAnnotationFaultPoints)))
    put_env(app, names::kEnvFaultDirectory, std::string(names::kRunDir));
  if (shares) seat_apart(app, local, part_at(job.spec.pod_template, "spec"));
  json& mounts = child(app, "volumeMounts", json::value_t::array);
  put(mounts, {{"name", "bsp-runtime"}, {"mountPath", names::kRuntimeDir}, {"readOnly", true}});
  json run = {{"name", "bsp-run"}, {"mountPath", names::kRunDir}};
  if (shares) run["subPath"] = directory_of_seat(local);
  put(mounts, run);
  const auto at_shm = [](const json& mount) { return text_at(mount, "mountPath") == kSharedMemory; };
  if (shares && std::ranges::none_of(mounts, at_shm)) put(mounts, {{"name", "bsp-shm"}, {"mountPath", kSharedMemory}});
}

// All ranks of a pod may arrive in it together.
std::string checkpoints_limit(const crds::BspJobSpec& spec, const PodRequest& request) {
  const std::string& each = spec.checkpoint.size_limit.text;
  const auto bytes = crds::quantity_value(each);
  constexpr std::uint64_t kMost = INT64_MAX / (wire::kMostSeats + 1);
  return request.beside.empty() || !bytes ? each : std::to_string(std::min(*bytes, kMost) * request.ranks().size());
}

json copying_container(const json& security, const PodOptions& options) {
  return {{"name", "bsp-runtime"},
          {"image", options.runtime_image},
          {"imagePullPolicy", options.pull_policy},
          {"command", {"/bsp/bsp-init", "--install", "/target"}},
          {"securityContext", security},
          {"volumeMounts", {{{"name", "bsp-runtime"}, {"mountPath", "/target"}}}}};
}

// Only the kubelet knows the user that an image sets. So a container that leaves its user to the image writes its own id
// into /run/bsp, where bsp-init reads it (sidecar/init/main.cc).
json asking_container(const json& app) {
  json asking = {{"name", "bsp-user"},
                 {"image", text_at(app, "image")},
                 {"command", {"/bsp/bsp-init", "--note-user"}},
                 {"securityContext", unprivileged()},
                 {"volumeMounts",
                  {{{"name", "bsp-runtime"}, {"mountPath", names::kRuntimeDir}, {"readOnly", true}},
                   {{"name", "bsp-run"}, {"mountPath", names::kRunDir}}}}};
  if (const std::string policy = text_at(app, "imagePullPolicy"); !policy.empty()) asking["imagePullPolicy"] = policy;
  if (const json& group = part_at(part_at(app, "securityContext"), "runAsGroup"); group.is_number_integer())
    asking["securityContext"]["runAsGroup"] = group;
  return asking;
}

// Restarts a sidecar whose loop hangs. Nothing else would measure, move or fence its rank, and bsp-init can't notice,
// because the connection stays open. The loop answers between two pieces of work, each of which takes at most a few
// hundred milliseconds of a core. On a node that gives the pod 0.15 of a core, shared with a busy program and with criu,
// that may be ten seconds, so an answer may take 15 s and six in a row must be missing: the kubelet kills a hung sidecar
// after 90 to 105 s. Killing one by mistake costs little, because it resumes from its saved state. The fence of a pod that
// is cut off doesn't wait for this: bsp-init has a limit of its own.
json liveness_probe() {
  return {{"httpGet", {{"path", "/"}, {"port", names::kLivenessPort}}},
          {"periodSeconds", 15},
          {"timeoutSeconds", 15},
          {"failureThreshold", 6},
          // A hanging loop doesn't handle SIGTERM, and the pod's own grace period is the user's.
          {"terminationGracePeriodSeconds", 1}};
}

json sidecar_container(const crds::BspJob& job, const PodRequest& request, const std::string& pod, const json& security,
                       const PodOptions& options) {
  json env = json::array();
  auto add = [&](std::string_view name, const std::string& value) {
    env.push_back({{"name", name}, {"value", value}});
  };
  add(names::kEnvJob, job.metadata.name);
  add(names::kEnvJobUid, job.metadata.uid);
  add(names::kEnvRank, joined(request.ranks()));
  add(names::kEnvRanks, std::to_string(job.spec.ranks));
  add(names::kEnvPod, pod);
  if (options.scheduled) add(names::kEnvLiveness, std::format("[::]:{}", names::kLivenessPort));
  if (job.metadata.annotations.contains(std::string(names::kAnnotationFaultPoints)))
    add(names::kEnvFaultDirectory, std::string(names::kRunDir));
  json container{{"name", names::kSidecarContainer},
                 {"image", options.runtime_image},
                 {"imagePullPolicy", options.pull_policy},
                 {"command", {"/bsp/bsp-sidecar"}},
                 {"restartPolicy", "Always"},
                 {"env", env},
                 {"ports", {{{"name", "bsp"}, {"containerPort", names::kSidecarPort}}}},
                 {"securityContext", security},
                 {"volumeMounts",
                  {{{"name", "bsp-run"}, {"mountPath", names::kRunDir}},
                   {{"name", "bsp-tls"}, {"mountPath", names::kTlsDir}, {"readOnly", true}}}}};
  if (const auto& storage = job.spec.checkpoint.storage) mount_storage(container, *storage);
  mount_set_key(container, job.spec);
  if (options.scheduled) container["livenessProbe"] = liveness_probe();  // where there is a kubelet
  return container;
}

}  // namespace

json owner_reference(const crds::BspJob& job) {
  return json::array({{{"apiVersion", names::kApiVersion},
                       {"kind", names::kBspJobKind},
                       {"name", job.metadata.name},
                       {"uid", job.metadata.uid},
                       {"controller", true},
                       {"blockOwnerDeletion", true}}});
}

json asked_seccomp(const crds::BspJobSpec& spec) {
  const json* app = crds::app_container(spec);
  const json& of_pod = part_at(part_at(part_at(spec.pod_template, "spec"), "securityContext"), "seccompProfile");
  const json& own = app ? part_at(part_at(*app, "securityContext"), "seccompProfile") : of_pod;
  const json& asked = own.is_null() ? of_pod : own;
  return asked.is_object() && text_at(asked, "type") != "Unconfined" ? asked : json();
}

bool keeps_seccomp(const crds::BspJobSpec& spec) {
  return spec.rescheduling.mode != crds::ReschedulingMode::kMigrate && !spec.checkpoint.storage;
}

json make_pod(const crds::BspJob& job, const PodRequest& request, const ImageDefaults& image, const PodOptions& given) {
  PodOptions options = given;
  if (!request.runtime_image.empty()) options.runtime_image = request.runtime_image;
  const std::string name = pod_name(job.metadata.name, request.rank, request.generation);
  json pod = job.spec.pod_template.is_object() ? job.spec.pod_template : json::object();
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  json& metadata = child(pod, "metadata", json::value_t::object);
  metadata["name"] = name;
  metadata["namespace"] = job.metadata.name_space;
  metadata["ownerReferences"] = owner_reference(job);
  json& labels = child(metadata, "labels", json::value_t::object);
  labels[std::string(names::kLabelJob)] = job.metadata.name;
  labels[std::string(names::kLabelRank)] = std::to_string(request.rank);
  labels[std::string(names::kLabelGeneration)] = std::to_string(request.generation);
  labels[std::string(names::kLabelAttempt)] = std::to_string(request.attempt);
  labels[std::string(names::kLabelSet)] = request.set;
  labels[std::string(names::kLabelRole)] = request.target ? "target" : "rank";
  if (request.target)
    child(metadata, "annotations", json::value_t::object)[std::string(names::kAnnotationMigration)] = request.migration;
  const bool shares = !request.beside.empty();
  if (shares) {
    json& annotations = child(metadata, "annotations", json::value_t::object);
    annotations[std::string(names::kAnnotationRanks)] = joined(request.ranks());
    annotations[kDefaultContainer] = names::kAppContainer;
  }

  json& spec = child(pod, "spec", json::value_t::object);
  // An MPI program has no use for the API, and none of our containers has.
  if (!spec.contains("automountServiceAccountToken") && !spec.contains("serviceAccountName"))
    spec["automountServiceAccountToken"] = false;
  spec["restartPolicy"] = "Never";  // a rank is never restarted alone, because its epoch ended with it
  place_pod(spec, job, request, options);
  if (options.scheduled) join_pod_group(pod, job, request);
  json& volumes = child(spec, "volumes", json::value_t::array);
  const bool copies = options.delivery == RuntimeDelivery::kCopy;
  put(volumes, copies ? json{{"name", "bsp-runtime"}, {"emptyDir", json::object()}}
                      : json{{"name", "bsp-runtime"},
                             {"image", {{"reference", options.runtime_image}, {"pullPolicy", options.pull_policy}}}});
  put(volumes,
      {{"name", "bsp-run"}, {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", checkpoints_limit(job.spec, request)}}}});
  if (shares) put(volumes, {{"name", "bsp-shm"}, {"emptyDir", {{"medium", "Memory"}}}});
  // The sidecar alone mounts it, and is not root.
  put(volumes, {{"name", "bsp-tls"},
                {"secret",
                 {{"secretName", secret_name({job.metadata.name, job.metadata.uid}, request)},
                  {"defaultMode", 0444},
                  {"items",
                   {{{"key", "ca.pem"}, {"path", "ca.pem"}},
                    {{"key", certificate_file(name)}, {"path", "cert.pem"}},
                    {{"key", key_file(name)}, {"path", "key.pem"}}}}}}});
  const json own_security = restricted(spec);
  const json security = part_at(spec, "securityContext");
  json asking;  // if the image can't be read and the template names no user
  json containers = json::array(), further = json::array();
  for (const json& container : child(spec, "containers", json::value_t::array)) {
    if (text_at(container, "name") != names::kAppContainer) {
      containers.push_back(container);
      continue;
    }
    const json own = part_at(container, "securityContext");
    const bool ask = options.scheduled && image.user.empty() && setting(own, security, "runAsUser").empty();
    if (ask) asking = asking_container(container);
    for (std::uint32_t local = 0; local <= request.beside.size(); ++local) {
      json app = container;
      adapt_app(app, local, ask ? "" : program_user(own, security, image), job, request, image, options);
      if (const auto grace = whole_number<std::int32_t>(spec["terminationGracePeriodSeconds"]))
        put_env(app, names::kEnvGrace, std::to_string(*grace));
      if (const std::string groups = asked_groups(security); !groups.empty()) put_env(app, names::kEnvGroups, groups);
      (local == 0 ? containers : further).push_back(std::move(app));
    }
  }
  containers.insert(containers.end(), further.begin(), further.end());
  spec["containers"] = std::move(containers);
  // After the program's groups are known: that of the storage is none of them.
  if (const auto& storage = job.spec.checkpoint.storage) add_storage(spec, volumes, *storage, volumes);
  add_set_key(volumes, job.spec);
  json& init = child(spec, "initContainers", json::value_t::array);
  // First, since the user's own init containers may take long.
  json with_sidecar = json::array({sidecar_container(job, request, name, own_security, options)});
  if (copies) with_sidecar.push_back(copying_container(own_security, options));
  if (!asking.is_null()) with_sidecar.push_back(asking);
  for (json& own : with_sidecar) add_resources(own, job);
  for (json& container : init) {
    const std::string called = text_at(container, "name");
    if (called != names::kSidecarContainer && called != "bsp-runtime" && called != "bsp-user")
      with_sidecar.push_back(container);
  }
  init = std::move(with_sidecar);
  return pod;
}

json metadata_of_object(const crds::BspJob& job, const std::string& name) {
  return {{"name", name},
          {"namespace", job.metadata.name_space},
          {"labels", {{std::string(names::kLabelJob), job.metadata.name}}},
          {"ownerReferences", owner_reference(job)}};
}

json make_secret(const crds::BspJob& job, const std::string& name, const std::map<std::string, std::string>& files) {
  json data = json::object();
  for (const auto& [file, text] : files) data[file] = base64_encode(text);
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", metadata_of_object(job, name)},
          {"type", "Opaque"},  // mutable, because its certificates are renewed while pods run
          {"data", std::move(data)}};
}

}  // namespace bsp::reconcile
