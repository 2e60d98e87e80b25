#include "operator/convert/convert.h"

#include <algorithm>
#include <array>
#include <format>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json/fields.h"
#include "base/json/yaml.h"
#include "crds/manifest.h"
#include "crds/names.h"
#include "operator/convert/mpirun.h"
#include "operator/convert/names.h"
#include "operator/convert/resources.h"

namespace bsp::convert {
namespace {

using nlohmann::json;

constexpr std::string_view kWorker = "spec.mpiReplicaSpecs.Worker", kLauncher = "spec.mpiReplicaSpecs.Launcher";

std::string text_of(const json& scalar) { return scalar.is_string() ? scalar.get<std::string>() : scalar.dump(); }

// One MPIJob with the lines of its fields. Paths are those of YamlLines.
class MpiJob {
 public:
  MpiJob(const json& root, const YamlLines& lines, std::string_view file) : root_(root), lines_(lines), file_(file) {}

  Result<json> convert() {
    BSP_CHECK_OK(check_kind());
    BSP_CHECK_OK(find_templates());
    BSP_CHECK_OK(read_command());
    BSP_TRY(json container, app());
    json pod = template_["spec"];
    pod.erase("restartPolicy");  // a BSPJob restarts as a whole
    json& containers = pod["containers"];
    containers[main_] = std::move(container);
    json pod_template = {{"spec", std::move(pod)}};
    if (template_.contains("metadata")) pod_template["metadata"] = template_["metadata"];

    BSP_TRY(const std::uint64_t ranks, number_of_ranks());
    json spec = {{"ranks", ranks}, {"template", std::move(pod_template)}};
    if (json policy = run_policy(); !policy.empty()) spec["runPolicy"] = std::move(policy);
    note_the_rest();
    return json{{"apiVersion", names::kApiVersion},
                {"kind", names::kBspJobKind},
                {"metadata", metadata()},
                {"spec", std::move(spec)}};
  }

  std::vector<std::string> notes;

 private:
  [[nodiscard]] std::string where(std::string_view path) const {
    std::string at(path);
    for (;;) {  // of a field that isn't there: its parent's line
      if (const auto line = lines_.find(at); line != lines_.end())
        return std::format("{}:{}: {}", file_, line->second, path);
      const std::size_t cut = at.find_last_of(".[");
      if (cut == std::string::npos) return std::format("{}: {}", file_, path);
      at.resize(cut);
    }
  }
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view path, std::string_view what) const {
    return fail(ErrorCode::kInvalid, std::format("{}: {}", where(path), what));
  }
  void note(std::string_view path, std::string_view what) { notes.push_back(std::format("{}: {}", where(path), what)); }

  [[nodiscard]] const json* at(std::string_view path) const {
    const json* found = &root_;
    for (std::size_t begin = 0; begin <= path.size();) {
      const std::size_t end = std::min(path.find('.', begin), path.size());
      const auto field = found->is_object() ? found->find(path.substr(begin, end - begin)) : found->end();
      if (!found->is_object() || field == found->end() || field->is_null()) return nullptr;
      found = &*field;
      begin = end + 1;
    }
    return found;
  }

  Result<void> check_kind() const {
    const std::string version = at("apiVersion") != nullptr ? text_of(*at("apiVersion")) : "";
    if (version != "kubeflow.org/v2beta1" && version != "kubeflow.org/v1" && version != "kubeflow.org/v1alpha2")
      return wrong("apiVersion", std::format("is \"{}\": must be kubeflow.org/v2beta1, v1 or v1alpha2", version));
    if (const json* spec = at("spec"); spec == nullptr || !spec->is_object()) return wrong("spec", "must be an object");
    // A list here, say, would lose the job its limits without a word.
    if (const json* policy = at("spec.runPolicy"); policy != nullptr && !policy->is_object())
      return wrong("spec.runPolicy", "must be an object");
    return {};
  }

  // The template of a replica, if there is one, after a check that it has containers.
  Result<const json*> template_of(std::string_view replica) const {
    if (at(replica) == nullptr) return nullptr;
    const std::string path = std::format("{}.template", replica);
    const json* found = at(path);
    const json* containers = at(path + ".spec.containers");
    if (found == nullptr || containers == nullptr || !containers->is_array() || containers->empty() ||
        !std::ranges::all_of(*containers, [](const json& c) { return c.is_object(); }))
      return wrong(path + ".spec.containers", "must be a list with at least one container");
    return found;
  }

