// What is checked of a job's pod template beforehand: an API server would do so only when the first pod
// is made, and a misspelt field would then be a pod that never starts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/core/error.h"

namespace bsp::crds {

// Names and types of the fields that decide how the program starts; names alone of the rest of PodSpec
// and Container (core/v1 of Kubernetes 1.36). `path` is the template's, for the messages. Exactly one
// container must be called app.
Result<void> validate_pod_template(const nlohmann::json& pod_template, const std::string& path);

}  // namespace bsp::crds
