#include "operator/convert/mpijob.h"

#include <algorithm>
#include <array>
#include <format>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json/fields.h"
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

constexpr std::string_view kNeedsOpenMpi =
    "rebuild the program with Open MPI 5, in an image that has it; a program of another MPI doesn't start as a BSPJob";
constexpr std::string_view kNeedsDevice =
    "a rank that uses a device such as a GPU can't move; rebuild the program for CPUs and leave this out, or run it "
    "without moves "
    "(spec.rescheduling.mode: Off)";

// MPI's messages would go through it.
bool is_network_device(std::string_view resource) {
  return resource.starts_with("rdma/") || resource.contains("/rdma") || resource.ends_with("/efa") ||
         resource.contains("/mlnx") || resource.contains("infiniband") || resource.contains("sriov");
}

// Values for the placeholders that stand where the schema wants more than text.
void fill_in(json& value, crds::Shape shape, std::span<const crds::Field> fields) {
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    if (placeholders_in(text, false).empty()) return;
    if (shape == crds::Shape::kFlag)
      value = true;
    else if (shape == crds::Shape::kNumber || shape == crds::Shape::kNumbers)
      value = 1;
    else if (shape == crds::Shape::kQuantity || shape == crds::Shape::kQuantities)
      value = "1";
    else
      value = without_placeholders(text, "x");
  } else if (value.is_object()) {
    for (auto& [name, part] : value.items()) {
      const auto field = std::ranges::find(fields, name, &crds::Field::name);
      const bool is_known = field != fields.end();
      fill_in(part, is_known ? field->shape : shape, is_known ? field->fields : std::span<const crds::Field>());
    }
  } else if (value.is_array()) {
    for (json& part : value) fill_in(part, shape, fields);
  }
}

class MpiJob {
 public:
  MpiJob(Source& source, Placeholders& placeholders) : source_(source), placeholders_(placeholders) {}

  // One for each mpirun of the launcher's script, in order.
  Result<std::vector<json>> convert() {
    BSP_CHECK_OK(check_fields());
    BSP_CHECK_OK(find_templates());
    BSP_TRY(hosts_, number_of_hosts());
    std::vector<json> jobs;
    std::size_t runs = 1;
    for (std::size_t run = 0; run < runs; ++run) {
      BSP_TRY(launcher_, read_launcher(source_, launchers(), launcher_template_.container_path(), hosts_, run));
      runs = launcher_.launch.runs;
      BSP_TRY(json job, one_job());
      if (runs > 1) name_part(job, run, runs);
      jobs.push_back(std::move(job));
    }
    note_fields(source_);
    return jobs;
  }

 private:
  Result<json> one_job() {
    BSP_TRY(json container, app());
    json pod = template_.pod["spec"];
    pod.erase("restartPolicy");  // a BSPJob restarts as a whole
    pod["containers"][template_.main] = std::move(container);
    json pod_template = {{"spec", std::move(pod)}};
    if (template_.pod.contains("metadata")) pod_template["metadata"] = template_.pod["metadata"];

    BSP_TRY(const Count ranks, number_of_ranks());
    json spec = {{"template", std::move(pod_template)}};
    set_number(spec, "ranks", ranks);
    BSP_CHECK_OK(set_ranks_per_pod(spec, ranks));
    if (json policy = run_policy(); !policy.empty()) spec["runPolicy"] = std::move(policy);
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
    note_placeholders(job);
    return job;
  }

  void set_number(json& spec, const char* field, const Count& count) {
    if (count.is_known()) {
      spec[field] = count.number;
      return;
    }
    spec[field] = placeholders_.number(count.text);
    if (count.text.contains(" * "))
      source_.note("spec", std::format("spec.{} is {}: write that product as one number", field, count.text));
  }

  void name_part(json& job, std::size_t run, std::size_t runs) {
    const std::string name = text_at(job["metadata"], "name");
    job["metadata"]["name"] = std::format("{}-{}", name, run + 1);
    if (run == 0)
      source_.note(launcher_.path,
                   std::format("its script runs mpirun {} times: each is a BSPJob of its own, {}-1 to {}-{}; "
                               "create each when the one before it has succeeded",
                               runs, name, name, runs));
  }