  // v1 names the container that runs mpirun; else it is the first.
  [[nodiscard]] std::size_t main_container(const json& pod_template) const {
    const json* name = at("spec.mainContainer");
    const json& containers = pod_template["spec"]["containers"];
    for (std::size_t i = 0; name != nullptr && i < containers.size(); ++i)
      if (part_at(containers[i], "name") == *name) return i;
    return 0;
  }

  Result<void> find_templates() {
    BSP_TRY(const json* const launcher, template_of(kLauncher));
    BSP_TRY(const json* const worker, template_of(kWorker));
    if (launcher == nullptr) return wrong(kLauncher, "is missing: its mpirun names the program to run");
    const std::size_t index = main_container(*launcher);
    launcher_path_ = std::format("{}.template.spec.containers[{}]", kLauncher, index);
    launcher_ = (*launcher)["spec"]["containers"][index];
    template_path_ = std::format("{}.template", worker != nullptr ? kWorker : kLauncher);
    template_ = worker != nullptr ? *worker : *launcher;
    main_ = worker != nullptr ? main_container(*worker) : index;
    if (worker != nullptr) note_differences(*launcher);
    return {};
  }

  // What the launcher's pod has and the workers' haven't: the ranks run where the workers ran.
  void note_differences(const json& launcher) {
    for (const char* field : {"initContainers", "volumes", "serviceAccountName"})
      if (launcher["spec"].contains(field) && launcher["spec"][field] != part_at(template_["spec"], field))
        note(std::format("{}.template.spec.{}", kLauncher, field),
             "not carried over: only the launcher has it, and ranks are like workers");
    const json& containers = launcher["spec"]["containers"];
    for (std::size_t i = 0; i < containers.size(); ++i)
      if (const std::string path = std::format("{}.template.spec.containers[{}]", kLauncher, i); path != launcher_path_)
        note(path, "not carried over: a container beside the launcher");
    const json& workers = template_["spec"]["containers"][main_];
    if (workers.contains("image") && part_at(launcher_, "image") != workers["image"])
      note(launcher_path_ + ".image", "not carried over: ranks run in the workers' image");
  }

  Result<std::vector<std::string>> words_of(const char* field) const {
    std::vector<std::string> words;
    if (!launcher_.contains(field) || launcher_[field].is_null()) return words;
    if (!launcher_[field].is_array()) return wrong(launcher_path_ + "." + field, "must be a list");
    for (const json& word : launcher_[field]) words.push_back(text_of(word));
    return words;
  }

  static bool is_shell(const std::string& word) {
    const std::string name = word.substr(word.rfind('/') + 1);
    return name == "sh" || name == "bash" || name == "ash" || name == "dash";
  }

  // The one after a shell's options, such as -euxo pipefail -c; end() if they don't say that it is a command line.
  static std::vector<std::string>::const_iterator command_line(const std::vector<std::string>& words) {
    bool is_line = false;
    auto word = std::ranges::find_if_not(words, is_shell);
    for (; word != words.end() && (word->starts_with('-') || word->starts_with('+')); ++word) {
      if (word->starts_with("--")) continue;
      is_line = is_line || (word->starts_with('-') && word->contains('c'));
      if ((word->ends_with('o') || word->ends_with('O')) && word + 1 != words.end()) ++word;
    }
    return is_line ? word : words.end();
  }

  // The launcher's words, and the field that they stand in, for messages.
  Result<std::vector<Word>> launcher_words(std::string& path) const {
    BSP_TRY(std::vector<std::string> words, words_of("command"));
    BSP_TRY(const std::vector<std::string> arguments, words_of("args"));
    path = launcher_path_ + (words.empty() ? ".args" : ".command");
    words.insert(words.end(), arguments.begin(), arguments.end());
    if (words.empty())
      return wrong(launcher_path_ + ".command",
                   "is missing: without mpirun and its program there is nothing to convert");
    if (!is_shell(words[0])) {
      std::vector<Word> plain;
      for (std::string& word : words) plain.push_back({.text = word, .source = word, .expanded = false});
      return plain;
    }
    const auto line = command_line(words);
    if (line == words.end()) return wrong(path, "starts a shell without a command line (-c \"mpirun ...\")");
    auto read = shell_words(*line);
    if (!read)
      return wrong(
          path,
          std::format("its shell's command line {}: leave mpirun and its program alone in it, and do the rest in the "
                      "image or in an init container",
                      read.error().message));
    return std::move(*read);
  }

