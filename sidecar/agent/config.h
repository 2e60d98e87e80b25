// The sidecar's configuration from its environment (crds/names.h), and the paths of its files.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/core/error.h"
#include "crds/fencing.h"

namespace bsp::sidecar {

struct Config {
  std::string job;
  std::string job_uid;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::string pod;       // this sidecar's TLS identity
  std::string listen;    // address:port
  std::string liveness;  // address:port; "": no probe
  std::string tls_dir;
  std::string run_dir;
  bool without_init = false;  // tests only: the program runs as this user
  std::chrono::milliseconds fence_limit = fencing::kLimit;

  // An error names the variable and its valid values.
  static Result<Config> from_environment();

  [[nodiscard]] std::string path(std::string_view name) const;      // <run_dir>/<name>: shared with the program
  [[nodiscard]] std::string own_path(std::string_view name) const;  // in a directory private to the sidecar
};

}  // namespace bsp::sidecar
