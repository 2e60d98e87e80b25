// Translates `--pools slow=3x0.25,fast=2x0.6` to Node objects, one per slot.
//
// A pool is a Set; each of its slots is a v1 Node <pool>-<i> with the capacity for one rank and that share of one core.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "base/core/error.h"

namespace bsp::local {

struct Pool {
  std::string name;
  unsigned slots = 0;
  double cpu = 0;  // share of one core, per slot
};

// Errors quote the wrong part and show the syntax.
Result<std::vector<Pool>> parse_pools(const std::string& text);
std::vector<nlohmann::json> nodes_of(const std::vector<Pool>& pools);
// The share of a core that a node gives its pod; 0: no limit.
double cpu_of(const nlohmann::json& node);

}  // namespace bsp::local
