#include "operator/local/cli/serve.h"

#include <csignal>
#include <format>
#include <memory>

#include "base/core/log.h"
#include "operator/local/cli/admission.h"
#include "operator/local/network.h"
#include "operator/local/pod_logs.h"
#include "operator/local/podman.h"
#include "operator/local/podman_node.h"
#include "operator/local/store.h"
#include "operator/reconcile/shell/record.h"
#include "operator/reconcile/shell/shell.h"

namespace bsp::local {

namespace {

constexpr std::size_t kTailLines = 10, kTailBytes = 2000;

Result<reconcile::ImageDefaults> image_defaults(const std::string& image) {
  BSP_TRY(podman::ImageConfig config, podman::image_config(image));
  return reconcile::ImageDefaults{std::move(config.entrypoint), std::move(config.command), std::move(config.user)};
}

}  // namespace

Result<void> serve(const ServeOptions& options) {
  // Block it before starting any thread, so that only sigwait() below receives it.
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &end, nullptr);
  BSP_TRY(const auto store,
          Store::open({.root = options.place.root, .name_space = options.place.name_space, .admission = admit}));
  BSP_TRY(const auto node, PodmanNode::start(*store));
  const Network network(store->directory());
  BSP_TRY(const std::string hub, network.hub());
  const std::string logs = store->directory() + "/logs/";
  decltype(reconcile::ShellOptions::record) record;
  if (!options.record.empty())
    record = [path = options.record](const std::string&, const std::string&, const std::string& line) {
      reconcile::record_line(path, line);
    };
  reconcile::Shell shell(*store, {.name_space = options.place.name_space,
                                  .network = hub,
                                  .image_defaults = image_defaults,
                                  .log_tail =
                                      [logs](const std::string&, const Seat& seat) {
                                        return log_tail(
                                            std::format("{}{}/{}.log", logs, seat.pod, container_of(seat.local)),
                                            kTailLines, kTailBytes);
                                      },
                                  .record = std::move(record)});
  int signal = 0;
  ::sigwait(&end, &signal);
  log_debug("operator stopped", {{"signal", signal}});
  return {};
}

}  // namespace bsp::local
