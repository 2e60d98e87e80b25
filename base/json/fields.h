// Reads fields of an untrusted JSON object.
// A field of the wrong type counts as missing.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace bsp {

// The value as an integer, however it is written (4, 4.0 and 4e0 are the same to an API server). nullopt if it isn't
// one, or doesn't fit into T.
template <std::integral T>
std::optional<T> whole_number(const nlohmann::json& value) {
  std::int64_t number = 0;
  if (value.is_number_unsigned()) {
    const auto count = value.get<std::uint64_t>();
    return std::in_range<T>(count) ? std::optional(static_cast<T>(count)) : std::nullopt;
  }
  if (value.is_number_integer()) {
    number = value.get<std::int64_t>();
  } else if (value.is_number_float()) {
    const double real = value.get<double>();
    // Converting a value outside this range, or NaN, would be undefined behaviour.
    if (!(real >= -0x1p63 && real < 0x1p63) || real != std::trunc(real)) return std::nullopt;
    number = static_cast<std::int64_t>(real);
  } else {
    return std::nullopt;
  }
  return std::in_range<T>(number) ? std::optional(static_cast<T>(number)) : std::nullopt;
}

// A null value if there is no such field.
inline const nlohmann::json& part_at(const nlohmann::json& object, std::string_view name) {
  static const nlohmann::json none;
  if (!object.is_object()) return none;
  const auto it = object.find(name);
  return it != object.end() ? *it : none;
}

inline std::string text_at(const nlohmann::json& object, std::string_view name) {
  const nlohmann::json& value = part_at(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

inline bool flag_at(const nlohmann::json& object, std::string_view name, bool otherwise) {
  const nlohmann::json& value = part_at(object, name);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

// 0 if the field is missing or negative.
template <std::integral T>
T count_at(const nlohmann::json& object, std::string_view name) {
  const auto number = whole_number<T>(part_at(object, name));
  return number && *number > 0 ? *number : T{0};
}

}  // namespace bsp
