// The expensive search: for each range of a picture, the most similar domain.
//
// Partitioned iterated function systems (Jacquin 1992). A range has r×r pixels, a domain d×d, d = 2r; domains don't
// overlap. A domain D, scaled down to r×r, approximates a range R as  s·T(D) + o  in one of 8 isometries T:
//   s = (n Σdr − Σd Σr) / (n Σd² − (Σd)²), rounded to 1/32, |s| <= 31/32;  o = (Σr − s Σd) / n, rounded to 1;  n = r²
//   E = Σ (s d + o − r)²          the smallest over all domains and isometries; the first of equals
// Integer arithmetic only, so that the code is the same on every CPU and for any number of ranks. A range whose
// pixels differ little (`flat`) is replaced by its mean and compared with no domain, so it costs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/fractal/image.h"

namespace fractal {

inline constexpr std::size_t kIsometries = 8;
inline constexpr int kScale = 32;  // of s

// A domain in an isometry and its error, error first: the smaller key is better.
using Key = std::uint64_t;
inline constexpr int kIndexBits = 29;
inline constexpr std::uint64_t kFlat = (std::uint64_t{1} << kIndexBits) - 1;  // the index of a flat range
inline constexpr Key kNone = ~Key{0};                                         // compared with nothing yet

constexpr std::uint64_t index_of(Key key) { return key & kFlat; }  // domain · 8 + isometry

// How a range is made from a domain.
struct Transform {
  std::uint32_t domain = kFlat;
  std::uint8_t isometry = 0;
  std::int8_t scale = 0;    // s · 32
  std::int16_t offset = 0;  // o
  bool operator==(const Transform&) const = default;
};

// For each isometry, the pixel of the scaled-down domain that pixel i of a range comes from.
std::vector<std::vector<std::size_t>> isometries(std::size_t r);

// A domain scaled down to r×r by averaging 2×2 pixels.
void shrink(const Image& image, std::size_t domain, std::size_t r, std::vector<std::int16_t>& out);

class Encoder {
 public:
  // Compares with domains first … first + count − 1. The picture's width and height are multiples of 2r.
  Encoder(const Image& image, std::size_t r, std::uint64_t flat, std::size_t first, std::size_t count);

  [[nodiscard]] std::size_t rows() const { return image_.height / r_; }    // of ranges
  [[nodiscard]] std::size_t columns() const { return image_.width / r_; }  // ranges in a row
  static std::size_t domains(const Image& image, std::size_t r) {
    return image.width / (2 * r) * (image.height / (2 * r));
  }

  // The best of these domains for a range, or `so_far` if none is better.
  [[nodiscard]] Key search(std::size_t row, std::size_t column, Key so_far) const;
  // Computes s and o for a key; its domain must be one of these.
  [[nodiscard]] Transform transform(std::size_t row, std::size_t column, Key key) const;

 private:
  struct Sums {
    std::int64_t sum = 0, squares = 0;
  };
  struct Range {
    Sums sums;
    std::vector<std::int16_t> pixels;  // in the 8 isometries
  };
  struct Fit {
    std::int64_t scale = 0, offset = 0, error = 0;  // s · 32, o, E · 1024
  };
  [[nodiscard]] Range range(std::size_t row, std::size_t column) const;
  [[nodiscard]] bool is_flat(const Sums& sums) const;
  [[nodiscard]] Fit fit(const Sums& domain, const Sums& range, std::int64_t product) const;
  [[nodiscard]] std::int64_t product(std::size_t own_domain, const Range& range, std::size_t isometry) const;

  const Image& image_;
  std::size_t r_;
  std::int64_t n_, flat_;
  std::size_t first_, count_;
  std::vector<std::int16_t> domains_;
  std::vector<Sums> sums_;
  std::vector<double> inverse_;  // 1 / (n (n Σd² − (Σd)²)); 0 for a uniform domain
  std::vector<std::vector<std::size_t>> isometries_;
};

}  // namespace fractal