  void note_placeholders(const json& job) {
    std::vector<std::string> kept;
    const auto collect = [&](const auto& self, const json& value, bool is_script) -> void {
      if (value.is_string())
        for (std::string& found : placeholders_in(value.get<std::string>(), is_script))
          if (!std::ranges::contains(kept, found)) kept.push_back(std::move(found));
      if (value.is_array()) {
        const bool is_shells = !value.empty() && value[0].is_string() && is_shell(value[0].get<std::string>());
        for (const json& part : value) self(self, part, is_script || is_shells);
      }
      if (value.is_object())
        for (const auto& [name, part] : value.items()) self(self, part, is_script);
    };
    collect(collect, job, false);
    std::string all;
    for (const std::string& text : kept)
      if (const std::string shown = placeholders_.show(text);
          !shown.contains(" * "))  // those that it multiplies are named, too
        all += (all.empty() ? "" : ", ") + shown;
    if (!all.empty()) source_.note("metadata.name", std::format("kept, to be filled in: {}", all));
  }

  Result<void> check_fields() const {
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
    BSP_TRY(const Count sharers, ranks_that_share());
    const auto resources = container.find("resources");
    if (resources == container.end() || !resources->is_object()) return {};
    for (const char* kind : {"requests", "limits"}) {
      const auto list = resources->find(kind);
      if (list == resources->end() || !list->is_object()) continue;
      for (auto entry = list->begin(); entry != list->end();) {
        const std::string name = entry.key();
        const std::string field = std::format("{}.resources.{}.{}", template_.container_path(), kind, name);
        const bool is_new = std::string_view(kind) == "requests" || !part_at(*resources, "requests").contains(name);
        if (is_network_device(name)) {
          if (is_new) source_.note(field, "not carried over: ranks communicate by shared memory and TCP");
          entry = list->erase(entry);
          continue;
        }
        const bool is_device = name.contains('/');
        if (is_device && is_new && text_of(*entry) != "0") source_.must_rebuild(field, kNeedsDevice);
        BSP_CHECK_OK(share(*entry, name, field, sharers));
        ++entry;
      }
    }
    return {};
  }

