#include "apps/common/crc64.h"

#include <array>

namespace apps {

std::uint64_t crc64(std::uint64_t crc, std::span<const std::byte> bytes) {
  static const auto table = [] {
    std::array<std::uint64_t, 256> t{};
    for (std::uint64_t i = 0; i < t.size(); ++i) {
      std::uint64_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? 0xC96C5795D7870F42u : 0u);
      t[i] = value;
    }
    return t;
  }();
  crc = ~crc;
  for (const std::byte b : bytes) crc = table[(crc ^ static_cast<std::uint8_t>(b)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

}  // namespace apps
