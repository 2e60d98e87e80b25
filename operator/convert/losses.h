// What an MPIJob has and a BSPJob doesn't take over, as notes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/convert/source.h"

namespace bsp::convert {

// A replica's pod template, and which of its containers matters.
struct PodOf {
  const nlohmann::json& pod;  // {metadata, spec}
  std::string path;           // .template
  std::size_t main = 0;

  [[nodiscard]] std::string container_path() const;
};

// What the launcher's pod has and the worker's hasn't: the ranks run where the workers ran.
void note_launchers_own(Source& job, const PodOf& launcher, const PodOf& worker);
// Fields of the job that mean something else, or nothing, to a BSPJob.
void note_fields(Source& job);

}  // namespace bsp::convert
