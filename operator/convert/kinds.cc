#include "operator/convert/kinds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json/fields.h"
#include "operator/convert/placeholders.h"

namespace bsp::convert {
namespace {

using nlohmann::json;

constexpr const char* kLauncher = "spec.mpiReplicaSpecs.Launcher";
constexpr const char* kWorker = "spec.mpiReplicaSpecs.Worker";

json mpi_job(const Source& job) {
  json shape = {{"apiVersion", "kubeflow.org/v2beta1"}, {"kind", "MPIJob"}};
  shape["metadata"] = part_at(job.root(), "metadata");
  shape["spec"] = {{"mpiReplicaSpecs", {{"Launcher", json::object()}, {"Worker", json::object()}}}};
  return shape;
}

// Moves a field of the spec, if it is there.
void carry(const Source& job, const char* from, json& to, const char* name) {
  if (const json* value = job.field(std::format("spec.{}", from))) to[name] = *value;
}
void note_each(Source& job, const std::string& path, const json& object, std::initializer_list<const char*> known) {
  if (!object.is_object()) return;
  for (const auto& [name, value] : object.items())
    if (!value.is_null() && std::ranges::find(known, name) == known.end())
      job.note(std::format("{}.{}", path, name), "not carried over: a BSPJob has nothing like it");
}

// nullptr if the template has none.
json* first_container(json& pod_template) {
  if (!part_at(part_at(pod_template, "spec"), "containers").is_array()) return nullptr;
  json& containers = pod_template["spec"]["containers"];
  return !containers.empty() && containers[0].is_object() ? &containers[0] : nullptr;
}

bool runs_mpi(const json& pod_template) {
  for (const json& container : part_at(part_at(pod_template, "spec"), "containers"))
    for (const char* field : {"command", "args"})
      for (const json& word : part_at(container, field))
        if (const std::string text = text_of(word); text.contains("mpirun") || text.contains("mpiexec")) return true;
  return false;
}

// --master=NAME among the words of Volcano's plugin.
std::string plugin_word(const json& words, std::string_view option) {
  for (const json& word : words) {
    std::string text = text_of(word);
    text.erase(0, std::min(text.find_first_not_of('-'), text.size()));
    if (text.starts_with(option) && text.substr(option.size()).starts_with('=')) return text.substr(option.size() + 1);
  }
  return "";
}

Result<bool> volcano(Source& job) {
  const json* tasks = job.field("spec.tasks");
  const json* plugins = job.field("spec.plugins");
  const json& mpi = plugins != nullptr ? part_at(*plugins, "mpi") : part_at(json(), "");
  if (tasks == nullptr || !tasks->is_array()) {
    if (mpi.is_null()) return false;
    return job.wrong("spec.tasks", "must be a list of tasks: a master and its workers");
  }
  const auto place_of = [&](const auto& is_it) {
    const auto found = std::ranges::find_if(*tasks, is_it);
    return found == tasks->end() ? std::optional<std::size_t>() : static_cast<std::size_t>(found - tasks->begin());
  };
  const auto named = [&](std::string name, const char* otherwise) {
    if (name.empty()) name = otherwise;
    return place_of([&](const json& task) { return text_at(task, "name") == name; });
  };
  auto master = mpi.is_null() ? std::nullopt : named(plugin_word(mpi, "master"), "master");
  if (!master) master = place_of([](const json& task) { return runs_mpi(part_at(task, "template")); });
  if (!master && mpi.is_null()) return false;
  if (!master)
    return job.wrong("spec.tasks", "has no task that runs mpirun: name it by --master=TASK of spec.plugins.mpi");
  auto worker = mpi.is_null() ? std::nullopt : named(plugin_word(mpi, "worker"), "worker");
  if (!worker || worker == master)
    worker = place_of([&](const json& task) { return text_at(task, "name") != text_at((*tasks)[*master], "name"); });

  json shape = mpi_job(job);
  json& spec = shape["spec"];
  const auto task = [&](std::size_t i) { return std::format("spec.tasks[{}]", i); };
  spec["mpiReplicaSpecs"]["Launcher"]["template"] = part_at((*tasks)[*master], "template");
  Source::Origins origins = {{kLauncher, task(*master)}};
  if (worker) {
    json& workers = spec["mpiReplicaSpecs"]["Worker"];
    workers = {{"template", part_at((*tasks)[*worker], "template")},
               {"replicas", part_at((*tasks)[*worker], "replicas")}};
    origins.emplace_back(kWorker, task(*worker));
  } else {
    spec["mpiReplicaSpecs"].erase("Worker");
  }
  carry(job, "ttlSecondsAfterFinished", spec["runPolicy"], "ttlSecondsAfterFinished");
  carry(job, "maxRetry", spec["runPolicy"], "backoffLimit");
  if (spec["runPolicy"].is_null()) spec.erase("runPolicy");
  origins.emplace_back("spec.runPolicy.backoffLimit", "spec.maxRetry");
  origins.emplace_back("spec.runPolicy.", "spec.");
  for (std::size_t i = 0; i < tasks->size(); ++i)
    if (i != master && i != worker) job.note(task(i), "not carried over: the ranks are like the workers");
  if (plugins != nullptr && plugins->is_object())
    for (const auto& [name, words] : plugins->items())
      job.note(std::format("spec.plugins.{}", name),
               name == "env" ? "not carried over: a rank has OMPI_COMM_WORLD_RANK, no VC_TASK_INDEX"
                             : "not needed: the operator starts and connects the ranks");
  for (const char* field : {"schedulerName", "queue", "priorityClassName"})
    if (job.field(std::format("spec.{}", field)) != nullptr)
      job.note(std::format("spec.{}", field),
               "not carried over: the operator places the ranks; spec.scheduling.gang: Volcano leaves that to Volcano");
  note_each(job, "spec", *job.field("spec"),
            {"tasks", "plugins", "minAvailable", "maxRetry", "ttlSecondsAfterFinished", "policies", "schedulerName",
             "queue", "priorityClassName"});
  job.reshape(std::move(shape), std::move(origins));
  return true;
}

// The job's processes and how many of them a worker has; the only pod template is launcher's and worker's.
Result<bool> v1alpha1(Source& job) {
  json shape = mpi_job(job);
  json& spec = shape["spec"];
  const json* pod = job.field("spec.template");
  if (pod == nullptr || !pod->is_object())
    return job.wrong("spec.template", "must be a pod template, with mpirun as its command");
  const auto first = [&](std::initializer_list<const char*> names) -> std::string {
    for (const char* name : names)
      if (job.field(std::format("spec.{}", name)) != nullptr) return std::format("spec.{}", name);
    return "";
  };
  const std::string units = first({"processingUnits", "gpus"});
  const std::string each = first({"processingUnitsPerNode", "gpusPerNode", "slotsPerWorker"});
  const auto count = [&](const std::string& path, std::int32_t otherwise) -> Result<std::int32_t> {
    if (path.empty()) return otherwise;
    const auto number = whole_number<std::int32_t>(*job.field(path));
    if (!number || *number < 1) return job.wrong(path, "must be a whole number that is at least 1");
    return *number;
  };
  BSP_TRY(const std::int32_t processes, count(units, 1));
  BSP_TRY(const std::int32_t slots, count(each, 1));
  const json& type = part_at(*job.field("spec"), "processingResourceType");
  const bool is_gpu = type.is_null() ? units == "spec.gpus" || first({"gpusPerNode"}) != "" : type == "gpu";
  json workers = *pod;
  if (json* container = first_container(workers)) {
    if (is_gpu && part_at(*container, "resources").is_null())
      (*container)["resources"] = {
          {"limits", {{"nvidia.com/gpu", units.empty() ? slots : std::min(slots, processes)}}}};
    container->erase("command");
    container->erase("args");
  }
  json& replicas = spec["mpiReplicaSpecs"];
  replicas["Launcher"]["template"] = *pod;
  replicas["Worker"]["template"] = std::move(workers);
  if (units.empty())
    carry(job, "replicas", replicas["Worker"], "replicas");
  else
    replicas["Worker"]["replicas"] = (processes + slots - 1) / slots;
  spec["slotsPerWorker"] = slots;
  for (const char* field : {"backoffLimit", "activeDeadlineSeconds", "cleanPodPolicy", "ttlSecondsAfterFinished"})
    carry(job, field, spec["runPolicy"], field);
  if (spec["runPolicy"].is_null()) spec.erase("runPolicy");
  note_each(job, "spec", *job.field("spec"),
            {"template", "processingUnits", "gpus", "processingUnitsPerNode", "gpusPerNode", "slotsPerWorker",
             "replicas", "processingResourceType", "backoffLimit", "activeDeadlineSeconds", "cleanPodPolicy",
             "ttlSecondsAfterFinished", "launcherOnMaster"});
  job.reshape(std::move(shape), {{std::string(kLauncher) + ".template", "spec.template"},
                                 {std::string(kWorker) + ".template", "spec.template"},
                                 {std::string(kWorker) + ".replicas", units.empty() ? "spec.replicas" : units},
                                 {"spec.slotsPerWorker", each.empty() ? "spec" : each},
                                 {"spec.runPolicy.", "spec."}});
  return true;
}

// The runtime in the file that the job names.
const json* runtime_of(std::span<const json> file, const std::string& name) {
  for (const json& object : file)
    if (text_at(object, "kind").ends_with("TrainingRuntime") && text_at(part_at(object, "metadata"), "name") == name)
      return &object;
  return nullptr;
}

// The pod in which the runtime runs the trainer: that of the replicated job "node", "trainer" or "launcher".
json pod_of(const json& runtime) {
  const json& jobs = part_at(part_at(part_at(part_at(runtime, "spec"), "template"), "spec"), "replicatedJobs");
  for (const char* name : {"node", "trainer", "launcher"})
    for (const json& job : jobs)
      if (text_at(job, "name") == name) return part_at(part_at(part_at(job, "template"), "spec"), "template");
  return {};
}

Result<bool> train_job(Source& job, std::span<const json> file) {
  const json* reference = job.field("spec.runtimeRef");
  const std::string runtime_name = reference != nullptr ? text_at(*reference, "name") : "";
  const json* runtime = runtime_of(file, runtime_name);
  const json& policy = runtime != nullptr ? part_at(part_at(*runtime, "spec"), "mlPolicy") : part_at(json(), "");
  const bool is_flux = runtime != nullptr ? !part_at(policy, "flux").is_null() : runtime_name.contains("flux");
  const bool is_mpi = runtime != nullptr ? !part_at(policy, "mpi").is_null()
                                         : runtime_name.contains("mpi") || runtime_name.contains("deepspeed") ||
                                               runtime_name.contains("mlx");
  if (!is_flux && !is_mpi) return false;
  const json* trainer = job.field("spec.trainer");
  if (trainer == nullptr || !trainer->is_object())
    return job.wrong("spec.trainer", "is missing: write its image, command, numNodes and numProcPerNode");
  json pod = runtime != nullptr ? pod_of(*runtime) : json();
  if (first_container(pod) == nullptr) {
    pod = json::object();
    pod["spec"]["containers"] = json::array({json{{"name", "node"}}});
  }
  json& container = *first_container(pod);
  for (const char* field : {"image", "env"})
    if (const json& value = part_at(*trainer, field); !value.is_null()) container[field] = value;
  if (part_at(container, "image").is_null())
    return job.wrong("spec.trainer.image",
                     std::format("is missing, and the file holds no runtime \"{}\": write the image "
                                 "here, or put the runtime into the file",
                                 runtime_name));
  if (const json& resources = part_at(*trainer, "resourcesPerNode"); !resources.is_null())
    container["resources"] = resources;
  json launcher = pod;
  json& main = *first_container(launcher);
  for (const char* field : {"command", "args"})
    if (const json& words = part_at(*trainer, field); !words.is_null()) main[field] = words;
  if (is_flux) {  // Flux starts the program itself
    const char* field = part_at(main, "command").is_array() ? "command" : "args";
    if (json& words = main[field]; words.is_array()) words.insert(words.begin(), "mpirun");
  }
  container.erase("command");
  container.erase("args");

  json shape = mpi_job(job);
  json& spec = shape["spec"];
  spec["mpiReplicaSpecs"] = {{"Launcher", {{"template", std::move(launcher)}}},
                             {"Worker", {{"template", std::move(pod)}}}};
  const auto number = [&](const char* name, const json& of_runtime) {
    const json& own = part_at(*trainer, name);
    return own.is_null() ? of_runtime : own;
  };
  spec["mpiReplicaSpecs"]["Worker"]["replicas"] = number("numNodes", part_at(policy, "numNodes"));
  spec["slotsPerWorker"] =
      number("numProcPerNode", part_at(part_at(policy, is_flux ? "flux" : "mpi"), "numProcPerNode"));
  if (const json& implementation = part_at(part_at(policy, "mpi"), "mpiImplementation"); !implementation.is_null())
    spec["mpiImplementation"] = implementation;
  carry(job, "suspend", spec["runPolicy"], "suspend");
  if (spec["runPolicy"].is_null()) spec.erase("runPolicy");
  if (runtime == nullptr)
    job.note(
        "spec.runtimeRef",
        std::format("what runtime \"{}\" adds to the pods isn't known here, for the file doesn't hold it: write its "
                    "volumes and the like into spec.template",
                    runtime_name));
  note_each(job, "spec", *job.field("spec"), {"runtimeRef", "trainer", "suspend"});
  note_each(job, "spec.trainer", *trainer,
            {"image", "command", "args", "env", "numNodes", "numProcPerNode", "resourcesPerNode"});
  const std::string first = ".template.spec.containers[0]";
  job.reshape(std::move(shape), {{std::string(kWorker) + first + ".resources", "spec.trainer.resourcesPerNode"},
                                 {std::string(kWorker) + first, "spec.trainer"},
                                 {std::string(kLauncher) + first, "spec.trainer"},
                                 {std::string(kWorker) + ".replicas", "spec.trainer.numNodes"},
                                 {"spec.slotsPerWorker", "spec.trainer.numProcPerNode"},
                                 {kWorker, "spec.trainer"},
                                 {kLauncher, "spec.trainer"},
                                 {"spec.runPolicy.suspend", "spec.suspend"}});
  return true;
}

}  // namespace

Result<bool> as_mpi_job(Source& job, std::span<const json> file) {
  const std::string kind = text_at(job.root(), "kind"), version = text_at(job.root(), "apiVersion");
  if (kind == "Job" && version.starts_with("batch.volcano.sh/")) return volcano(job);
  if (kind == "TrainJob" && version.starts_with("trainer.kubeflow.org/")) return train_job(job, file);
  if (kind != "MPIJob") return false;
  const json* api = job.field("apiVersion");
  if (job.field("spec") == nullptr || !job.field("spec")->is_object()) return job.wrong("spec", "must be an object");
  if (version == "kubeflow.org/v1alpha1") return v1alpha1(job);
  if (version != "kubeflow.org/v2beta1" && version != "kubeflow.org/v1" && version != "kubeflow.org/v1alpha2")
    return job.wrong("apiVersion", std::format("is \"{}\": must be kubeflow.org/v2beta1, v1, v1alpha2 or v1alpha1",
                                               api != nullptr ? text_of(*api) : ""));
  return true;
}

bool may_hold_job(std::string_view text) {
  return text.contains("apiVersion:") && text.contains("kind:") &&
         (text.contains("MPIJob") || text.contains("TrainJob") || text.contains("batch.volcano.sh/"));
}

}  // namespace bsp::convert
