// The operator's figures as Prometheus reads them (text format 0.0.4). Pure but for process_figures().
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "operator/reconcile/shell/metrics.h"

namespace bsp::controller {

struct ProcessFigures {
  double cpu_seconds = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t open_files = 0;
};
ProcessFigures process_figures();

struct Figures {
  std::string version;
  bool leads = false;
  std::uint64_t api_requests = 0;                     // since this process leads
  std::optional<reconcile::ShellFigures> shell = {};  // of the one that leads
  ProcessFigures process = {};
};

std::string metrics_text(const Figures& figures);

}  // namespace bsp::controller
