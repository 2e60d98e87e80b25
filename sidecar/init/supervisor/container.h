// The app container as bsp-init finds it, and the program in it: what starts, dumps and restores need to know.
#pragma once

#include <sys/types.h>

#include <unistd.h>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/core/cpu_features.h"
#include "base/core/error.h"
#include "sidecar/init/changes.h"
#include "sidecar/init/criu.h"
#include "sidecar/init/output.h"
#include "sidecar/init/process.h"
#include "sidecar/init/shared_files.h"

namespace bsp::init {

struct Options {
  bool restore = false;
  std::vector<std::string> command;
  std::string runtime_dir;      // the directory of this binary, with libbspmpi.so and bin/criu
  std::string run_dir;          // names::kRunDir or BSP_RUN_DIR
  std::string criu;             // BSP_CRIU, else <runtime>/bin/criu
  std::string user;             // BSP_USER
  std::string groups;           // BSP_GROUPS
  std::string carry_paths;      // BSP_CARRY_PATHS
  bool shares_memory = false;   // the pod has more seats, and one /dev/shm for all: OMPI_COMM_WORLD_LOCAL_SIZE
  std::string pod_volumes;      // BSP_POD_VOLUMES
  std::string termination_log;  // BSP_TERMINATION_LOG, else /dev/termination-log
  std::chrono::milliseconds fence_limit{};  // fencing::kLimit, or BSP_FENCE_LIMIT_MS
  std::chrono::seconds grace{};             // BSP_GRACE_SECONDS; 0: unknown
  bool awaits_start = false;                // BSP_CPU=Common
  std::string cpu_features;                 // BSP_CPU_FEATURES
};

struct Program {
  pid_t pid = 0;              // 0: there is none
  CpuFeatures seen;           // by its libraries, here or where it started
  std::int64_t begun_ns = 0;  // when it was started, here or in another pod
};

struct Container {
  const Options options;
  User user{};
  std::vector<std::string> carry_paths{};
  CriuPaths criu{};
  CpuFeatures cpu{};  // of this machine
  ChangeClock changes{};
  OutputRelay out{STDOUT_FILENO}, err{STDERR_FILENO};

  // Fills in what the options name. kInvalid: one of them can't be read.
  Result<void> prepare();

  [[nodiscard]] std::string shim() const { return options.runtime_dir + "/libbspmpi.so"; }
  // Of the capture socket, and of what was received for a restore.
  [[nodiscard]] std::string images() const { return options.run_dir + "/images"; }
  [[nodiscard]] std::string worker_log() const { return criu.work + "/carry.log"; }
  // Without what ends with the pod, which is not shared, and what moves with the rank, which is in its image.
  [[nodiscard]] Mounts shared_mounts() const;

  // Pipes for a program that is about to begin here, and their ends that it has inherited.
  Result<void> open_output();
  void close_output();
  void drain_output();

  // Starts a worker that runs `body` under the program's uid, and exits with what that returns; an error goes to worker_log().
  Result<pid_t> start_worker(const User& as, const std::function<Result<int>()>& body) const;
};

// From then to now.
std::uint64_t nanoseconds_since(std::chrono::steady_clock::time_point start);
// Without trailing line ends and spaces.
std::string trimmed(std::string text);

}  // namespace bsp::init
