// bsp-sidecar: PMIx server, superstep collector and checkpoint relay of one rank's pod.
#include <malloc.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include <cstdio>
#include <string_view>

#include "base/core/log.h"
#include "sidecar/agent/sidecar.h"
#include "sidecar/agent/stored_images.h"

int main(int argc, char** argv) {
  const std::string_view task = argc == 2 ? argv[1] : "";
  if (task == "--remove-sets" || task == "--retain-sets") return bsp::sidecar::remove_sets(task == "--retain-sets");

  // One malloc arena is enough for a few threads that allocate little, and freed memory is returned.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TRIM_THRESHOLD, 256 << 10);
  mallopt(M_MMAP_THRESHOLD, 256 << 10);

  // Blocked before any thread starts, so that all threads inherit the mask.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  sigprocmask(SIG_BLOCK, &ending, nullptr);

  auto config = bsp::sidecar::Config::from_environment();
  if (!config) {
    std::fprintf(stderr, "bsp-sidecar: %s\n", config.error().message.c_str());
    return 2;
  }
  bsp::net::Loop loop;
  bsp::Fd signals(::signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
  loop.watch(signals.get(), EPOLLIN, [&](bsp::net::Loop::Events) { loop.stop(); });
  auto sidecar = bsp::sidecar::Sidecar::start(loop, std::move(*config));
  if (!sidecar) {
    std::fprintf(stderr, "bsp-sidecar: %s\n", sidecar.error().message.c_str());
    return 1;
  }
  loop.run();
  bsp::log_info("sidecar ends");
  return 0;
}
