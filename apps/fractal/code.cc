#include "apps/fractal/code.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <format>

namespace fractal {
namespace {

constexpr std::size_t kBytes = 8;  // per transform
constexpr int kMostOffset = 1024;

std::size_t up(std::size_t size, std::size_t unit) { return (size + unit - 1) / unit * unit; }

}  // namespace

Image decompress(const Code& code) {
  const std::size_t r = code.r, width = up(code.width, 2 * r), height = up(code.height, 2 * r);
  Image image{width, height, std::vector<std::uint8_t>(width * height, 128)};
  Image next = image;
  const auto maps = isometries(r);
  std::vector<std::int16_t> domain(r * r);
  for (int round = 0; round < 64; ++round) {
    for (std::size_t i = 0; i < code.transforms.size(); ++i) {
      const Transform& t = code.transforms[i];
      const std::size_t x0 = i % (width / r) * r, y0 = i / (width / r) * r;
      if (t.domain != kFlat) shrink(image, t.domain, r, domain);
      for (std::size_t p = 0; p < r * r; ++p) {
        const int scaled = t.domain == kFlat ? 0 : t.scale * domain[maps[t.isometry][p]];
        const int value =
            t.offset + (scaled + kScale / 2 + kScale * 1024) / kScale - 1024;  // round to nearest, also below zero
        next.pixels[(y0 + p / r) * width + x0 + p % r] = static_cast<std::uint8_t>(std::clamp(value, 0, 255));
      }
    }
    const bool still = image.pixels == next.pixels;
    std::swap(image, next);
    if (still) break;
  }
  return cropped(image, code.width, code.height);
}

std::string to_bytes(const Code& code) {
  std::string bytes = std::format("PIFS {} {} {}\n", code.width, code.height, code.r);
  for (const Transform& t : code.transforms) {
    const auto offset = static_cast<std::uint16_t>(t.offset);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(t.domain >> shift & 255);
    bytes += static_cast<char>(t.isometry);
    bytes += static_cast<char>(t.scale);
    bytes += static_cast<char>(offset & 255);
    bytes += static_cast<char>(offset >> 8);
  }
  return bytes;
}

std::expected<Code, std::string> parse_code(std::string_view bytes) {
  const auto no_code = [] { return std::unexpected("it is not a compressed picture; use a file written by --code"); };
  if (!bytes.starts_with("PIFS")) return no_code();
  bytes.remove_prefix(4);
  Code code;
  for (std::size_t* number : {&code.width, &code.height, &code.r}) {
    if (!bytes.starts_with(' ')) return no_code();
    const auto [end, error] = std::from_chars(bytes.data() + 1, bytes.data() + bytes.size(), *number);
    if (error != std::errc{}) return no_code();
    bytes.remove_prefix(static_cast<std::size_t>(end - bytes.data()));
  }
  if (!bytes.starts_with('\n') || code.width == 0 || code.width > kLargest || code.height == 0 ||
      code.height > kLargest || code.r < 1 || code.r > 32)
    return no_code();
  bytes.remove_prefix(1);
  const std::size_t width = up(code.width, 2 * code.r), height = up(code.height, 2 * code.r);
  const std::size_t ranges = width / code.r * (height / code.r), domains = ranges / 4;
  if (bytes.size() != ranges * kBytes)
    return std::unexpected(
        std::format("it has {} bytes for its {} ranges instead of {}", bytes.size(), ranges, ranges * kBytes));
  for (std::size_t i = 0; i < ranges; ++i) {
    const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(bytes[i * kBytes + at]); };
    const Transform t{.domain = byte(0) | byte(1) << 8 | byte(2) << 16 | static_cast<std::uint32_t>(byte(3)) << 24,
                      .isometry = byte(4),
                      .scale = static_cast<std::int8_t>(byte(5)),
                      .offset = static_cast<std::int16_t>(byte(6) | byte(7) << 8)};
    if ((t.domain >= domains && t.domain != kFlat) || t.isometry >= kIsometries || std::abs(t.scale) >= kScale ||
        std::abs(t.offset) > kMostOffset)
      return std::unexpected(std::format("range {} refers to a domain that doesn't exist; is the file complete?", i));
    code.transforms.push_back(t);
  }
  return code;
}

}  // namespace fractal
