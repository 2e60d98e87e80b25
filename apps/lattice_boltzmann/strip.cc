#include "apps/lattice_boltzmann/strip.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace lbm {
namespace {

//                            rest   E   N   W   S  NE  NW  SW  SE
constexpr std::array<int, kQ> kCx{0, 1, 0, -1, 0, 1, -1, -1, 1};
constexpr std::array<int, kQ> kCy{0, 0, 1, 0, -1, 1, 1, -1, -1};
constexpr std::array<int, kQ> kOpposite{0, 3, 4, 1, 2, 7, 8, 5, 6};
constexpr std::array<double, kQ> kWeight{4.0 / 9,  1.0 / 9,  1.0 / 9,  1.0 / 9, 1.0 / 9,
                                         1.0 / 36, 1.0 / 36, 1.0 / 36, 1.0 / 36};
constexpr std::array<int, 3> kRightward{1, 5, 8};
constexpr std::array<int, 3> kLeftward{3, 6, 7};

// One column, cell by cell; `stride` is the distance from one population's array to the next. Never inlined, so that
// repeating it is real work that the compiler can't drop.
[[gnu::noinline]] void collide_column(const double* __restrict f, double* __restrict out, std::size_t stride,
                                      std::size_t height, double omega, double g) {
  for (std::size_t y = 0; y < height; ++y) {
    const double f0 = f[y], f1 = f[stride + y], f2 = f[2 * stride + y], f3 = f[3 * stride + y], f4 = f[4 * stride + y],
                 f5 = f[5 * stride + y], f6 = f[6 * stride + y], f7 = f[7 * stride + y], f8 = f[8 * stride + y];
    const double rho = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8;
    const double ux = (f1 + f5 + f8 - f3 - f6 - f7) / rho;
    const double uy = (f2 + f5 + f6 - f4 - f7 - f8) / rho;
    const double base = 1.0 - 1.5 * (ux * ux + uy * uy);
    const auto relaxed = [&](double fq, double w, double cx, double cy) {
      const double cu = cx * ux + cy * uy;
      return fq + omega * (w * rho * (base + 3.0 * cu + 4.5 * cu * cu) - fq) + 3.0 * w * cx * g;
    };
    out[y] = relaxed(f0, kWeight[0], 0, 0);
    out[stride + y] = relaxed(f1, kWeight[1], 1, 0);
    out[2 * stride + y] = relaxed(f2, kWeight[2], 0, 1);
    out[3 * stride + y] = relaxed(f3, kWeight[3], -1, 0);
    out[4 * stride + y] = relaxed(f4, kWeight[4], 0, -1);
    out[5 * stride + y] = relaxed(f5, kWeight[5], 1, 1);
    out[6 * stride + y] = relaxed(f6, kWeight[6], -1, 1);
    out[7 * stride + y] = relaxed(f7, kWeight[7], -1, -1);
    out[8 * stride + y] = relaxed(f8, kWeight[8], 1, -1);
  }
}

bool in_cylinder(const Channel& channel, std::size_t x, std::size_t y) {
  if (!channel.cylinder) return false;
  const double radius = static_cast<double>(channel.height) / 9.0;
  const double dx = static_cast<double>(x) - static_cast<double>(channel.width) / 4.0;
  // A little below the middle, so that the wake starts to oscillate.
  const double dy = static_cast<double>(y) - static_cast<double>(channel.height) / 2.0 + 0.7;
  return dx * dx + dy * dy <= radius * radius;
}

}  // namespace

