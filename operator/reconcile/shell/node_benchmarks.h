// The benchmarks of nodes (sidecar/agent/benchmark.h), and their CPU features, beyond the pod that ran them: of a job before it has pods,
// and of Sets in which it has none. By node and CPU model: a Node of the same name with another uid, or a pod that reports another model,
// is another machine.
//
// What a namespace's pods have measured counts for jobs of this namespace only, because a tenant may let its sidecars say
// anything. Kept in memory: after a restart of the operator the next pods measure again, and a running job's own figures are in
// its status.calibration. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

class NodeBenchmarks {
 public:
  // Takes up what the job's sidecars have reported, and fills in `benchmark` of its nodes.
  void share(Observed& o);

  static constexpr std::size_t kMostNamespaces = 1024;
  static constexpr std::size_t kMostGone = 4096;  // nodes of a namespace beside those that there are

 private:
  struct Machine {
    std::string uid;  // of the Node
    wire::CpuBenchmark cpu;
    double speed = 0;  // units/s; 0: not measured
    CpuFeatures features{};
  };
  std::mutex mutex_;
  std::map<std::string, std::map<std::string, Machine>> of_namespace_;  // by node
};

}  // namespace bsp::reconcile
