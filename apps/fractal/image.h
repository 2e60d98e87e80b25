// Greyscale pictures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace fractal {

inline constexpr std::uint64_t kLargest = 8192;  // width and height

struct Image {
  std::size_t width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  // row by row, 0 is black

  [[nodiscard]] std::uint8_t at(std::size_t x, std::size_t y) const { return pixels[y * width + x]; }
};

// Generates a landscape: a uniform sky with a sun, rough mountains, water with ripples. Uniform areas cost nothing to
// compress, rough ones most. The same arguments give the same picture everywhere.
Image generate(std::size_t width, std::size_t height, std::uint64_t seed);

// Pads by repeating the last column and row, so that width and height are multiples of `unit`; and crops again.
Image padded(const Image& image, std::size_t unit);
Image cropped(const Image& image, std::size_t width, std::size_t height);

// Binary PGM (P5) of 8 bits. The error is a sentence.
std::expected<Image, std::string> parse_pgm(std::string_view text);
std::string to_pgm(const Image& image);

// Peak signal-to-noise ratio, dB; infinite if they are equal.
double psnr(const Image& one, const Image& other);

// Renders it as `width` characters per line.
std::string thumbnail(const Image& image, std::size_t characters);

}  // namespace fractal
