// The operator's metrics as Prometheus reads them (text format 0.0.4). Pure but for process_metrics().
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
  std::uint64_t api_requests = 0;                     // since this process leads
  std::optional<reconcile::ShellMetrics> shell = {};  // of the one that leads
  ProcessMetrics process = {};
};

std::string metrics_text(const OperatorMetrics& metrics);

}  // namespace bsp::controller
