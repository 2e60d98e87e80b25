#include <format>

#include "operator/local/pools.h"
#include "sim/platform.h"

namespace bsp::sim {

Result<Platform> platform_of_pools(const std::string& pools, const PoolsNetwork& network) {
  BSP_TRY(const std::vector<local::Pool> parsed, local::parse_pools(pools));
  Platform platform;
  platform.mig_seconds = network.mig_seconds;
  for (const local::Pool& pool : parsed) {
    Set& set = platform.sets.emplace_back();
    set.name = pool.name;
    set.link = network.link;
    for (unsigned i = 0; i < pool.nodes; ++i)
      set.nodes.push_back(
          {.name = std::format("{}-{}", pool.name, i), .speed = pool.cpu * network.core_speed, .slots = pool.slots});
  }
  BSP_CHECK_OK(validate(platform));
  return platform;
}

}  // namespace bsp::sim
