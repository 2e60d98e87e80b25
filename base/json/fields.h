// Reading fields of a JSON object that somebody else has written: what has another type than it should counts as
// missing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace bsp {

// A null value if there is none.
inline const nlohmann::json& part_at(const nlohmann::json& object, const char* name) {
  static const nlohmann::json none;
  if (!object.is_object()) return none;
  const auto it = object.find(name);
  return it != object.end() ? *it : none;
}

inline std::string text_at(const nlohmann::json& object, const char* name) {
  const nlohmann::json& value = part_at(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

inline bool flag_at(const nlohmann::json& object, const char* name, bool otherwise) {
  const nlohmann::json& value = part_at(object, name);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

}  // namespace bsp