  Result<void> read_command() {
    BSP_TRY(std::vector<Word> words, launcher_words(command_path_));
    std::size_t begin = 0;
    for (; begin < words.size(); ++begin) {  // a shell's NAME=VALUE before the command
      auto variable = assignment(words[begin].text);
      if (!variable || words[begin].text.starts_with('-')) break;
      before_mpirun_.push_back(std::move(*variable));
    }
    if (begin == words.size() || !is_mpirun(words[begin].text))
      return wrong(
          command_path_,
          std::format("runs \"{}\" and not mpirun: write mpirun and the program here, or the program itself as the "
                      "command of a BSPJob",
                      words[std::min(begin, words.size() - 1)].text));
    auto run = read_mpirun(std::span(words).subspan(begin + 1));
    if (!run) return wrong(command_path_, run.error().message);
    run_ = std::move(*run);
    for (const auto& [option, why] : run_.dropped)
      note(command_path_, std::format("{} is not carried over: {}", option, why));
    return {};
  }

  // The program's words, under a shell if a shell expanded something in them; exec, because only the container's own process moves.
  [[nodiscard]] json program() const {
    json words = json::array();
    const bool expanded = std::ranges::any_of(run_.program, &Word::expanded);
    if (!expanded)
      for (const Word& word : run_.program) words.push_back(word.text);
    if (expanded) {
      std::string line = "exec";
      for (const Word& word : run_.program) line += " " + word.source;
      words = {"sh", "-c", line};
    }
    return words;
  }

  // What mpirun passes on to the ranks: what -x names, and MPI's own parameters. What the launcher's pod or shell has put into
  // the program's arguments, a rank's puts there.
  [[nodiscard]] bool is_passed_on(const std::string& name) const {
    return name.starts_with("OMPI_MCA_") || std::ranges::contains(run_.exported, name) ||
           std::ranges::any_of(run_.program, [&](const Word& w) { return names_variable(w.source, name); }) ||
           std::ranges::any_of(run_.environment, [&](const auto& v) { return names_variable(v.second, name); });
  }

  static void set(json& env, const std::string& name, json entry) {
    entry["name"] = name;
    const auto known = std::ranges::find_if(env, [&](const json& e) { return text_at(e, "name") == name; });
    if (known != env.end())
      *known = std::move(entry);
    else
      env.push_back(std::move(entry));
  }

  void carry_environment(json& container) {
    json env = part_at(container, "env");
    if (!env.is_array()) env = json::array();
    const json& launchers = part_at(launcher_, "env");
    for (std::size_t i = 0; launchers.is_array() && i < launchers.size(); ++i) {
      const json& entry = launchers[i];
      const std::string name = entry.is_object() && entry.contains("name") ? text_of(entry["name"]) : "";
      if (!name.empty() && is_passed_on(name))
        set(env, name, entry);
      else if (template_path_.starts_with(kWorker) &&
               std::ranges::none_of(env, [&](const json& e) { return e == entry; }))
        note(std::format("{}.env[{}]", launcher_path_, i),
             name + " is not carried over: mpirun passes on only what -x names");
    }
    for (const auto& [name, value] : before_mpirun_)
      if (is_passed_on(name)) set(env, name, {{"value", value}});
    for (const auto& [name, value] : run_.environment)  // NAME=$(NAME) is the launcher's own
      if (value != "$(" + name + ")") set(env, name, {{"value", value}});
    if (!env.empty()) container["env"] = std::move(env);
  }

  Result<void> share_resources(json& container) {
    BSP_TRY(const std::uint32_t slots, ranks_per_worker());
    const auto resources = container.find("resources");
    if (resources == container.end() || !resources->is_object()) return {};
    const std::string path = std::format("{}.spec.containers[{}].resources", template_path_, main_);
    for (const char* kind : {"requests", "limits"}) {
      const auto list = resources->find(kind);
      if (list == resources->end() || !list->is_object()) continue;
      for (auto& [name, quantity] : list->items()) {
        const std::string field = std::format("{}.{}.{}", path, kind, name);
        const bool is_device = name.contains('/');
        if (is_device) note(field, "carried over, but a rank that uses a device such as a GPU can't move");
        if (slots == 1) continue;
        auto share = divided(name, quantity, slots);
        if (!share) return wrong(field, share.error().message);
        if (is_device && share->ends_with('m'))
          return wrong(field,
                       std::format("is {} for {} ranks, each of which gets a pod: give a worker as many as it has "
                                   "ranks, or none",
                                   text_of(quantity), slots));
        quantity = *share;
      }
    }
    return {};
  }

