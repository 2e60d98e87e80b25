// An MPIJob as BSPJobs.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "base/core/error.h"
#include "operator/convert/placeholders.h"
#include "operator/convert/source.h"

namespace bsp::convert {

// One for each mpirun of the launcher's script; the notes are in `job`. kInvalid names line, field and remedy.
Result<std::vector<nlohmann::json>> convert_job(Source& job, Placeholders& placeholders);

}  // namespace bsp::convert
