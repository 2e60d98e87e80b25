#include "operator/local/cli/args.h"

#include <unistd.h>

#include <filesystem>
#include <format>

#include "base/json/fields.h"
#include "crds/nearest.h"
#include "operator/local/cli/admission.h"

namespace bsp::local {

Result<Args> parse_args(std::span<const std::string> args, Syntax syntax) {
  syntax.valued.insert({{"-n", "namespace"}, {"--store", "store"}});
  return parse_arguments(args, syntax);
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
    return fail(
        ErrorCode::kNotFound,
        std::format("nothing runs in namespace {}; start a job with: bsp-operator local run -f JOB.yaml --pools …",
                    name_space));
  return Store::open({.root = root, .name_space = name_space, .admission = admit});
}

Result<kube::Object> find_job(Store& store, const std::string& name) {
  BSP_TRY(auto jobs, store.list(kBspJob, store.options().name_space));
  std::vector<std::string> have;
  for (const kube::Object& job : jobs) have.push_back(text_at(part_at(job, "metadata"), "name"));
  if (jobs.empty())
    return fail(ErrorCode::kNotFound, std::format("there is no BSPJob in namespace {}", store.options().name_space));
  if (name.empty() && jobs.size() == 1) return std::move(jobs.front());
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (have[i] == name) return std::move(jobs[i]);
  const std::vector<std::string_view> known(have.begin(), have.end());
  if (name.empty())
    return fail(ErrorCode::kInvalid,
                std::format("there are several BSPJobs; choose one with --job{}", crds::suggestion("", known)));
  return fail(ErrorCode::kNotFound, std::format("there is no BSPJob {} in namespace {}{}", name,
                                                store.options().name_space, crds::suggestion(name, known)));
}

}  // namespace bsp::local