  Result<void> share(json& quantity, const std::string& name, const std::string& field, const Count& sharers) {
    if (sharers.is_one() || text_of(quantity) == "0") return {};
    if (!sharers.is_known() || placeholders_in(text_of(quantity), false).size() > 0) {
      source_.note(
          field, std::format("is {} for {} ranks: write the share of one of them", text_of(quantity), sharers.shown()));
      return {};
    }
    auto part = divided(name, quantity, sharers.number);
    if (!part) return source_.wrong(field, part.error().message);
    if (name.contains('/') && part->ends_with('m'))
      return source_.wrong(field,
                           std::format("is {} for {} ranks, and a rank can't share a device: write {}: {}, or none",
                                       text_of(quantity), sharers.number, name, sharers.number));
    quantity = *part;
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
    if (mpi != nullptr && *mpi != "OpenMPI")
      source_.must_rebuild("spec.mpiImplementation", std::format("{}: {}", text_of(*mpi), kNeedsOpenMpi));
    if (uses_gpu_library())
      source_.must_rebuild(launcher_.path,
                           "NCCL or RCCL: its connections between GPUs don't outlive a move; rebuild the program "
                           "to communicate by MPI alone");
    const LauncherContainer from = {.container = launcher,
                                    .path = launcher_template_.container_path(),
                                    .is_template = !has_workers_,
                                    .passes_everything = is_other || is_hydra(launcher_.launch.mpirun)};
    if (mpi == nullptr && is_hydra(launcher_.launch.mpirun))
      source_.must_rebuild(launcher_.path, std::format("{}: {}", launcher_.launch.mpirun, kNeedsOpenMpi));
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

  [[nodiscard]] bool uses_gpu_library() const {
    const auto names_it = [](const std::string& text) {
      return text.contains("nccl") || text.contains("rccl") || text.contains("NCCL_");
    };
    return std::ranges::any_of(launcher_.run.program, names_it, &Word::text) ||
           std::ranges::any_of(launcher_.run.exported, names_it) ||
           std::ranges::any_of(launcher_.run.environment, [&](const auto& v) { return names_it(v.first); }) ||
           std::ranges::any_of(launcher_.run.assignments, [&](const auto& v) { return names_it(v.first); });
  }

  // An int32 of the MPIJob's API.
  Result<Count> positive(std::string_view path, std::uint32_t otherwise) const {
    const json* value = source_.field(path);
    if (value == nullptr) return Count{.number = otherwise};
    if (value->is_string() && is_placeholder(value->get<std::string>()))
      return Count{.text = value->get<std::string>()};
    const auto number = whole_number<std::int32_t>(*value);
    if (!number || *number < 1)
      return source_.wrong(
          path, std::format("is {}: must be a whole number that is at least 1 and less than 2^31", value->dump()));
    return Count{.number = static_cast<std::uint64_t>(*number)};
  }

  [[nodiscard]] bool launcher_is_worker() const {
    const json* as_worker = source_.field("spec.runLauncherAsWorker");
    return as_worker != nullptr && *as_worker == true;
  }
  Result<Count> number_of_hosts() {
    if (!has_workers_) return Count{};
    BSP_TRY(Count workers, positive(worker_path_ + ".replicas", 1));
    if (!launcher_is_worker()) return workers;
    source_.note("spec.runLauncherAsWorker", "the launcher's ranks get pods like the workers'");
    if (!workers.is_known()) return Count{.text = std::format("({} + 1)", workers.text)};
    return Count{.number = workers.number + 1};
  }
  [[nodiscard]] Result<Count> slots() const {
    if (launcher_.run.ranks_per_worker) return *launcher_.run.ranks_per_worker;
    return positive("spec.slotsPerWorker", 1);
  }

  Result<Count> number_of_ranks() const {
    const MpiRun& run = launcher_.run;
    if (run.ranks) return *run.ranks;
    if (!run.unclear.empty())
      return source_.wrong(
          launcher_.path,
          std::format("{} leaves open how many ranks there are: write -np and their number", run.unclear));
    BSP_TRY(const Count each, slots());
    if (run.hosts) return run.ranks_per_worker ? each * Count{.number = *run.hosts} : Count{.number = *run.slots};
    return each * hosts_;  // mpirun's default: every slot
  }

  // The ranks that share a worker's resources: as many as its slots, or more if there are more ranks than slots.
  Result<Count> ranks_that_share() const {
    BSP_TRY(const Count each, slots());
    BSP_TRY(const Count ranks, number_of_ranks());
    if (!each.is_known() || !ranks.is_known() || !hosts_.is_known()) return each;
    return Count{.number = std::max(each.number, (ranks.number + hosts_.number - 1) / hosts_.number)};
  }

  // As many as a worker had: they still share a node's memory.
  Result<void> set_ranks_per_pod(json& spec, const Count& ranks) {
    BSP_TRY(Count each, ranks_that_share());
    if (each.is_known() && ranks.is_known()) each.number = std::min(each.number, ranks.number);
    if (each.is_known()) each.number = std::min<std::uint64_t>(each.number, wire::kMostSeats);
    if (each.is_one()) return {};
    set_number(spec, "ranksPerPod", each);
    return {};
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

  // The field that a field of the result comes from; empty if there is none.
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
    json filled = job;  // with a value for each placeholder
    fill_in(filled["metadata"], crds::Shape::kText, {});
    fill_in(filled["spec"]["template"], crds::kPodTemplate.shape, crds::kPodTemplate.fields);
    for (json& field : filled["spec"])
      if (field.is_string()) fill_in(field, crds::Shape::kNumber, {});
    for (json& field : filled["spec"]["runPolicy"]) fill_in(field, crds::Shape::kNumber, {});
    const auto valid =
        crds::bsp_job_from_json(filled).and_then([](const crds::BspJob& read) { return crds::validate(read.spec); });
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

  Source& source_;
  Placeholders& placeholders_;
  PodOf launcher_template_, template_;  // the launcher's pod; the pod that the ranks get
  std::string worker_path_;
  bool has_workers_ = false;
  Count hosts_;  // of the hostfile
  Launcher launcher_;
};

}  // namespace

Result<std::vector<nlohmann::json>> convert_job(Source& job, Placeholders& placeholders) {
  return MpiJob(job, placeholders).convert();
}

}  // namespace bsp::convert
