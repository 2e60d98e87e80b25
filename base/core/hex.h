// Bytes as text: two lower-case hexadecimal digits each, as digests, build ids and keys are shown.
#pragma once

#include <string>
#include <string_view>

namespace bsp {

inline std::string hex_of(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace bsp
