// bsp-init [--restore] -- command [argument…]
// bsp-init --install DIR
// bsp-init --note-user
//
// PID 1 of a rank's app container. supervisor.h describes what it does, crds/names.h the environment variables that
// it reads.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "crds/fencing.h"
#include "crds/names.h"
#include "sidecar/init/files.h"
#include "sidecar/init/install.h"
#include "sidecar/init/program.h"
#include "sidecar/init/supervisor/supervisor.h"

namespace {

std::string environment(std::string_view name, std::string_view fallback = "") {
  const char* value = std::getenv(std::string(name).c_str());
  return value != nullptr ? value : std::string(fallback);
}

// Parses a positive number.
std::int64_t setting(std::string_view name, std::int64_t fallback) {
  const std::int64_t value = std::strtoll(environment(name).c_str(), nullptr, 10);
  return value > 0 ? value : fallback;
}

int usage() {
  std::fprintf(stderr,
               "usage: bsp-init [--restore] -- command [argument...]\n       bsp-init --install DIR\n"
               "       bsp-init --note-user\n");
  return 125;
}

int install_into(const std::string& directory) {
  const std::string self = bsp::init::read_link("/proc/self/exe").value_or("/bsp/bsp-init");
  const std::string from = self.substr(0, self.rfind('/'));
  const auto done = bsp::init::install(from.empty() ? "/" : from, directory);
  if (!done) std::fprintf(stderr, "bsp-init: %s\n", done.error().message.c_str());
  return done ? 0 : 1;
}

bool write_user(const std::string& file) {
  std::FILE* const out = std::fopen(file.c_str(), "we");
  const bool written = out != nullptr && std::fprintf(out, "%u:%u", ::getuid(), ::getgid()) > 0;
  if ((out == nullptr || std::fclose(out) == 0) && written) return true;
  std::perror(("bsp-init: writing " + file).c_str());
  return false;
}

// Records the user that this container runs as, which is the one that the image, or its runtime, would run the
// program as. In a pod of several seats this is a container for all, and each seat reads it in its own directory.
int note_user(const std::string& run_dir) {
  bool written = write_user(run_dir + "/user");
  for (int seat = 0;; ++seat) {
    const std::string of_seat = run_dir + "/seat-" + std::to_string(seat);
    if (::access(of_seat.c_str(), F_OK) != 0) break;
    written = write_user(of_seat + "/user") && written;
  }
  return written ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--install") return install_into(argv[2]);
  const std::string run_dir = environment(bsp::names::kEnvRunDir, bsp::names::kRunDir);
  if (argc == 2 && std::string_view(argv[1]) == "--note-user") return note_user(run_dir);
  bsp::init::Options options;
  int at = 1;
  for (; at < argc; ++at) {
    const std::string_view argument = argv[at];
    if (argument == "--") {
      ++at;
      break;
    }
    if (argument != "--restore") return usage();
    options.restore = true;
  }
  options.command = bsp::init::without_init({argv + at, argv + argc});
  // A waiting pod needs no command, but the operator passes the same one so that `describe` shows it.
  if (options.command.empty() && !options.restore) return usage();
  const std::string self = bsp::init::read_link("/proc/self/exe").value_or("/bsp/bsp-init");
  options.runtime_dir = self.substr(0, self.rfind('/'));
  options.run_dir = run_dir;
  options.criu = environment("BSP_CRIU", options.runtime_dir + "/bin/criu");
  options.user = environment(bsp::names::kEnvUser);
  options.groups = environment(bsp::names::kEnvGroups);
  options.carry_paths = environment(bsp::names::kEnvCarryPaths);
  options.shares_memory = setting("OMPI_COMM_WORLD_LOCAL_SIZE", 1) > 1;
  options.pod_volumes = environment(bsp::names::kEnvPodVolumes);
  options.termination_log = environment(bsp::names::kEnvTerminationLog, "/dev/termination-log");
  options.awaits_start = environment(bsp::names::kEnvCpu) == "Common";
  options.cpu_features = environment(bsp::names::kEnvCpuFeatures);
  options.grace = std::chrono::seconds(setting(bsp::names::kEnvGrace, 0));
  options.fence_limit = std::chrono::milliseconds(
      setting(bsp::fencing::kEnvLimit, std::chrono::milliseconds(bsp::fencing::kLimit).count()));
  return bsp::init::Supervisor(std::move(options)).run();
}
