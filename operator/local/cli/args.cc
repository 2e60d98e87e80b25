#include "operator/local/cli/args.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <format>

#include "crds/nearest.h"
#include "operator/local/cli/admission.h"

namespace bsp::local {

std::string Args::get(const std::string& name, const std::string& otherwise) const {
  const auto it = options.find(name);
  return it == options.end() ? otherwise : it->second;
}

Result<Args> parse_args(std::span<const std::string> args, const Syntax& syntax) {
  std::map<std::string, std::string> valued{{"-n", "namespace"}, {"--store", "store"}};
  std::map<std::string, std::string> flags;
  for (const auto& [from, into] : {std::pair{&syntax.valued, &valued}, {&syntax.flags, &flags}}) into->insert(from->begin(), from->end());
  for (auto* map : {&valued, &flags})
    for (const auto& [name, field] : std::map(*map)) map->emplace("--" + field, field);
  auto wrong = [&](const std::string& what) { return fail(ErrorCode::kInvalid, std::format("{}\n{}", what, syntax.usage)); };
  Args out;
  for (std::size_t i = 0; i < args.size(); ++i) {
    std::string name = args[i];
    if (name.size() < 2 || name.front() != '-') {
      out.words.push_back(name);
      continue;
    }
    if (const auto flag = flags.find(name); flag != flags.end()) {
      out.options[flag->second] = "true";
      continue;
    }
    std::string value;
    const std::size_t equals = name.starts_with("--") ? name.find('=') : std::string::npos;
    if (equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    } else if (!name.starts_with("--") && name.size() > 2 && valued.contains(name.substr(0, 2))) {
      value = name.substr(2);  // -oyaml
      name.resize(2);
    }
    const auto option = valued.find(name);
    if (option == valued.end()) {
      std::vector<std::string_view> known;
      for (const auto* map : {&valued, &flags})
        for (const auto& [option_name, field] : *map) known.push_back(option_name);
      return wrong(std::format("unknown option {}{}", name, crds::suggestion(name, known)));
    }
    if (value.empty() && equals == std::string::npos) {
      if (++i == args.size()) return wrong(std::format("{} needs a value", name));
      value = args[i];
    }
    out.options[option->second] = value;
  }
  return out;
}

Result<std::unique_ptr<Store>> open_store(const Args& args) {
  const std::string root = args.get("store", "/run/bsp-operator");
  const std::string name_space = args.get("namespace", "default");
  if (name_space.empty() || name_space.find('/') != std::string::npos || name_space.front() == '.')
    return fail(ErrorCode::kInvalid, std::format("-n: \"{}\" is not a namespace's name", name_space));
  const std::filesystem::path directory = std::filesystem::path(root) / name_space;
  std::error_code error;
  const bool there = std::filesystem::is_directory(directory, error);
  if (!there && ::geteuid() != 0 && !args.has("store"))
    return fail(ErrorCode::kRefused, "local mode keeps its objects where only root can read them; use sudo");
  if (!there)
    return fail(ErrorCode::kNotFound,
                std::format("nothing runs in namespace {}; start a job with: bsp-operator local run -f JOB.yaml --pools …", name_space));
  return Store::open({.root = root, .name_space = name_space, .admission = admit});
}

Result<kube::Object> find_job(Store& store, const std::string& name) {
  BSP_TRY(auto jobs, store.list(kBspJob, store.options().name_space));
  std::vector<std::string> have;
  for (const kube::Object& job : jobs) have.push_back(job.at("metadata").value("name", ""));
  if (jobs.empty())
    return fail(ErrorCode::kNotFound, std::format("there is no BSPJob in namespace {}", store.options().name_space));
  if (name.empty() && jobs.size() == 1) return std::move(jobs.front());
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (have[i] == name) return std::move(jobs[i]);
  const std::vector<std::string_view> known(have.begin(), have.end());
  if (name.empty())
    return fail(ErrorCode::kInvalid, std::format("there are several BSPJobs; choose one with --job{}", crds::suggestion("", known)));
  return fail(ErrorCode::kNotFound, std::format("there is no BSPJob {} in namespace {}{}", name, store.options().name_space,
                                                crds::suggestion(name, known)));
}

int told(const Error& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "bsp-operator: %s\n", error.message.c_str());
  return error.code == ErrorCode::kInvalid ? 2 : 1;
}

}  // namespace bsp::local
