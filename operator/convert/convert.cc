#include "operator/convert/convert.h"

#include <algorithm>
#include <array>
#include <format>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json/fields.h"
#include "base/json/yaml.h"
#include "crds/bspjob.h"
#include "crds/names.h"
#include "crds/pod_schema.h"
#include "operator/convert/environment.h"
#include "operator/convert/launcher.h"
#include "operator/convert/losses.h"
#include "operator/convert/resources.h"
#include "operator/convert/source.h"

namespace bsp::convert {
namespace {

using nlohmann::json;

class MpiJob {
 public:
  MpiJob(const json& root, const YamlLines& lines, std::string_view file, std::string prefix)
      : source_(root, lines, file, std::move(prefix)) {}

  Result<json> convert() {
    BSP_CHECK_OK(check_kind());
    BSP_CHECK_OK(find_templates());
    BSP_TRY(hosts_, number_of_hosts());
    BSP_TRY(launcher_, read_launcher(source_, launchers(), launcher_template_.container_path(), hosts_));
    BSP_TRY(json container, app());
    json pod = template_.pod["spec"];
    pod.erase("restartPolicy");  // a BSPJob restarts as a whole
    pod["containers"][template_.main] = std::move(container);
    json pod_template = {{"spec", std::move(pod)}};
    if (template_.pod.contains("metadata")) pod_template["metadata"] = template_.pod["metadata"];

    BSP_TRY(const std::uint64_t ranks, number_of_ranks());
    json spec = {{"ranks", ranks}, {"template", std::move(pod_template)}};
    if (json policy = run_policy(); !policy.empty()) spec["runPolicy"] = std::move(policy);
    note_fields(source_);
    json job = {{"apiVersion", names::kApiVersion},
                {"kind", names::kBspJobKind},
                {"metadata", metadata()},
                {"spec", std::move(spec)}};
    // An API server drops a pod's unknown fields, so that the MPIJob ran without them.
    crds::drop_unknown(job["spec"]["template"], crds::kPodTemplate, "spec.template",
                       [&](const std::string& path, const std::string& why) {
                         source_.note(origin(path), std::format("not carried over: {}", why));
                       });
    BSP_CHECK_OK(check_result(job));
    return job;
  }

  [[nodiscard]] const std::vector<std::string>& notes() const { return source_.notes; }

 private:
  Result<void> check_kind() const {
    const json* api = source_.field("apiVersion");
    const std::string version = api != nullptr ? text_of(*api) : "";
    if (version != "kubeflow.org/v2beta1" && version != "kubeflow.org/v1" && version != "kubeflow.org/v1alpha2")
      return source_.wrong("apiVersion",
                           std::format("is \"{}\": must be kubeflow.org/v2beta1, v1 or v1alpha2", version));
    if (const json* spec = source_.field("spec"); spec == nullptr || !spec->is_object())
      return source_.wrong("spec", "must be an object");
    // A list here, say, would lose the job its limits without a word.
    if (const json* policy = source_.field("spec.runPolicy"); policy != nullptr && !policy->is_object())
      return source_.wrong("spec.runPolicy", "must be an object");
    return {};
  }

  // Old manifests write the types of replicas in lower case.
  [[nodiscard]] std::string replica_path(std::string_view type) const {
    std::string path = std::format("spec.mpiReplicaSpecs.{}", type);
    std::string old = path;
    old[old.size() - type.size()] |= 0x20;
    return source_.field(path) == nullptr && source_.field(old) != nullptr ? old : path;
  }

  // The template of a replica, if there is one, after a check that it has containers.
  Result<std::optional<PodOf>> template_of(const std::string& replica) const {
    if (source_.field(replica) == nullptr) return std::nullopt;
    const std::string path = replica + ".template";
    const json* found = source_.field(path);
    const json* containers = source_.field(path + ".spec.containers");
    if (found == nullptr || containers == nullptr || !containers->is_array() || containers->empty() ||
        !std::ranges::all_of(*containers, [](const json& c) { return c.is_object(); }))
      return source_.wrong(path + ".spec.containers", "must be a list with at least one container");
    return PodOf{.pod = *found, .path = path, .main = main_container(*containers)};
  }

