// What is checked of a job's pod template beforehand: an API server would do so only when the first pod
// is made, and a misspelt field would then be a pod that never starts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/core/error.h"

namespace bsp::crds {

// Names and types of its fields (pod_schema.h), and that the operator's own names are left to it. `path` is the
// template's, for the messages. Exactly one container must be named app. What has been found valid may be read with
// base/json/fields.h, which takes what has another type for absent: there is none.
Result<void> validate_pod_template(const nlohmann::json& pod_template, const std::string& path);

}  // namespace bsp::crds
