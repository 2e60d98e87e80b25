// The environment of a rank's program.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/convert/launcher.h"
#include "operator/convert/source.h"

namespace bsp::convert {

struct LauncherContainer {
  const nlohmann::json& container;
  std::string path;
  bool is_template;        // the ranks get this container, since there is no worker's
  bool passes_everything;  // Hydra
};

// Sets env of the ranks' container, whose path is for messages. Returns the script's variables that a rank's shell exports.
std::vector<std::string> carry_environment(Source& job, nlohmann::json& container, const std::string& container_path,
                                           const LauncherContainer& from, const Launcher& launcher);

}  // namespace bsp::convert
