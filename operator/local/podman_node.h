// The kubelet of local mode: runs the v1 Pods of a store with Podman and writes their status.
//
//   store: Pod with spec.nodeName ──> one worker thread per pod ──> network, volumes, containers
//   container's first process exits ──> pidfd wakes the worker ──> status (exit code, last lines)
//   Pod with deletionTimestamp ──> SIGTERM, grace, removal of all parts ──> the object is purged
//
// Level-triggered: a worker acts on the current state, not on events. If the node's process is killed, the containers
// keep running (under conmon) and the next node process adopts them. A container that was started and has disappeared
// is never started again, because that could run a rank twice: the pod fails instead. Sidecars restart (after 0, 0.1,
// 0.2, … 10 s), as do other containers if the pod's restartPolicy says so.
//
// Only this module writes the pod status: phase, podIP, conditions Ready and ContainersReady, containerStatuses and
// initContainerStatuses, like a kubelet. If a container can't be started, the phase is Failed, status.reason is
// ErrImageNeverPull, StartError, CreateContainerConfigError, … and the message names the remedy.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "operator/local/store.h"

namespace bsp::local {

struct NodeOptions {
  // Receives errors outside of any pod; null: they are logged.
  std::function<void(const Error&)> on_error = {};
};

class PodmanNode {
 public:
  // Checks Podman, takes the store's node lock (kConflict if another process holds it), removes containers without a
  // pod in the store, adopts the others, and starts the loop.
  static Result<std::unique_ptr<PodmanNode>> start(Store& store, NodeOptions options = {});
  // Stops the threads but leaves the pods running.
  ~PodmanNode();

  // Waits until no pod object is left; delete them first. kTimeout.
  Result<void> drain(std::chrono::milliseconds timeout);

 private:
  struct Impl;
  explicit PodmanNode(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bsp::local