  // v1 names the container that runs mpirun; else it is the first.
  [[nodiscard]] std::size_t main_container(const json& containers) const {
    const json* name = source_.field("spec.mainContainer");
    for (std::size_t i = 0; name != nullptr && i < containers.size(); ++i)
      if (part_at(containers[i], "name") == *name) return i;
    return 0;
  }

  Result<void> find_templates() {
    const std::string launcher = replica_path("Launcher");
    worker_path_ = replica_path("Worker");
    BSP_TRY(const auto launchers, template_of(launcher));
    BSP_TRY(const auto workers, template_of(worker_path_));
    if (!launchers) return source_.wrong(launcher, "is missing: its mpirun names the program to run");
    launcher_template_ = *launchers;
    has_workers_ = workers.has_value();
    template_ = workers.value_or(launcher_template_);
    if (!has_workers_) return {};
    note_launchers_own(source_, *launchers, *workers);
    note_workers_command(source_, *workers);
    return {};
  }

  // The program's words, under a shell if one must prepare something or expand something in them; exec, because only the
  // container's own process moves.
  Result<json> program(const std::vector<std::string>& exported) const {
    std::vector<Word> words;
    const auto add_expanded = [&](const Word& word) {
      if (word.expanded) words.push_back(word);
    };
    std::ranges::for_each(launcher_.run.program, add_expanded);
    for (const auto& [name, word] : launcher_.run.assignments) add_expanded(word);
    const auto prepared = preparation(launcher_.launch, words, exported);
    if (!prepared) return source_.wrong(launcher_.path, prepared.error().message);
    std::string script = *prepared;
    for (const auto& [name, word] : launcher_.run.assignments) script += std::format("export {}; ", word.source);
    if (!launcher_.run.directory.empty() && !script.empty())
      script += std::format("cd {} || exit; ", quoted(launcher_.run.directory));
    json plain = json::array();
    if (script.empty() && words.empty()) {
      for (const Word& word : launcher_.run.program) plain.push_back(word.text);
      return plain;
    }
    script += "exec";
    for (const Word& word : launcher_.run.program) script += " " + word.source;
    plain = launcher_.shell;
    plain.push_back(script);
    return plain;
  }

  Result<void> share_resources(json& container) {
    BSP_TRY(const std::uint64_t sharers, ranks_that_share());
    const auto resources = container.find("resources");
    if (resources == container.end() || !resources->is_object()) return {};
    for (const char* kind : {"requests", "limits"}) {
      const auto list = resources->find(kind);
      if (list == resources->end() || !list->is_object()) continue;
      for (auto& [name, quantity] : list->items()) {
        const std::string field = std::format("{}.resources.{}.{}", template_.container_path(), kind, name);
        const bool is_device = name.contains('/');
        const bool is_new = std::string_view(kind) == "requests" || !part_at(*resources, "requests").contains(name);
        if (is_device && is_new && text_of(quantity) != "0")
          source_.note(field, "carried over, but a rank that uses a device such as a GPU can't move");
        if (sharers == 1) continue;
        auto share = divided(name, quantity, sharers);
        if (!share) return source_.wrong(field, share.error().message);
        if (is_device && share->ends_with('m'))
          return source_.wrong(
              field, std::format("is {} for {} ranks, each of which gets a pod: give a worker as many as it has "
                                 "ranks, or none",
                                 text_of(quantity), sharers));
        quantity = *share;
      }
    }
    return {};
  }

