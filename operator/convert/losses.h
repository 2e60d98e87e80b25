// What an MPIJob has and a BSPJob doesn't take over, as notes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/convert/source.h"

namespace bsp::convert {

// A replica's pod template, and which of its containers matters.
struct PodOf {
  nlohmann::json pod;  // {metadata, spec}
  std::string path;    // .template
  std::size_t main = 0;

  [[nodiscard]] std::string container_path() const;
};

// What the launcher's pod has and the worker's hasn't: the ranks run where the workers ran.
void note_launchers_own(Source& job, const PodOf& launcher, const PodOf& worker);
// What the worker's command prepares.
void note_workers_command(Source& job, const PodOf& worker);
// Values of the ranks' container that name the MPIJob's pods, which a BSPJob hasn't.
void note_host_names(Source& job, const nlohmann::json& container, const std::string& path);
// Fields of the job that mean something else, or nothing, to a BSPJob.
void note_fields(Source& job);

}  // namespace bsp::convert