  // The workers' container, without sshd: it runs the program.
  Result<json> app() {
    json container = template_["spec"]["containers"][main_];
    for (const char* field : {"args", "readinessProbe", "livenessProbe", "startupProbe", "lifecycle"}) {
      if (std::string_view(field) != "args" && container.contains(field))
        note(std::format("{}.spec.containers[{}].{}", template_path_, main_, field),
             "not carried over: it is about the worker's sshd");
      container.erase(field);
    }
    container["name"] = "app";
    container["command"] = program();
    if (!run_.directory.empty()) container["workingDir"] = run_.directory;
    if (run_.directory.empty() && launcher_.contains("workingDir")) container["workingDir"] = launcher_["workingDir"];
    const json& user = part_at(launcher_, "securityContext");
    const json& own = part_at(container, "securityContext");
    if (user.is_object() && (own.is_null() || own.is_object()))
      for (const char* field : {"runAsUser", "runAsGroup"})  // mpirun's ssh logs in as the launcher's user
        if (user.contains(field) && !own.contains(field)) container["securityContext"][field] = user[field];
    carry_environment(container);
    BSP_CHECK_OK(share_resources(container));
    return container;
  }

  // An int32 of the MPIJob's API.
  Result<std::uint32_t> positive(std::string_view path, std::uint32_t otherwise) const {
    const json* value = at(path);
    if (value == nullptr) return otherwise;
    const auto number = whole_number<std::int32_t>(*value);
    if (!number || *number < 1)
      return wrong(path,
                   std::format("is {}: must be a whole number that is at least 1 and less than 2^31", value->dump()));
    return static_cast<std::uint32_t>(*number);
  }
  [[nodiscard]] Result<std::uint32_t> ranks_per_worker() const {
    if (run_.ranks_per_worker) return *run_.ranks_per_worker;
    return positive("spec.slotsPerWorker", 1);
  }

  Result<std::uint64_t> number_of_ranks() const {
    if (run_.ranks) return *run_.ranks;
    BSP_TRY(const std::uint32_t slots, ranks_per_worker());
    BSP_TRY(const std::uint64_t workers, positive(std::format("{}.replicas", kWorker), 1));
    return slots * workers;  // mpirun's default: every slot
  }

  json run_policy() {
    json policy = json::object();
    for (const char* field : {"cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"})
      for (const std::string& path : {std::format("spec.{}", field), std::format("spec.runPolicy.{}", field)})
        if (const json* value = at(path)) policy[field] = *value;
    if (const json* value = at("spec.runPolicy.suspend")) policy["suspend"] = *value;
    if (run_.seconds && !policy.contains("activeDeadlineSeconds")) policy["activeDeadlineSeconds"] = *run_.seconds;
    return policy;
  }

  void note_the_rest() {
    if (const json* mpi = at("spec.mpiImplementation"); mpi != nullptr && *mpi != "OpenMPI")
      note("spec.mpiImplementation",
           std::format("{}: the program must be built with Open MPI 5 to run as a BSPJob", text_of(*mpi)));
    if (const char* policy = "spec.runPolicy.schedulingPolicy"; at(policy) != nullptr)
      note(policy,
           "not carried over: a start is all or nothing anyway; spec.scheduling.gang can leave it to Volcano or "
           "scheduler-plugins");
    for (const char* path : {"spec.runPolicy.managedBy", "spec.launcherCreationPolicy"})
      if (at(path) != nullptr) note(path, "not carried over: a BSPJob has nothing like it");
  }

  [[nodiscard]] json metadata() const {
    json result = json::object();
    for (const char* field : {"name", "namespace", "labels", "annotations"})
      if (const json* value = at(std::format("metadata.{}", field))) result[field] = *value;
    if (result.contains("annotations") && result["annotations"].is_object())
      result["annotations"].erase("kubectl.kubernetes.io/last-applied-configuration");
    return result;
  }

  const json& root_;
  const YamlLines& lines_;
  std::string_view file_;
  json launcher_, template_;  // the launcher's container; the pod that the ranks get
  std::string launcher_path_, template_path_, command_path_;
  std::size_t main_ = 0;
  MpiRun run_;
  std::vector<std::pair<std::string, std::string>> before_mpirun_;
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
  for (std::size_t i = 0; i < documents->size(); ++i) {
    const json& document = (*documents)[i];
    json object = document;
    if (text_at(document, "kind") == "MPIJob") {
      found = true;
      MpiJob job(document, lines[i], file_name);
      BSP_TRY(object, job.convert());
      result.notes.insert(result.notes.end(), job.notes.begin(), job.notes.end());
      if (auto checked = crds::read_bsp_job(write_yaml(object), std::format("{}, as a BSPJob", file_name)); !checked)
        return std::unexpected(checked.error());
    }
    result.yaml += (i == 0 ? "" : "---\n") + write_yaml(object);
  }
  if (!found) return fail(ErrorCode::kInvalid, std::format("{} holds no MPIJob: kind must be MPIJob", file_name));
  return result;
}

}  // namespace bsp::convert
