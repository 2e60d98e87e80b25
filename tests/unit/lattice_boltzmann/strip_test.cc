// The D2Q9 model: properties required by physics and arithmetic.
#include "apps/lattice_boltzmann/strip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lbm {
namespace {

void step(Strip& strip) {  // a strip that is its own neighbour
  std::vector<double> halo(strip.halo_size());
  strip.collide(1.0);
  strip.pack_right(halo);
  strip.unpack_left(halo);
  strip.pack_left(halo);
  strip.unpack_right(halo);
  strip.stream();
}

std::vector<double> field(const Strip& strip) {
  std::vector<double> all(strip.count() * strip.column_size());
  for (std::size_t x = 0; x < strip.count(); ++x)
    strip.copy_column(x, std::span(all).subspan(x * strip.column_size(), strip.column_size()));
  return all;
}

TEST(Strip, FluidAtRestStaysAtRest) {
  Strip strip({.width = 24, .height = 12, .acceleration = 0.0}, 0, 24);
  for (int i = 0; i < 50; ++i) step(strip);
  EXPECT_LT(strip.max_speed(), 1e-14);
}

TEST(Strip, MassStaysTheSame) {
  Strip strip({.width = 60, .height = 30, .acceleration = 1e-4}, 0, 60);
  const double before = strip.mass();
  for (int i = 0; i < 500; ++i) step(strip);
  EXPECT_GT(strip.max_speed(), 1e-3);
  EXPECT_NEAR(strip.mass(), before, 1e-9 * before);
}

// Plane Poiseuille flow: without a cylinder the steady profile is the parabola u(y) = g y (H - y) /
// (2 nu), with the walls half a cell outside the outermost cells and nu = (1/omega - 1/2) / 3; in
// the middle g H^2 / (8 nu).
TEST(Strip, ViscousFlowIsAParabola) {
  const Channel channel{.width = 4, .height = 15, .omega = 1.2, .acceleration = 1e-6, .cylinder = false};
  Strip strip(channel, 0, channel.width);
  for (int i = 0; i < 20000; ++i) step(strip);
  const double nu = (1.0 / channel.omega - 0.5) / 3.0;
  const double middle = channel.acceleration * 15 * 15 / (8.0 * nu);
  EXPECT_NEAR(strip.max_speed(), middle, 0.01 * middle);
}

TEST(Strip, WorkDoesNotChangeTheResult) {
  const Channel channel{.width = 30, .height = 15, .acceleration = 1e-4};
  Strip once(channel, 0, 30), often(channel, 0, 30);
  std::vector<double> halo(once.halo_size());
  for (int i = 0; i < 20; ++i) {
    step(once);
    often.collide(2.7);
    often.pack_right(halo);
    often.unpack_left(halo);
    often.pack_left(halo);
    often.unpack_right(halo);
    often.stream();
  }
  EXPECT_EQ(field(once), field(often));
}

TEST(Strip, TwoStripsAreOneChannel) {
  const Channel channel{.width = 31, .height = 15, .acceleration = 1e-4};
  Strip whole(channel, 0, 31), left(channel, 0, 13), right(channel, 13, 18);
  std::vector<double> halo(whole.halo_size());
  for (int i = 0; i < 40; ++i) {
    step(whole);
    left.collide(1);
    right.collide(1);
    for (auto [from, to] : {std::pair{&left, &right}, {&right, &left}}) {
      from->pack_right(halo);
      to->unpack_left(halo);
      from->pack_left(halo);
      to->unpack_right(halo);
    }
    left.stream();
    right.stream();
  }
  std::vector<double> both = field(left);
  const std::vector<double> second = field(right);
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_EQ(field(whole), both);
}

}  // namespace
}  // namespace lbm
