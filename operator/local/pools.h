// Translates `--pools slow=3x0.25,fast=2x4x0.6` to Node objects.
//
// A pool is a Set of v1 Nodes <pool>-<i>, each with the capacity for one rank, or as many as its slots, and that share of one
// core for each. With `--prices slow=1,fast=3` nodes have prices.
#pragma once

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

#include "base/core/error.h"

namespace bsp::local {

struct Pool {
  std::string name;
  unsigned nodes = 0;
  unsigned slots = 1;  // of each node
  double cpu = 0;      // share of one core, per slot
  double price = 0;    // of a node, an hour; 0: none
};

// Errors quote the wrong part and show the syntax.
Result<std::vector<Pool>> parse_pools(const std::string& text);
// `--prices slow=1,fast=3`: what a node of each pool costs an hour.
Result<void> set_prices(const std::map<std::string, double>& prices, std::vector<Pool>& pools);
std::vector<nlohmann::json> nodes_of(const std::vector<Pool>& pools);
// The share of a core that a node gives each rank; 0: no limit.
double cpu_of(const nlohmann::json& node);

}  // namespace bsp::local
