// The few calls of Podman that the node needs, with errors that name the remedy.
//
// Every call is one `podman` process (20-40 ms; `run` about 100 ms). The user sees only the last line of Podman's
// output, translated if we know a remedy. Flags that depend on the machine (no systemd, lowered limits in a container)
// are set here, so no containers.conf is needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "operator/local/command.h"

namespace bsp::local::podman {

// An error with the remedy if this user can't run containers: not root, Podman missing or failing.
Result<void> check_usable();

// Runs `podman ARGS` with the global flags that this machine needs. A non-zero exit status is an error.
Result<std::string> call(const std::vector<std::string>& args);

// Adds to the arguments of `podman run` the limits that this process may give.
void add_limits(std::vector<std::string>& args);

// Translates Podman's stderr to one sentence and a code. `image` and `command` are those of the request: kNotFound
// "image X does not exist in Podman's store; …", kNotFound "command Y not found in image X", kConflict for a container
// name in use, kNoSpace, otherwise kFailed with Podman's last line.
Error translate(const std::string& stderr_text, const std::string& image, const std::string& command);

struct ContainerState {
  std::string status;  // created, running, exited, …
  int pid = 0;         // of its first process; 0: not running
  int exit_code = 0;
  bool out_of_memory = false;
  std::string started_at;
  std::string finished_at;
};
// nullopt if the container doesn't exist.
Result<std::optional<ContainerState>> inspect(const std::string& name);

struct ImageConfig {
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::string user;
  std::string working_dir;
  std::vector<std::string> env;  // KEY=VALUE
};
// The image's defaults, used if the pod sets no command. kNotFound with the remedy if the image doesn't exist.
// The id of the image that a container was made of; "": it is gone.
std::string image_of_container(const std::string& name);
Result<ImageConfig> image_config(const std::string& image);

// The directories of the image's layers on this machine, uppermost first. kNotFound as above.
Result<std::vector<std::string>> image_layers(const std::string& image);

// Names of the containers, running or not, with the label.
Result<std::vector<std::string>> containers_with(const std::string& label);
// Stops the containers (SIGTERM, SIGKILL after `grace_seconds`) and removes them with their anonymous volumes. Succeeds
// if there are none. Retries for 30 s beyond the grace period.
Result<void> remove_containers(const std::vector<std::string>& names, int grace_seconds);

}  // namespace bsp::local::podman
