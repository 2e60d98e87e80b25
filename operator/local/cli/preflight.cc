#include "operator/local/cli/preflight.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <fstream>

namespace bsp::local {
namespace {

struct Capability {
  int number;
  const char* name;
};
// What criu needs in the app container (see images/), and what the node needs to grant it.
constexpr Capability kNeeded[] = {
    {8, "SETPCAP"}, {12, "NET_ADMIN"}, {19, "SYS_PTRACE"}, {21, "SYS_ADMIN"}, {40, "CHECKPOINT_RESTORE"}};

std::string first_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// "CapBnd:\t000001ffffffffff" of /proc/self/status.
std::uint64_t bounding_set(const std::string& proc) {
  std::ifstream file(proc + "/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("CapBnd:")) return std::strtoull(line.c_str() + 7, nullptr, 16);
  return 0;
}

}  // namespace

Result<void> check_kernel(const std::string& proc) {
  const std::string release = first_word(proc + "/sys/kernel/osrelease");
  // The file exists only if the kernel was built with CONFIG_CHECKPOINT_RESTORE.
  if (!std::filesystem::exists(proc + "/sys/kernel/ns_last_pid"))
    return fail(
        ErrorCode::kRefused,
        std::format("this kernel ({}) was built without CONFIG_CHECKPOINT_RESTORE, so no rank can be moved; boot a "
                    "kernel that has it (Debian's have)",
                    release));
  if (std::atoi(first_word(proc + "/sys/kernel/cap_last_cap").c_str()) < 40)
    return fail(
        ErrorCode::kRefused,
        std::format("this kernel ({}) has no capability CHECKPOINT_RESTORE, so no rank can be moved; use Linux 5.9 or "
                    "newer",
                    release));
  const std::uint64_t allowed = bounding_set(proc);
  for (const Capability& capability : kNeeded)
    if (!(allowed >> capability.number & 1))
      return fail(ErrorCode::kRefused,
                  std::format("this process can't grant the capability {}, which containers need; if this is itself a "
                              "container, start it with --privileged",
                              capability.name));
  return {};
}

}  // namespace bsp::local
