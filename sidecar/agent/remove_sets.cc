#include "sidecar/agent/stored_images.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <format>
#include <string>

#include "base/core/fd.h"
#include "base/core/log.h"
#include "base/core/write_all.h"
#include "crds/names.h"
#include "sidecar/agent/config.h"

namespace bsp::sidecar {
namespace {

// Where the kubelet reads it, unless a pod says otherwise, and ours doesn't.
constexpr const char* kTerminationMessage = "/dev/termination-log";

int failed(int code, const std::string& why) {
  std::fprintf(stderr, "bsp-sidecar: %s\n", why.c_str());
  // The kubelet has made it. Elsewhere there is none.
  if (const Fd file(::open(kTerminationMessage, O_WRONLY | O_TRUNC | O_CLOEXEC)); file)
    (void)write_all(file.get(), why);
  return code;
}

}  // namespace

int remove_sets(bool retain) {
  // PID 1 ignores a signal that it doesn't handle.
  struct sigaction end{};
  end.sa_handler = [](int signal) { ::_exit(128 + signal); };
  ::sigaction(SIGTERM, &end, nullptr);
  const char* const uid = std::getenv(std::string(names::kEnvJobUid).c_str());
  if (!uid || !*uid) return failed(2, std::format("{} must be the job's uid", names::kEnvJobUid));
  const auto storage = storage::open_storage(Config::storage_from_environment());
  if (!storage) return failed(2, std::format("{} must name the storage", names::kEnvStorage));
  const auto done = retain ? storage->mark_job(uid, "", nullptr) : storage->remove_job(uid, nullptr);
  if (!done) return failed(1, done.error().message);
  log_info(retain ? "the job's checkpoint sets stay" : "the job's checkpoint sets are removed", {{"job", uid}});
  return 0;
}

}  // namespace bsp::sidecar
