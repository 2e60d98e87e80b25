// Runs one pod on this machine, on its own thread. See podman_node.h.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/core/fd.h"
#include "operator/local/outlet.h"
#include "operator/local/pod_plan.h"
#include "operator/local/pod_status.h"
#include "operator/local/store.h"

namespace bsp::local {

class PodWorker {
 public:
  // `adopt`: the pod may have containers from an earlier node process.
  PodWorker(Store& store, kube::Object pod, double node_cpu, bool adopt);
  // Stops the thread but leaves the containers running.
  ~PodWorker();

  // Starts removing everything of the pod, its object last.
  void remove_pod();
  // Its containers get the CPU that this version of the pod says.
  void resize(const kube::Object& pod);
  // Updates the files that the pod mounts, after a Secret or ConfigMap has changed.
  void refresh_files();
  [[nodiscard]] bool finished() const;  // the pod is removed and the thread done
  [[nodiscard]] const std::string& uid() const { return uid_; }

 private:
  struct Container {
    ContainerPlan plan;
    std::size_t record = 0;  // index into record_.containers
    Fd pidfd;                // valid while running
    std::chrono::steady_clock::time_point started{};
    std::chrono::steady_clock::time_point restart_at{};
    unsigned quick_deaths = 0;
    std::unique_ptr<Outlet> outlet = {};  // of a sidecar that stores in a bucket
  };

  void run();
  PlanInput plan_input() const;
  Result<void> prepare();
  void write_changed_files();
  void start_all();
  bool start(Container& c);
  bool adopt(Container& c, const std::string& known);
  void watch(Container& c, int pid);
  void supervise();
  void ended(Container& c);
  void restart(Container& c);
  bool wants_restart(const Container& c) const;
  void stop_sidecars();
  Result<void> tear_down();
  void fail_pod(const std::string& reason, const std::string& message);
  void take_resize(kube::Object containers);
  void update_cpu(Container& c);
  void publish();
  ContainerRecord& record(Container& c) { return record_.containers[c.record]; }

  Store& store_;
  kube::Object pod_;
  std::string name_;
  std::string uid_;
  double node_cpu_;
  bool adopt_;
  PodPlan plan_;
  std::vector<Container> containers_;
  PodRecord record_;
  kube::Object written_;  // the last written status

  mutable std::mutex mutex_;
  bool stop_ = false;
  bool remove_ = false;
  bool finished_ = false;
  bool refresh_ = false;
  // The containers as the pod's object has them, and the same until the thread takes it; null: it has.
  kube::Object known_containers_, resized_;
  Fd wake_;  // eventfd
  std::thread thread_;
};

}  // namespace bsp::local
