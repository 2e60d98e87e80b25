// What a superstep takes under any mapping, computed from the snapshot alone.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "operator/decide/model/metrics.h"
#include "operator/decide/model/model.h"

namespace bsp::decide {

inline std::vector<ProcessorId> current_mapping(const Snapshot& snapshot) {
  std::vector<ProcessorId> on;
  for (const Rank& rank : snapshot.ranks) on.push_back(rank.processor);
  return on;
}

// Σ Instructions / ((1 − load)·cpu) by processor; s.
inline std::vector<double> time_by_processor(const Snapshot& snapshot, std::span<const double> instructions,
                                             std::span<const ProcessorId> on) {
  std::vector<double> seconds(snapshot.platform.processors.size(), 0.0);
  for (std::size_t i = 0; i < on.size(); ++i) seconds[on[i].value] += instructions[i];
  for (std::size_t p = 0; p < seconds.size(); ++p) seconds[p] /= snapshot.platform.processors[p].available();
  return seconds;
}

// max_i Time(i) + max_i Comm(i,·); s.
inline double superstep_seconds(const Snapshot& snapshot, const Metrics& metrics, std::span<const ProcessorId> on) {
  double time = 0, comm = 0;
  for (const double seconds : time_by_processor(snapshot, metrics.last.instructions, on))
    time = std::max(time, seconds);
  const Platform& platform = snapshot.platform;
  for (std::size_t i = 0; i < on.size(); ++i)
    for (std::size_t k = 0; k < platform.sets.size(); ++k)
      comm = std::max(comm, metrics.last.recv_bytes[i, k] * platform.T[k, platform.processor(on[i]).set.value]);
  return time + comm;
}

}  // namespace bsp::decide
