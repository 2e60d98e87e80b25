// What `check` found out, as text and as JSON. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "base/core/cpu_features.h"
#include "crds/rankmigration.h"
#include "operator/check/program.h"

namespace bsp::checking {

struct Move {
  std::uint32_t rank = 0;
  bool succeeded = false;
  std::string message;  // why not
  std::uint64_t bytes = 0;
  crds::PauseParts pause;
};

// What kept a rank at one or more edges: "an open RMA window".
struct Hold {
  std::uint32_t rank = 0;
  std::string reason;
  bool operator==(const Hold&) const = default;
};

struct Report {
  std::string image;
  std::string command;
  Program program;  // at the end of the watch
  double watched_seconds = 0;
  double superstep_seconds = 0;  // between two edges; 0: not known
  std::vector<Move> moves;
  std::vector<Hold> holds;
  CpuFeatures cpu;      // of this machine
  std::string failure;  // why no rank moved, or not both; "": both did
};

std::vector<std::string> lines_of(const Report& report);
// As an object, kind ProgramCheck, which isn't stored anywhere.
nlohmann::json json_of(const Report& report);

}  // namespace bsp::checking
