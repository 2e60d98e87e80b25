#include "apps/fractal/image.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <format>

namespace fractal {
namespace {

// Noise between 0 and 255 with details of 2^level pixels, in integer arithmetic.
int noise(std::uint64_t seed, std::size_t x, std::size_t y, int level) {
  const auto corner = [&](std::size_t cx, std::size_t cy) {
    std::uint64_t z = seed * 0xD1342543DE82EF95u + cx * 0x9E3779B97F4A7C15u + cy * 0xC2B2AE3D27D4EB4Fu +
                      static_cast<std::uint64_t>(level);
    z = (z ^ (z >> 31)) * 0xBF58476D1CE4E5B9u;
    return static_cast<int>(((z ^ (z >> 29)) >> 24) & 255);
  };
  const std::size_t size = std::size_t{1} << level, cx = x >> level, cy = y >> level;
  const int n = static_cast<int>(size), fx = static_cast<int>(x & (size - 1)), fy = static_cast<int>(y & (size - 1));
  const int top = corner(cx, cy) * (n - fx) + corner(cx + 1, cy) * fx;
  const int bottom = corner(cx, cy + 1) * (n - fx) + corner(cx + 1, cy + 1) * fx;
  return (top * (n - fy) + bottom * fy) >> (2 * level);
}

int rough(std::uint64_t seed, std::size_t x, std::size_t y) {
  return (8 * noise(seed, x, y, 5) + 4 * noise(seed, x, y, 4) + 2 * noise(seed, x, y, 3) + 2 * noise(seed, x, y, 2)) /
         16;
}

std::uint8_t shade(int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); }

// The next number in a PGM header; false if there is none. Comments extend to the end of their line.
bool next_number(std::string_view& text, std::size_t& value) {
  while (!text.empty() && (std::isspace(static_cast<unsigned char>(text[0])) || text[0] == '#'))
    text.remove_prefix(text[0] == '#' ? std::min(text.find('\n'), text.size()) : 1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

Image generate(std::size_t width, std::size_t height, std::uint64_t seed) {
  Image image{width, height, std::vector<std::uint8_t>(width * height)};
  const auto w = static_cast<std::int64_t>(width), h = static_cast<std::int64_t>(height);
  const std::int64_t sun_x = w * 3 / 4, sun_y = h / 5, radius = std::min(w, h) / 12;
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x) {
      const auto px = static_cast<std::int64_t>(x), py = static_cast<std::int64_t>(y);
      const std::int64_t ridge = h * 9 / 20 - h * noise(seed + 1, x, 0, 6) / 1200 - h * noise(seed + 2, x, 0, 4) / 4000;
      int value = 0;
      if (py >= h * 3 / 4)
        value = 60 + (noise(seed + 3, x / 4, y, 2) + noise(seed + 4, x, y, 4)) / 5;
      else if (py >= ridge)
        value = 30 + rough(seed, x, y) * 3 / 4;
      else if ((px - sun_x) * (px - sun_x) + (py - sun_y) * (py - sun_y) <= radius * radius)
        value = 250;
      else
        value = 200 - static_cast<int>(60 * py / h);
      image.pixels[y * width + x] = shade(value);
    }
  return image;
}

Image padded(const Image& image, std::size_t unit) {
  Image all{(image.width + unit - 1) / unit * unit, (image.height + unit - 1) / unit * unit, {}};
  all.pixels.resize(all.width * all.height);
  for (std::size_t y = 0; y < all.height; ++y)
    for (std::size_t x = 0; x < all.width; ++x)
      all.pixels[y * all.width + x] = image.at(std::min(x, image.width - 1), std::min(y, image.height - 1));
  return all;
}

Image cropped(const Image& image, std::size_t width, std::size_t height) {
  Image part{width, height, {}};
  part.pixels.resize(width * height);
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x) part.pixels[y * width + x] = image.at(x, y);
  return part;
}

std::expected<Image, std::string> parse_pgm(std::string_view text) {
  if (!text.starts_with("P5"))
    return std::unexpected("it is not a binary PGM (P5); convert it with `magick in.png out.pgm`");
  text.remove_prefix(2);
  Image image;
  std::size_t white = 0;
  if (!next_number(text, image.width) || !next_number(text, image.height) || !next_number(text, white) ||
      text.empty() || !std::isspace(static_cast<unsigned char>(text[0])))
    return std::unexpected("invalid header: expected P5, width, height and 255");
  text.remove_prefix(1);
  if (image.width == 0 || image.height == 0 || image.width > kLargest || image.height > kLargest)
    return std::unexpected(std::format("it has {} x {} pixels; the size must be from 1 x 1 to {} x {}", image.width,
                                       image.height, kLargest, kLargest));
  if (white != 255)
    return std::unexpected(std::format("its maximum value is {}; only 8 bits (255) are supported", white));
  if (text.size() < image.width * image.height)
    return std::unexpected(std::format("it ends after {} of {} pixels", text.size(), image.width * image.height));
  image.pixels.assign(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(image.width * image.height));
  return image;
}

std::string to_pgm(const Image& image) {
  return std::format("P5\n{} {}\n255\n", image.width, image.height) +
         std::string(image.pixels.begin(), image.pixels.end());
}

double psnr(const Image& one, const Image& other) {
  std::uint64_t squares = 0;
  for (std::size_t i = 0; i < one.pixels.size(); ++i) {
    const int difference = one.pixels[i] - other.pixels[i];
    squares += static_cast<std::uint64_t>(difference * difference);
  }
  return 10 * std::log10(255.0 * 255.0 * static_cast<double>(one.pixels.size()) / static_cast<double>(squares));
}

std::string thumbnail(const Image& image, std::size_t characters) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  const std::size_t columns = std::min(characters, image.width);
  const std::size_t rows =
      std::max<std::size_t>(1, columns * image.height / image.width / 2);  // a character is twice as high as wide
  std::string all;
  for (std::size_t row = 0; row < rows; ++row) {
    all += "  ";
    for (std::size_t column = 0; column < columns; ++column)
      all += kShades[image.at(column * image.width / columns, row * image.height / rows) * kShades.size() / 256];
    all += '\n';
  }
  return all;
}

}  // namespace fractal
