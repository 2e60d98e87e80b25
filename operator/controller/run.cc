#include "operator/controller/run.h"

#include <malloc.h>
#include <sys/resource.h>

#include <csignal>
#include <ctime>

#include "base/core/log.h"
#include "operator/cli/exit_code.h"
#include "operator/controller/controller.h"

namespace bsp::controller {
namespace {
constexpr time_t kTrimSeconds = 10;
}  // namespace

Result<int> run(std::span<const std::string> words) {
  // Many threads allocate little each, so use few arenas and return freed memory.
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_TRIM_THRESHOLD, 256 << 10);
  // Each rank's sidecar needs three descriptors, and containers often start with a soft limit of 1024.
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  BSP_TRY(const auto options, parse_options(words));
  BSP_TRY(const auto config, kube::load_config({.kubeconfig = options.kubeconfig, .context = options.context}));
  // Block them before starting any thread, so that only sigtimedwait() below receives them.
  sigset_t end;
  sigemptyset(&end);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&end, signal);
  ::pthread_sigmask(SIG_BLOCK, &end, nullptr);
  BSP_TRY(const auto controller, Controller::start(options, config));
  log_info("operator started", {{"server", config.server},
                                {"namespace", options.name_space.empty() ? "all" : options.name_space},
                                {"version", BSP_VERSION}});
  int signal = -1;
  while (signal < 0) {
    const timespec pause{.tv_sec = kTrimSeconds, .tv_nsec = 0};
    signal = ::sigtimedwait(&end, nullptr, &pause);
    // Return the memory that a burst of work has left free between live objects.
    ::malloc_trim(0);
  }
  log_info("operator stopped", {{"signal", signal}});
  return cli::kDone;
}

}  // namespace bsp::controller
