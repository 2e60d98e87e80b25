// A compressed picture: one transform for each range; the picture is their common fixed point.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "apps/fractal/encoder.h"
#include "apps/fractal/image.h"

namespace fractal {

struct Code {
  std::size_t width = 0, height = 0;  // of the picture
  std::size_t r = 0;
  std::vector<Transform> transforms;  // range by range, row by row, of the padded picture
};

// Starts from grey and applies the transforms until no pixel changes, at most 64 times.
Image decompress(const Code& code);

// A line "PIFS width height r", then 8 bytes for each range: domain (4, little-endian), isometry, s · 32, o (2).
std::string to_bytes(const Code& code);
// The error is a sentence. Whatever the bytes are, the returned code can be decompressed.
std::expected<Code, std::string> parse_code(std::string_view bytes);

}  // namespace fractal
