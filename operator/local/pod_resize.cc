// A running pod's containers get more CPU, or less: what a kubelet does when their resources change.
#include <utility>

#include "base/core/log.h"
#include "base/json/fields.h"
#include "operator/local/pod_worker.h"
#include "operator/local/podman.h"

#include <sys/eventfd.h>

namespace bsp::local {

using kube::Object;

void PodWorker::resize(const Object& pod) {
  {
    const std::lock_guard lock(mutex_);
    if (part_at(part_at(pod, "spec"), "containers") == known_containers_) return;
    resized_ = known_containers_ = part_at(part_at(pod, "spec"), "containers");
  }
  ::eventfd_write(wake_.get(), 1);
}

void PodWorker::take_resize(Object containers) {
  pod_["spec"]["containers"] = std::move(containers);
  for (Container& c : containers_)
    if (record(c).phase == ContainerPhase::kRunning && record(c).cpu_limit != own_cpu_limit(pod_, c.plan.name))
      update_cpu(c);
  publish();
}

// A running one's. Also of one that an earlier node process has left, which may have ended before it did this.
void PodWorker::update_cpu(Container& c) {
  const std::string limit = own_cpu_limit(pod_, c.plan.name);
  if (limit.empty()) return;
  auto args = cpu_args(container_in(pod_, c.plan.name), c.plan.role, node_cpu_, c.plan.name);
  if (args) {
    args->insert(args->begin(), "update");
    args->push_back(c.plan.podman_name);
  }
  const auto done = args.and_then(podman::call);
  if (done)
    record(c).cpu_limit = limit;
  else
    log_warning("failed to resize a container",
                {{"pod", name_}, {"container", c.plan.name}, {"error", done.error().message}});
}

}  // namespace bsp::local
