// Resources of a worker's container, shared out among its slots.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/core/error.h"

namespace bsp::convert {

// A quantity of the resource divided by `parts`, rounded up: "2" / 4 = "500m", "4Gi" / 3 = "1398102Ki". A share of
// hugepages-2Mi is a multiple of 2Mi.
Result<std::string> divided(std::string_view resource, const nlohmann::json& quantity, std::uint64_t parts);

}  // namespace bsp::convert
