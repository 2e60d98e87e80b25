// The work that the study's decision makers have to share: masters of a sparse direct solver that choose slaves.
//
// The source measured its mechanisms in a multifrontal solver. Each process has a queue of tasks of its own (subtrees
// of the elimination tree, mapped beforehand and known to all), and for some large fronts it is the master: when such a
// front's turn comes, the master chooses slaves among all processes by their loads and gives each a share of the rows.
// Shares that have arrived go before a process's own tasks. A process computes one task (or one panel of a share) at a
// time without looking at messages.
//
// Unit of load and work: seconds of computing. All figures are drawn from `seed`; nothing depends on the mechanism.
#pragma once

#include <cstdint>
#include <vector>

namespace bsp::sim::exchange {

struct WorkloadParams {
  std::uint32_t processes = 64;
  std::uint64_t seed = 1;
  std::uint32_t tasks = 150;    // of its own, for each process
  double task_seconds = 0.015;  // median; log-normal
  double task_sigma = 1.0;
  double imbalance_sigma = 0.3;  // of the factor by which the static mapping has misjudged a process's part
  std::uint32_t fronts = 2;      // a process is master of 0 … `fronts` of them, each number as likely
  double front_seconds = 2.0;    // median work that a front gives to slaves; log-normal
  double front_sigma = 0.7;
  std::uint32_t slaves = 16;     // of a front, at most
  double panel_seconds = 0.025;  // a share is computed in panels of this size
  // Where in its queue a master meets its fronts, as parts of the queue: [from, from + spread).
  double fronts_from = 0.0;
  double fronts_spread = 1.0;
};

struct Task {
  double seconds = 0;
  bool front = false;  // seconds to be given to slaves, not computed here
};

struct Workload {
  WorkloadParams params;
  std::vector<std::vector<Task>> queues;  // by process
  std::size_t decisions = 0;
};

Workload make_workload(const WorkloadParams& params);

// Shares of `seconds` for at most `slaves` of the least loaded, such that all that get one end up at the same level (as
// if water were poured): index of process and amount. `self` gets none.
struct Share {
  std::uint32_t process;
  double seconds;
};
std::vector<Share> pour(const std::vector<double>& loads, std::uint32_t self, double seconds, std::uint32_t slaves);

}  // namespace bsp::sim::exchange
