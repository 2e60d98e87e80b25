#include "operator/local/cli/place.h"

#include <unistd.h>

#include <filesystem>
#include <format>

#include "base/json/fields.h"
#include "crds/nearest.h"
#include "operator/local/cli/admission.h"

namespace bsp::local {

void declare_place(cli::Command& command, Place& place) {
  command.text("-n,--namespace", "NAMESPACE", std::format("namespace (default: {})", place.name_space),
               place.name_space);
  command.text("--store", "DIR", std::format("directory of the objects (default: {})", place.root), place.root);
}

Result<std::unique_ptr<Store>> open_store(const Place& place) {
  const auto& [root, name_space] = place;
  if (name_space.empty() || name_space.find('/') != std::string::npos || name_space.front() == '.')
    return fail(ErrorCode::kInvalid, std::format("-n \"{}\": is not a namespace's name", name_space));
  const std::filesystem::path directory = std::filesystem::path(root) / name_space;
  std::error_code error;
  const bool exists = std::filesystem::is_directory(directory, error);
  if (!exists && ::geteuid() != 0 && root == Place{}.root)
    return fail(ErrorCode::kRefused, "only root can read the objects of local mode; use sudo");
  if (!exists)
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
