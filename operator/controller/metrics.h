// The operator's metrics in Prometheus' text format 0.0.4. Pure, except process_metrics().
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "operator/reconcile/shell/metrics.h"

namespace bsp::controller {

struct ProcessMetrics {
  double cpu_seconds = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t open_files = 0;
};
ProcessMetrics process_metrics();

struct OperatorMetrics {
  std::string version;
  bool leads = false;
  std::uint64_t api_requests = 0;                     // since this process became the leader
  std::optional<reconcile::ShellMetrics> shell = {};  // only of the leader
  ProcessMetrics process = {};
};

std::string metrics_text(const OperatorMetrics& metrics);

}  // namespace bsp::controller
