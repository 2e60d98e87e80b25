// A member of a Kubernetes object that is being made, whether the user wrote it or not.
#pragma once

#include <nlohmann/json.hpp>

namespace bsp::reconcile {

// The member, made of that type if there is none or it is of another: a validated template (crds/pod_schema.h) has none
// of those.
inline nlohmann::json& child(nlohmann::json& object, const char* name, nlohmann::json::value_t type) {
  nlohmann::json& value = object[name];
  if (value.type() != type) value = nlohmann::json(type);
  return value;
}

}  // namespace bsp::reconcile
