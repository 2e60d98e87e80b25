// Validates a job's pod template in advance: an API server would do so only when the first pod is created,
// and a misspelt field would show up as a pod that never starts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/core/error.h"

namespace bsp::crds {

// Checks names and types of its fields (pod_schema.h), that exactly one container is named app, and that none has a name
// reserved for the operator. `path` is the template's, for messages. A valid template can be read with
// base/json/fields.h, which treats a field of the wrong type as absent.
Result<void> validate_pod_template(const nlohmann::json& pod_template, const std::string& path);

}  // namespace bsp::crds
