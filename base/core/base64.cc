#include "base/core/base64.h"

#include <cstdint>

namespace bsp {
namespace {
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}

std::string base64_encode(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kAlphabet[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

Result<std::string> base64_decode(std::string_view text) {
  const auto refused = [] { return fail(ErrorCode::kInvalid, "is not base64"); };
  std::string out;
  std::uint32_t group = 0;
  int digits = 0, padding = 0;  // of the current group of four
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    const auto value = kAlphabet.find(c);
    if (c == '=' && digits >= 2)
      ++padding;
    else if (value == std::string_view::npos || padding > 0)
      return refused();
    if (digits + padding > 4) return refused();
    group = group << 6 | static_cast<std::uint32_t>(c == '=' ? 0 : value);
    if (c != '=') ++digits;
    if (digits + padding < 4) continue;
    for (int k = 0; k < digits - 1; ++k) out += static_cast<char>(group >> (16 - 8 * k) & 0xff);
    if (padding == 0) digits = 0;  // nothing may follow padding
  }
  if (digits != 0 && digits + padding != 4) return refused();
  return out;
}

}  // namespace bsp
