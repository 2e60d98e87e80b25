#include "operator/controller/run.h"

#include <malloc.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <ctime>

#include "base/core/log.h"
#include "operator/controller/controller.h"

namespace bsp::controller {
namespace {
constexpr time_t kTrimSeconds = 10;
}  // namespace

int said(const Error& error) {
  std::fprintf(stderr, "bsp-operator: %s\n", error.message.c_str());
  return error.code == ErrorCode::kInvalid ? 2 : 1;
}

int run(std::span<const std::string> words) {
  // Many threads, each with little to allocate: few arenas, and what is freed goes back.
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_TRIM_THRESHOLD, 256 << 10);
  // A rank's sidecar takes three descriptors, and what containers are given is often 1024 of what they may have.
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  const auto options = parse_options(words);
  if (!options) return said(options.error());
  const auto config = kube::load_config({.kubeconfig = options->kubeconfig, .context = options->context});
  if (!config) return said(config.error());
  // Before any thread is made, so that only sigwait() below ever sees them.
  sigset_t end;
  sigemptyset(&end);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&end, signal);
  ::pthread_sigmask(SIG_BLOCK, &end, nullptr);
  const auto controller = Controller::start(*options, *config);
  if (!controller) return said(controller.error());
  log_info("the operator works", {{"server", config->server},
                                  {"namespace", options->name_space.empty() ? "all" : options->name_space},
                                  {"version", BSP_VERSION}});
  int signal = -1;
  while (signal < 0) {
    const timespec pause{.tv_sec = kTrimSeconds, .tv_nsec = 0};
    signal = ::sigtimedwait(&end, nullptr, &pause);
    // What a burst of work leaves free between what is kept is no use to us, and goes back to the machine.
    ::malloc_trim(0);
  }
  log_info("the operator ends", {{"signal", signal}});
  return 0;
}

}  // namespace bsp::controller
