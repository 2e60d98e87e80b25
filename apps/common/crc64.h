#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace apps {

// CRC-64 (ECMA-182, reflected) of bytes; start with 0 and pass the previous result.
std::uint64_t crc64(std::uint64_t crc, std::span<const std::byte> bytes);

}  // namespace apps
