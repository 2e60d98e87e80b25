// What the shell exports about itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/core/metric.h"
#include "operator/reconcile/shell/objects.h"

namespace bsp::reconcile {

// How long one reconcile of a job took: a histogram.
struct ReconcileMetrics {
  static constexpr std::array<double, 12> kBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10};
  std::array<std::uint64_t, kBounds.size() + 1>
      counts{};  // of those up to each bound and above the one before; the rest
  double seconds = 0;

  void add(double took) {
    std::size_t i = 0;
    while (i < kBounds.size() && took > kBounds[i]) ++i;
    ++counts[i];
    seconds += took;
  }
};

// Reconciles that have to be repeated: after an error, or because an object changed meanwhile.
extern Metric reconcile_retries;

struct ShellMetrics {
  std::vector<JobMetrics> jobs;
  ReconcileMetrics reconciles;
  std::size_t waiting = 0;  // jobs that wait to be reconciled
  std::size_t cached_pods = 0;
  std::uint64_t rejected_messages = 0;  // of sidecars, since the start
  std::size_t cached_bytes = 0;         // of all objects kept
};

}  // namespace bsp::reconcile
