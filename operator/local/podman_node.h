// The kubelet of local mode: runs the v1 Pods of a store with Podman and writes their status.
//
//   store: Pod with spec.nodeName ──> one worker thread per pod ──> network, volumes, containers
//   container's first process ends ──> pidfd wakes the worker ──> status (exit code, last lines)
//   Pod with deletionTimestamp ──> SIGTERM, grace, removal of all parts ──> the object is purged
//
// Levels, not events: a worker looks at what is there. When the node's process is killed, the
// containers go on (conmon holds them); the next node process adopts them. A container that had been
// started and is gone is never started again, because a second copy of a rank must not come to be: the
// pod fails. Sidecars are restarted (0, 0.1, 0.2, … 10 s apart), as are others if the pod's
// restartPolicy says so.
//
// Pod status is written by this file alone: phase, podIP, conditions Ready and ContainersReady,
// containerStatuses and initContainerStatuses as a kubelet writes them. What can't be started makes
// the phase Failed with status.reason ErrImageNeverPull, StartError, CreateContainerConfigError, … and
// a message that names the remedy.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "operator/local/store.h"

namespace bsp::local {

struct NodeOptions {
  // Told of what goes wrong outside of any pod; null: logged.
  std::function<void(const Error&)> on_error = {};
};

class PodmanNode {
 public:
  // Checks Podman, takes the store's node lock (kConflict if another process holds it), removes
  // containers that belong to no pod of the store, adopts the others and starts to work.
  static Result<std::unique_ptr<PodmanNode>> start(Store& store, NodeOptions options = {});
  // Ends the threads and leaves the pods running.
  ~PodmanNode();

  // Waits until no pod object is left (all were deleted before). kTimeout.
  Result<void> drain(std::chrono::milliseconds timeout);

 private:
  struct Impl;
  explicit PodmanNode(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bsp::local