Strip::Strip(const Channel& channel, std::size_t first, std::size_t count)
    : first_(first),
      count_(count),
      height_(channel.height),
      omega_(channel.omega),
      acceleration_(channel.acceleration),
      now_(kQ * (count + 2) * channel.height),
      after_(now_.size()),
      solid_((count + 2) * channel.height) {
  for (int q = 0; q < kQ; ++q)
    std::fill_n(now_.begin() + static_cast<std::ptrdiff_t>(at(q, 0, 0)), (count_ + 2) * height_,
                kWeight[static_cast<std::size_t>(q)]);
  after_ = now_;
  for (std::size_t column = 0; column < count_ + 2; ++column) {
    const std::size_t x = (first_ + column + channel.width - 1) % channel.width;
    for (std::size_t y = 0; y < height_; ++y) solid_[column * height_ + y] = in_cylinder(channel, x, y) ? 1 : 0;
  }
  // The populations that don't arrive from a fluid cell, computed once.
  for (std::size_t column = 1; column <= count_; ++column)
    for (std::size_t y = 0; y < height_; ++y)
      for (std::size_t q = 1; q < kQ; ++q) {
        const bool wall = (kCy[q] > 0 && y == 0) || (kCy[q] < 0 && y + 1 == height_);
        const std::size_t from_column = column - static_cast<std::size_t>(kCx[q]);
        const std::size_t from_y = y - static_cast<std::size_t>(kCy[q]);
        if (wall || solid_[column * height_ + y] || solid_[from_column * height_ + from_y])
          reflections_.push_back({at(static_cast<int>(q), column, y), at(kOpposite[q], column, y)});
      }
}

void Strip::collide(double work) {
  const std::size_t stride = (count_ + 2) * height_;
  for (; work > 0.0; work -= 1.0) {
    const auto columns = static_cast<std::size_t>(std::ceil(std::min(work, 1.0) * static_cast<double>(count_)));
    for (std::size_t column = 1; column <= columns; ++column) {
      const std::size_t start = at(0, column, 0);
      collide_column(&now_[start], &after_[start], stride, height_, omega_, acceleration_);
    }
  }
}

void Strip::pack_right(std::span<double> halo) const {
  for (std::size_t i = 0; i < kRightward.size(); ++i)
    std::copy_n(&after_[at(kRightward[i], count_, 0)], height_, &halo[i * height_]);
}
void Strip::pack_left(std::span<double> halo) const {
  for (std::size_t i = 0; i < kLeftward.size(); ++i)
    std::copy_n(&after_[at(kLeftward[i], 1, 0)], height_, &halo[i * height_]);
}
void Strip::unpack_left(std::span<const double> halo) {
  for (std::size_t i = 0; i < kRightward.size(); ++i)
    std::copy_n(&halo[i * height_], height_, &after_[at(kRightward[i], 0, 0)]);
}
void Strip::unpack_right(std::span<const double> halo) {
  for (std::size_t i = 0; i < kLeftward.size(); ++i)
    std::copy_n(&halo[i * height_], height_, &after_[at(kLeftward[i], count_ + 1, 0)]);
}

void Strip::stream() {
  for (int q = 0; q < kQ; ++q) {
    const int cx = kCx[static_cast<std::size_t>(q)], cy = kCy[static_cast<std::size_t>(q)];
    const std::size_t from_y = cy < 0 ? 1 : 0, to_y = cy > 0 ? 1 : 0;
    const std::size_t cells = cy == 0 ? height_ : height_ - 1;
    for (std::size_t column = 1; column <= count_; ++column)
      std::copy_n(&after_[at(q, column - static_cast<std::size_t>(cx), from_y)], cells, &now_[at(q, column, to_y)]);
  }
  for (const auto& [to, from] : reflections_) now_[to] = after_[from];
}

double Strip::mass() const {
  double sum = 0;
  for (std::size_t column = 1; column <= count_; ++column)
    for (std::size_t y = 0; y < height_; ++y)
      if (!solid_[column * height_ + y])
        for (int q = 0; q < kQ; ++q) sum += now_[at(q, column, y)];
  return sum;
}

double Strip::max_speed() const {
  double fastest = 0;
  for (std::size_t column = 1; column <= count_; ++column)
    for (std::size_t y = 0; y < height_; ++y) {
      if (solid_[column * height_ + y]) continue;
      double rho = 0, mx = 0, my = 0;
      for (int q = 0; q < kQ; ++q) {
        const double f = now_[at(q, column, y)];
        rho += f;
        mx += f * kCx[static_cast<std::size_t>(q)];
        my += f * kCy[static_cast<std::size_t>(q)];
      }
      fastest = std::max(fastest, std::hypot(mx, my) / rho);
    }
  return fastest;
}

void Strip::copy_column(std::size_t column, std::span<double> out) const {
  for (int q = 0; q < kQ; ++q)
    std::copy_n(&now_[at(q, column + 1, 0)], height_, &out[static_cast<std::size_t>(q) * height_]);
}

}  // namespace lbm
