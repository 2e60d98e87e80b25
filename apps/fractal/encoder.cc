#include "apps/fractal/encoder.h"

#include <algorithm>

namespace fractal {
namespace {

constexpr std::int64_t kUnit = kScale * kScale;  // of errors
constexpr std::int64_t kLargestError = (std::int64_t{1} << (64 - kIndexBits)) - 1;

std::int64_t dot(const std::int16_t* one, const std::int16_t* other, std::size_t n) {
  std::int32_t sum = 0;  // 32 · 32 · 255² fits
  for (std::size_t i = 0; i < n; ++i) sum += std::int32_t{one[i]} * std::int32_t{other[i]};
  return sum;
}

// Rounds to nearest, half away from zero. divisor > 0.
std::int64_t divide(std::int64_t value, std::int64_t divisor) {
  return value >= 0 ? (value + divisor / 2) / divisor : -((-value + divisor / 2) / divisor);
}

Key make_key(std::int64_t error, std::uint64_t index) {
  return static_cast<Key>(std::clamp<std::int64_t>(error, 0, kLargestError)) << kIndexBits | index;
}

}  // namespace

std::vector<std::vector<std::size_t>> isometries(std::size_t r) {
  std::vector<std::vector<std::size_t>> all(kIsometries, std::vector<std::size_t>(r * r));
  for (std::size_t k = 0; k < kIsometries; ++k)
    for (std::size_t y = 0; y < r; ++y)
      for (std::size_t x = 0; x < r; ++x) {
        const std::size_t sx = k & 1 ? y : x, sy = k & 1 ? x : y;
        all[k][y * r + x] = (k & 4 ? r - 1 - sy : sy) * r + (k & 2 ? r - 1 - sx : sx);
      }
  return all;
}

void shrink(const Image& image, std::size_t domain, std::size_t r, std::vector<std::int16_t>& out) {
  const std::size_t in_a_row = image.width / (2 * r);
  const std::size_t x0 = domain % in_a_row * 2 * r, y0 = domain / in_a_row * 2 * r;
  out.resize(r * r);
  for (std::size_t y = 0; y < r; ++y)
    for (std::size_t x = 0; x < r; ++x) {
      const std::size_t px = x0 + 2 * x, py = y0 + 2 * y;
      const int sum = image.at(px, py) + image.at(px + 1, py) + image.at(px, py + 1) + image.at(px + 1, py + 1);
      out[y * r + x] = static_cast<std::int16_t>((sum + 2) / 4);
    }
}

Encoder::Encoder(const Image& image, std::size_t r, std::uint64_t flat, std::size_t first, std::size_t count)
    : image_(image),
      r_(r),
      n_(static_cast<std::int64_t>(r * r)),
      flat_(static_cast<std::int64_t>(flat)),
      first_(first),
      count_(count),
      sums_(count),
      inverse_(count),
      isometries_(isometries(r)) {
  domains_.reserve(count * r * r);
  std::vector<std::int16_t> small;
  for (std::size_t i = 0; i < count; ++i) {
    shrink(image, first + i, r, small);
    for (const std::int64_t d : small) sums_[i].sum += d, sums_[i].squares += d * d;
    const std::int64_t variance = n_ * sums_[i].squares - sums_[i].sum * sums_[i].sum;
    inverse_[i] = variance > 0 ? 1.0 / (static_cast<double>(n_) * static_cast<double>(variance)) : 0;
    domains_.insert(domains_.end(), small.begin(), small.end());
  }
}

Encoder::Range Encoder::range(std::size_t row, std::size_t column) const {
  Range found;
  const auto n = static_cast<std::size_t>(n_);
  found.pixels.resize(kIsometries * n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t pixel = image_.at(column * r_ + i % r_, row * r_ + i / r_);
    found.sums.sum += pixel;
    found.sums.squares += pixel * pixel;
    for (std::size_t k = 0; k < kIsometries; ++k)
      found.pixels[k * n + isometries_[k][i]] = static_cast<std::int16_t>(pixel);
  }
  return found;
}

bool Encoder::is_flat(const Sums& sums) const {
  return n_ * sums.squares - sums.sum * sums.sum <= flat_ * flat_ * n_ * n_;
}

Encoder::Fit Encoder::fit(const Sums& domain, const Sums& range, std::int64_t product) const {
  const std::int64_t variance = n_ * domain.squares - domain.sum * domain.sum;
  const std::int64_t covariance = n_ * product - domain.sum * range.sum;
  Fit f;
  if (variance > 0) f.scale = std::clamp<std::int64_t>(divide(kScale * covariance, variance), 1 - kScale, kScale - 1);
  f.offset = divide(kScale * range.sum - f.scale * domain.sum, kScale * n_);
  f.error = f.scale * f.scale * domain.squares + kUnit * (n_ * f.offset * f.offset + range.squares) +
            2 * kScale * f.scale * (f.offset * domain.sum - product) - 2 * kUnit * f.offset * range.sum;
  return f;
}

std::int64_t Encoder::product(std::size_t own_domain, const Range& range, std::size_t isometry) const {
  const auto n = static_cast<std::size_t>(n_);
  return dot(&domains_[own_domain * n], &range.pixels[isometry * n], n);
}

Key Encoder::search(std::size_t row, std::size_t column, Key so_far) const {
  const Range wanted = range(row, column);
  if (is_flat(wanted.sums)) return make_key(0, kFlat);
  // No s and o make E smaller than (n Σr² − (Σr)²)/n − (n Σdr − Σd Σr)²/(n variance of d). If that exceeds the best
  // so far by more than the error of doubles, s and o need not be computed.
  const double most =
      static_cast<double>(n_ * wanted.sums.squares - wanted.sums.sum * wanted.sums.sum) / static_cast<double>(n_);
  for (std::size_t i = 0; i < count_; ++i)
    for (std::size_t k = 0; k < kIsometries; ++k) {
      const std::int64_t both = product(i, wanted, k);
      const auto covariance = static_cast<double>(n_ * both - sums_[i].sum * wanted.sums.sum);
      const double least = kUnit * (most - covariance * covariance * inverse_[i]) - 1;
      if (least > static_cast<double>(so_far >> kIndexBits)) continue;
      so_far = std::min(so_far, make_key(fit(sums_[i], wanted.sums, both).error, (first_ + i) * kIsometries + k));
    }
  return so_far;
}

Transform Encoder::transform(std::size_t row, std::size_t column, Key key) const {
  const Range wanted = range(row, column);
  const std::uint64_t index = index_of(key);
  if (index == kFlat) return {.offset = static_cast<std::int16_t>(divide(wanted.sums.sum, n_))};
  const std::size_t domain = index / kIsometries, isometry = index % kIsometries;
  const Fit f = fit(sums_[domain - first_], wanted.sums, product(domain - first_, wanted, isometry));
  return {.domain = static_cast<std::uint32_t>(domain),
          .isometry = static_cast<std::uint8_t>(isometry),
          .scale = static_cast<std::int8_t>(f.scale),
          .offset = static_cast<std::int16_t>(f.offset)};
}

}  // namespace fractal
