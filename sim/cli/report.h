// A simulation's results as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string>

#include "sim/scenario.h"

namespace bsp::sim {

// "lu, order 1000, 25 ranks, 2001 supersteps".
std::string title(const Workload& workload);

// The table of the three scenarios, then every call of iii with its reasons. Prints `rows` rows of each table and the
// number of the others.
std::string report_text(const Platform& platform, const Workload& workload, const Scenarios& scenarios,
                        std::size_t rows);
nlohmann::json report_json(const Platform& platform, const Workload& workload, const Scenarios& scenarios);

}  // namespace bsp::sim
