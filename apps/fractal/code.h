// A compressed picture: one transform for each range, and the picture that all of them together leave as it is.
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

// From grey, applies the transforms until no pixel changes, at most 64 times.
Image decompress(const Code& code);

// A line of text "PIFS width height r", then 8 bytes for each range: domain (4, least first), isometry, s · 32, o (2).
std::string to_bytes(const Code& code);
// The error is a sentence; whatever the bytes are, what it returns can be decompressed.
std::expected<Code, std::string> parse_code(std::string_view bytes);

}  // namespace fractal
