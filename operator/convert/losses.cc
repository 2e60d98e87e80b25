#include "operator/convert/losses.h"

#include <algorithm>
#include <array>
#include <format>
#include <nlohmann/json.hpp>

#include "base/json/fields.h"
#include "operator/convert/commands.h"
#include "operator/convert/launcher.h"

namespace bsp::convert {
namespace {

using nlohmann::json;

constexpr std::string_view kOnlyLaunchers = "not carried over: only the launcher has it, and ranks are like workers";

// A volume that only the launcher mounts matters, one of the SSH keys doesn't.
void note_mounts(Source& job, const PodOf& launcher, const json& own, const json& workers) {
  const json& mounts = part_at(own, "volumeMounts");
  for (std::size_t i = 0; mounts.is_array() && i < mounts.size(); ++i) {
    const std::string path = text_at(mounts[i], "mountPath");
    if (std::ranges::none_of(part_at(workers, "volumeMounts"),
                             [&](const json& mount) { return text_at(mount, "mountPath") == path; }))
      job.note(std::format("{}.volumeMounts[{}]", launcher.container_path(), i), kOnlyLaunchers);
  }
}

// The worker's command as far as it isn't the SSH server that mpirun needs, or waiting.
std::string other_command(const json& container) {
  std::vector<std::string> words;
  for (const char* field : {"command", "args"})
    for (const json& word : part_at(container, field)) words.push_back(text_of(word));
  if (words.empty()) return "";
  Command plain;
  for (const std::string& word : words)
    plain.words.push_back({.text = word, .source = word, .expanded = false, .pieces = {}});
  const Variables none;
  std::optional<Offence> found;
  const std::size_t script = is_shell(words[0]) ? script_place(words) : words.size();
  if (script < words.size()) {
    const auto read = read_shell(words[script]);
    found = read ? Judge(none).offence(*read) : std::optional(Offence{1, "runs a script"});
  } else {
    found = Judge(none).offence(plain);
  }
  return found ? found->what : "";
}

}  // namespace

std::string PodOf::container_path() const { return std::format("{}.spec.containers[{}]", path, main); }

void note_launchers_own(Source& job, const PodOf& launcher, const PodOf& worker) {
  const json& own = part_at(launcher.pod, "spec");
  const json& workers = part_at(worker.pod, "spec");
  for (const char* field :
       {"initContainers", "volumes", "serviceAccountName", "nodeSelector", "affinity", "tolerations", "hostNetwork",
        "imagePullSecrets", "priorityClassName", "schedulerName", "runtimeClassName", "securityContext"})
    if (own.contains(field) && own[field] != part_at(workers, field))
      job.note(std::format("{}.spec.{}", launcher.path, field), kOnlyLaunchers);
  for (const char* field : {"labels", "annotations"})
    if (const json& values = part_at(part_at(launcher.pod, "metadata"), field);
        !values.is_null() && values != part_at(part_at(worker.pod, "metadata"), field))
      job.note(std::format("{}.metadata.{}", launcher.path, field), kOnlyLaunchers);
  const json& containers = own["containers"];
  for (std::size_t i = 0; i < containers.size(); ++i)
    if (i != launcher.main)
      job.note(std::format("{}.spec.containers[{}]", launcher.path, i),
               "not carried over: a container beside the launcher");
  const json& container = containers[launcher.main];
  const json& rank = workers["containers"][worker.main];
  if (rank.contains("image") && part_at(container, "image") != rank["image"])
    job.note(launcher.container_path() + ".image", "not carried over: ranks run in the workers' image");
  if (container.contains("envFrom") && container["envFrom"] != part_at(rank, "envFrom"))
    job.note(launcher.container_path() + ".envFrom", kOnlyLaunchers);
  note_mounts(job, launcher, container, rank);
}

void note_workers_command(Source& job, const PodOf& worker) {
  const json& container = worker.pod["spec"]["containers"][worker.main];
  const std::string other = other_command(container);
  const bool has_command = !part_at(container, "command").empty();
  if (!other.empty())
    job.note(
        worker.container_path() + (has_command ? ".command" : ".args"),
        std::format("not carried over: it {}, but a rank runs mpirun's program instead; if the program needs that, "
                    "do it in an init container",
                    other));
}

void note_host_names(Source& job, const json& container, const std::string& path) {
  const json* name = job.field("metadata.name");
  if (name == nullptr || !name->is_string()) return;
  const auto is_named = [&](const std::string& text) {
    return text.contains(name->get<std::string>() + "-worker-") ||
           text.contains(name->get<std::string>() + "-launcher");
  };
  const auto note = [&](const std::string& what) {
    job.note(path, what + " names a pod of the MPIJob, which a BSPJob hasn't: its pods have names of their own");
  };
  for (const json& entry : part_at(container, "env"))
    if (is_named(text_at(entry, "value"))) note(std::format("{}={}", text_at(entry, "name"), text_at(entry, "value")));
  for (const json& word : part_at(container, "command"))
    if (is_named(text_of(word))) note(text_of(word));
}

void note_fields(Source& job) {
  constexpr auto kKnown = std::to_array<std::string_view>(
      {"slotsPerWorker", "mainContainer", "cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds",
       "backoffLimit", "runPolicy", "mpiReplicaSpecs", "sshAuthMountPath", "mpiImplementation",
       "launcherCreationPolicy", "runLauncherAsWorker"});
  constexpr auto kPolicies =
      std::to_array<std::string_view>({"cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds",
                                       "backoffLimit", "schedulingPolicy", "suspend", "managedBy"});
  if (const char* policy = "spec.runPolicy.schedulingPolicy"; job.field(policy) != nullptr)
    job.note(policy,
             "not carried over: a start is all or nothing anyway; spec.scheduling.gang can leave it to Volcano or "
             "scheduler-plugins");
  for (const char* path : {"spec.runPolicy.managedBy", "spec.launcherCreationPolicy"})
    if (job.field(path) != nullptr) job.note(path, "not carried over: a BSPJob has nothing like it");
  const auto note_unknown = [&](const char* path, const auto& known) {
    if (const json* fields = job.field(path); fields != nullptr && fields->is_object())
      for (const auto& [name, value] : fields->items())
        if (!std::ranges::contains(known, name))
          job.note(std::format("{}.{}", path, name), "not carried over: no field of an MPIJob that convert knows");
  };
  note_unknown("spec", kKnown);
  note_unknown("spec.runPolicy", kPolicies);
}

}  // namespace bsp::convert
