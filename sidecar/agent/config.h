// The sidecar's configuration from its environment (crds/names.h), and the paths of its files.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/core/cpu_features.h"
#include "base/core/error.h"
#include "crds/fencing.h"
#include "crds/names.h"
#include "sidecar/storage/storage.h"

namespace bsp::sidecar {

struct Config {
  std::string job;
  std::string job_uid;
  // The rank of each seat (an app container of this pod) when the pod was made; an epoch's plan may give a seat another one.
  std::vector<std::uint32_t> seats;
  std::uint32_t ranks = 0;
  std::string pod;       // this sidecar's TLS identity
  std::string listen;    // address:port
  std::string liveness;  // address:port; "": no probe
  std::string tls_dir;
  std::string run_dir;
  CpuFeatures cpu_features;        // of this machine
  std::string runtime;             // build id of libbspmpi.so beside this program: RankStatus::runtime
  storage::Location storage = {};  // of the checkpoint sets
  std::string set_key = std::string(names::kSetKeyDir).append("/").append(names::kSetKey);  // of an exported set
  bool without_init = false;  // tests only: the program runs as this user
  std::chrono::milliseconds fence_limit = fencing::kLimit;

  // An error names the variable and its valid values.
  static Result<Config> from_environment();
  // Of the checkpoint sets alone, which is all that --remove-sets needs.
  static storage::Location storage_from_environment();

  [[nodiscard]] std::string path(std::string_view name) const;      // <run_dir>/<name>
  [[nodiscard]] std::string own_path(std::string_view name) const;  // in a directory private to the sidecar
  // What a seat shares with its program, which finds it in its own /run/bsp: run_dir itself in a pod of one seat, else
  // <run_dir>/seat-<number>.
  [[nodiscard]] std::string seat_dir(std::size_t seat) const;
  [[nodiscard]] std::string seat_path(std::size_t seat, std::string_view name) const;
};

}  // namespace bsp::sidecar
