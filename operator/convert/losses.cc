#include "operator/convert/losses.h"

#include <format>
#include <nlohmann/json.hpp>

#include "base/json/fields.h"

namespace bsp::convert {
namespace {

using nlohmann::json;

constexpr std::string_view kOnlyLaunchers = "not carried over: only the launcher has it, and ranks are like workers";

}  // namespace

std::string PodOf::container_path() const { return std::format("{}.spec.containers[{}]", path, main); }

void note_launchers_own(Source& job, const PodOf& launcher, const PodOf& worker) {
  const json& own = part_at(launcher.pod, "spec");
  const json& workers = part_at(worker.pod, "spec");
  for (const char* field : {"initContainers", "volumes", "serviceAccountName"})
    if (own.contains(field) && own[field] != part_at(workers, field))
      job.note(std::format("{}.spec.{}", launcher.path, field), kOnlyLaunchers);
  const json& containers = own["containers"];
  for (std::size_t i = 0; i < containers.size(); ++i)
    if (i != launcher.main)
      job.note(std::format("{}.spec.containers[{}]", launcher.path, i),
               "not carried over: a container beside the launcher");
  const json& container = containers[launcher.main];
  const json& rank = workers["containers"][worker.main];
  if (rank.contains("image") && part_at(container, "image") != rank["image"])
    job.note(launcher.container_path() + ".image", "not carried over: ranks run in the workers' image");
}

void note_fields(Source& job) {
  if (const json* mpi = job.at("spec.mpiImplementation"); mpi != nullptr && *mpi != "OpenMPI")
    job.note("spec.mpiImplementation",
             std::format("{}: the program must be built with Open MPI 5 to run as a BSPJob", text_of(*mpi)));
  if (const char* policy = "spec.runPolicy.schedulingPolicy"; job.at(policy) != nullptr)
    job.note(policy,
             "not carried over: a start is all or nothing anyway; spec.scheduling.gang can leave it to Volcano or "
             "scheduler-plugins");
  for (const char* path : {"spec.runPolicy.managedBy", "spec.launcherCreationPolicy"})
    if (job.at(path) != nullptr) job.note(path, "not carried over: a BSPJob has nothing like it");
}

}  // namespace bsp::convert