  // The workers' container, without sshd: it runs the program.
  Result<json> app() {
    json container = template_.pod["spec"]["containers"][template_.main];
    container.erase("args");
    for (const char* field : {"readinessProbe", "livenessProbe", "startupProbe", "lifecycle"}) {
      if (container.contains(field))
        source_.note(std::format("{}.{}", template_.container_path(), field),
                     "not carried over: it is about the worker's sshd");
      container.erase(field);
    }
    container["name"] = "app";
    const json& launcher = launchers();
    BSP_CHECK_OK(set_directory(container));
    const json& user = part_at(launcher, "securityContext");
    const json& own = part_at(container, "securityContext");
    if (user.is_object() && (own.is_null() || own.is_object()))
      for (const char* field : {"runAsUser", "runAsGroup"})  // mpirun's ssh logs in as the launcher's user
        if (user.contains(field) && !own.contains(field)) container["securityContext"][field] = user[field];
    const json* mpi = source_.field("spec.mpiImplementation");
    const bool is_other = mpi != nullptr && (*mpi == "MPICH" || *mpi == "Intel");
    const LauncherContainer from = {.container = launcher,
                                    .path = launcher_template_.container_path(),
                                    .is_template = !has_workers_,
                                    .passes_everything = is_other || is_hydra(launcher_.launch.mpirun)};
    if (mpi == nullptr && is_hydra(launcher_.launch.mpirun))
      source_.note(launcher_.path,
                   std::format("{} is of another MPI: the program must be built with Open MPI 5 to run as a BSPJob",
                               launcher_.launch.mpirun));
    const auto exported = carry_environment(source_, container, template_.container_path(), from, launcher_);
    BSP_TRY(container["command"], program(exported));
    note_host_names(source_, container, template_.container_path());
    BSP_CHECK_OK(share_resources(container));
    return container;
  }

  // mpirun passes on the directory that it runs in.
  Result<void> set_directory(json& container) const {
    const std::string own = text_at(launchers(), "workingDir");
    const std::string from = launcher_.launch.directory.empty() ? own : launcher_.launch.directory;
    std::string directory = launcher_.run.directory;
    if (!directory.empty() && !directory.starts_with('/')) {
      if (from.empty())
        return source_.wrong(launcher_.path, std::format("--wdir is \"{}\": write it from / on", directory));
      directory = std::format("{}/{}", from, directory);
    }
    if (directory.empty()) directory = from;
    if (!directory.empty()) container["workingDir"] = directory;
    return {};
  }

  // An int32 of the MPIJob's API.
  Result<std::uint32_t> positive(std::string_view path, std::uint32_t otherwise) const {
    const json* value = source_.field(path);
    if (value == nullptr) return otherwise;
    const auto number = whole_number<std::int32_t>(*value);
    if (!number || *number < 1)
      return source_.wrong(
          path, std::format("is {}: must be a whole number that is at least 1 and less than 2^31", value->dump()));
    return static_cast<std::uint32_t>(*number);
  }

  [[nodiscard]] bool launcher_is_worker() const {
    const json* as_worker = source_.field("spec.runLauncherAsWorker");
    return as_worker != nullptr && *as_worker == true;
  }
  Result<std::uint64_t> number_of_hosts() {
    if (!has_workers_) return 1;
    BSP_TRY(const std::uint64_t workers, positive(worker_path_ + ".replicas", 1));
    if (!launcher_is_worker()) return workers;
    source_.note("spec.runLauncherAsWorker", "the launcher's ranks get pods like the workers'");
    return workers + 1;
  }
  [[nodiscard]] Result<std::uint32_t> slots() const {
    if (launcher_.run.ranks_per_worker) return *launcher_.run.ranks_per_worker;
    return positive("spec.slotsPerWorker", 1);
  }

  Result<std::uint64_t> number_of_ranks() const {
    const MpiRun& run = launcher_.run;
    if (run.ranks) return *run.ranks;
    if (!run.unclear.empty())
      return source_.wrong(
          launcher_.path,
          std::format("{} leaves open how many ranks there are: write -np and their number", run.unclear));
    BSP_TRY(const std::uint32_t each, slots());
    if (run.hosts) return run.ranks_per_worker ? std::uint64_t{each} * *run.hosts : *run.slots;
    return each * hosts_;  // mpirun's default: every slot
  }

  // Of those that a worker's resources are for: its slots, or more if there are more ranks than slots.
  Result<std::uint64_t> ranks_that_share() const {
    BSP_TRY(const std::uint64_t each, slots());
    BSP_TRY(const std::uint64_t ranks, number_of_ranks());
    return std::max(each, (ranks + hosts_ - 1) / hosts_);
  }

  json run_policy() {
    json policy = json::object();
    for (const char* field : {"cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"})
      for (const std::string& path : {std::format("spec.{}", field), std::format("spec.runPolicy.{}", field)})
        if (const json* value = source_.field(path)) policy[field] = *value;
    if (const json* value = source_.field("spec.runPolicy.suspend")) policy["suspend"] = *value;
    if (launcher_.run.seconds && !policy.contains("activeDeadlineSeconds"))
      policy["activeDeadlineSeconds"] = *launcher_.run.seconds;
    return policy;
  }

