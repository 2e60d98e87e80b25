// The route between two Sets over a platform's trunks: the fewest trunks; among equals, those listed first.
#pragma once

#include <cstdint>
#include <vector>

#include "base/core/error.h"
#include "operator/decide/model/grid.h"
#include "sim/platform.h"

namespace bsp::sim {

struct Hop {
  std::uint32_t trunk;  // index in Platform::trunks
  bool forwards;        // from `from` to `to`
};

struct Routes {
  decide::Grid<std::vector<Hop>> trunks;  // [a, b]; empty if the Sets share a router

  // 1 / (the least bandwidth between a node of Set a and another of Set b).
  [[nodiscard]] double seconds_per_byte(const Platform& platform, std::uint32_t a, std::uint32_t b) const;
};

// kInvalid if two Sets aren't connected.
Result<Routes> find_routes(const Platform& platform);

}  // namespace bsp::sim
