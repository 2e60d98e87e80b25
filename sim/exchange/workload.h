// The study's workload: masters of a sparse direct solver choose slaves.
//
// The source measured its mechanisms in a multifrontal solver. Each process has its own queue of tasks (subtrees of the
// elimination tree, mapped beforehand and known to all), and is the master of some large fronts. When such a front's
// turn comes, the master chooses slaves among all processes by their loads and gives each a share of the rows. A
// process computes shares before its own tasks, and one task (or one panel of a share) at a time without reading
// messages.
//
// Unit of load and work: seconds of computing. All values are drawn from `seed`; nothing depends on the mechanism.
#pragma once

#include <cstdint>
#include <vector>

namespace bsp::sim::exchange {

struct WorkloadParams {
  std::uint32_t processes = 64;
  std::uint64_t seed = 1;
  std::uint32_t tasks = 150;    // each process's own tasks
  double task_seconds = 0.015;  // median; log-normal
  double task_sigma = 1.0;
  double imbalance_sigma = 0.3;  // of the factor by which the static mapping misjudges a process's part
  std::uint32_t fronts = 2;      // a process is master of 0 … `fronts` fronts, uniformly distributed
  double front_seconds = 2.0;    // median work that a front gives to slaves; log-normal
  double front_sigma = 0.7;
  std::uint32_t slaves = 16;     // of a front, at most
  double panel_seconds = 0.025;  // a share is computed in panels of this size
  // The position of fronts in their master's queue, as a fraction of its length: [from, from + spread).
  double fronts_from = 0.0;
  double fronts_spread = 1.0;
};

struct Task {
  double seconds = 0;
  bool front = false;  // the seconds go to slaves and are not computed here
};

struct Workload {
  WorkloadParams params;
  std::vector<std::vector<Task>> queues;  // by process
  std::size_t decisions = 0;
};

Workload make_workload(const WorkloadParams& params);

// Divides `seconds` among at most `slaves` of the least loaded processes so that all of them end at the same level,
// like poured water. `self` gets none.
struct Share {
  std::uint32_t process;
  double seconds;
};
std::vector<Share> pour(const std::vector<double>& loads, std::uint32_t self, double seconds, std::uint32_t slaves);

}  // namespace bsp::sim::exchange