  json metadata() {
    json result = json::object();
    for (const char* field : {"name", "namespace", "labels", "annotations"})
      if (const json* value = source_.field(std::format("metadata.{}", field))) result[field] = *value;
    if (result.contains("annotations") && result["annotations"].is_object())
      result["annotations"].erase("kubectl.kubernetes.io/last-applied-configuration");
    const json* prefix = source_.field("metadata.generateName");
    if (!result.contains("name") && prefix != nullptr && prefix->is_string()) {
      std::string name = prefix->get<std::string>();
      name.erase(name.find_last_not_of('-') + 1);
      source_.note("metadata.generateName", std::format("a BSPJob has a name of its own: {}", name));
      result["name"] = name;
    }
    return result;
  }

  // Of a field of the result, the field that it comes from; empty if it comes from none.
  [[nodiscard]] std::string origin(const std::string& field) const {
    const std::string pod = "spec.template", policy = "spec.runPolicy.";
    if (field.starts_with(std::format("{}.spec.containers[{}].command", pod, template_.main)) || field == "spec.ranks")
      return launcher_.path;
    if (field.starts_with(pod)) return template_.path + field.substr(pod.size());
    if (field.starts_with("metadata")) return field;
    if (!field.starts_with(policy)) return "";
    return source_.field(field) != nullptr ? field : "spec." + field.substr(policy.size());
  }

  // The result is what `bsp-operator` and the cluster accept, or the message names what to change in the MPIJob.
  Result<void> check_result(const json& job) const {
    const auto valid =
        crds::bsp_job_from_json(job).and_then([](const crds::BspJob& read) { return crds::validate(read.spec); });
    if (valid) return {};
    const std::string& message = valid.error().message;
    const std::size_t colon = std::min(message.find(": "), message.size());
    const std::string field = message.substr(0, colon), from = origin(field);
    if (from.empty()) return source_.wrong("spec", std::format("the BSPJob's {}", message));
    return source_.wrong(from, field == from || from.ends_with(field.substr(field.rfind('.')))
                                   ? message.substr(std::min(colon + 2, message.size()))
                                   : std::format("the BSPJob's {}", message));
  }

  [[nodiscard]] const json& launchers() const {
    return launcher_template_.pod["spec"]["containers"][launcher_template_.main];
  }

  Source source_;
  PodOf launcher_template_, template_;  // the launcher's pod; the pod that the ranks get
  std::string worker_path_;
  bool has_workers_ = false;
  std::uint64_t hosts_ = 1;  // of the hostfile
  Launcher launcher_;
};

}  // namespace

Result<Converted> convert(std::string_view yaml, std::string_view file_name) {
  std::vector<YamlLines> lines;
  const auto documents = read_yaml(yaml, &lines);
  if (!documents)
    return fail(ErrorCode::kInvalid,
                std::format("{}:{}: {}", file_name, documents.error().line, documents.error().message));
  Converted result;
  bool found = false;
  const auto add = [&](const json& object, const YamlLines& of, const std::string& prefix) -> Result<void> {
    json printed = object;
    if (text_at(object, "kind") == "MPIJob") {
      found = true;
      MpiJob job(object, of, file_name, prefix);
      BSP_TRY(printed, job.convert());
      result.notes.insert(result.notes.end(), job.notes().begin(), job.notes().end());
    }
    result.yaml += (result.yaml.empty() ? "" : "---\n") + write_yaml(printed);
    return {};
  };
  for (std::size_t i = 0; i < documents->size(); ++i) {
    const json& document = (*documents)[i];
    const json& items = part_at(document, "items");
    const bool is_list = text_at(document, "kind").ends_with("List") && items.is_array();
    if (!is_list) BSP_CHECK_OK(add(document, lines[i], ""));
    for (std::size_t item = 0; is_list && item < items.size(); ++item)
      BSP_CHECK_OK(add(items[item], lines[i], std::format("items[{}].", item)));
  }
  if (!found) return fail(ErrorCode::kInvalid, std::format("{} holds no MPIJob: kind must be MPIJob", file_name));
  return result;
}

}  // namespace bsp::convert
