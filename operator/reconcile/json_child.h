// A member of a Kubernetes object that is being made, whether the user wrote it or not.
#pragma once

#include <nlohmann/json.hpp>

namespace bsp::reconcile {

// The member, made of that type if there is none or it is null.
inline nlohmann::json& child(nlohmann::json& object, const char* name, nlohmann::json::value_t type) {
  nlohmann::json& value = object[name];
  if (value.is_null()) value = nlohmann::json(type);
  return value;
}

}  // namespace bsp::reconcile
