// Podman, as the node needs it: few calls, and errors that say what to do.
//
// Every call is one `podman` process (20-40 ms; `run` about 100 ms). Only the last line of what Podman
// says reaches the user, translated where a remedy is known. Flags that depend on the machine (no
// systemd, lowered limits in a container) are found here, so that no containers.conf is needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "operator/local/command.h"

namespace bsp::local::podman {

// kFailed with the remedy if this user can't run containers: not root, no Podman, a Podman that fails.
Result<void> check_usable();

// `podman ARGS` with the global flags this machine needs. An exit status other than 0 is an error.
Result<std::string> call(const std::vector<std::string>& args);

// What Podman printed on stderr -> one sentence and a code. `image` and `command` name what was asked
// for: kNotFound "image X does not exist in Podman's store; …", kNotFound "command Y not found in
// image X", kConflict for a container name in use, kNoSpace, else kFailed with Podman's last line.
Error translate(const std::string& stderr_text, const std::string& image, const std::string& command);

struct ContainerState {
  std::string status;  // created, running, exited, …
  int pid = 0;         // of its first process; 0: not running
  int exit_code = 0;
  bool out_of_memory = false;
  std::string started_at;
  std::string finished_at;
};
// nullopt: there is no such container.
Result<std::optional<ContainerState>> inspect(const std::string& name);

struct ImageConfig {
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::string user;
  std::string working_dir;
  std::vector<std::string> env;  // KEY=VALUE
};
// What runs if the pod names no command. kNotFound with the remedy if there is no such image.
Result<ImageConfig> image_config(const std::string& image);

// The directories of its layers on this machine, the uppermost first. kNotFound as above.
Result<std::vector<std::string>> image_layers(const std::string& image);

// Names of the containers, running or not, that carry the label.
Result<std::vector<std::string>> containers_with(const std::string& label);
// Stops them (SIGTERM, SIGKILL after `grace_seconds`) and removes them with their anonymous volumes.
// Fine if there are none. Tries until nothing is left or it has failed for 30 s.
Result<void> remove_containers(const std::vector<std::string>& names, int grace_seconds);

}  // namespace bsp::local::podman
