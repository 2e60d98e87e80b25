// Reads the fields that every Kubernetes object has, from an untrusted one (base/json/fields.h).
#pragma once

#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/json/fields.h"

namespace bsp::kube {

inline std::string metadata_text(const nlohmann::json& object, const char* name) {
  return text_at(part_at(object, "metadata"), name);
}

// Resource versions are increasing numbers (by contract since Kubernetes 1.35, and always with etcd). nullopt if it
// isn't a number.
inline std::optional<std::uint64_t> version_number(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// True only if both are numbers and a < b.
inline bool is_older(const std::string& a, const std::string& b) {
  const auto x = version_number(a), y = version_number(b);
  return x && y && *x < *y;
}

}  // namespace bsp::kube
