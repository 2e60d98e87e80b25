// Resources of a worker's container, shared out among its slots.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/core/error.h"

namespace bsp::convert {

// A quantity divided by `parts`, rounded up: "2" / 4 = "500m", "4Gi" / 3 = "1398102Ki".
Result<std::string> divided(const nlohmann::json& quantity, std::uint32_t parts);

}  // namespace bsp::convert
