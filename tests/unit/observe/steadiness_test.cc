#include "operator/observe/steadiness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>

namespace bsp::observe {
namespace {

constexpr int kNodes = 6;

// After supersteps of nodes with such speeds.
double noise_of(int supersteps, const std::function<double(int t, int node)>& speed) {
  Steadiness steadiness;
  for (int t = 0; t < supersteps; ++t) {
    for (int n = 0; n < kNodes; ++n) steadiness.add("node-" + std::to_string(n), 1, speed(t, n));
    steadiness.end_superstep();
  }
  return steadiness.noise();
}

TEST(Steadiness, ConstantSpeedsHaveNoNoiseHoweverDifferent) {
  EXPECT_NEAR(noise_of(100, [](int, int n) { return 1e9 * (n + 1); }), 0, 1e-9);
}

TEST(Steadiness, WhatAllHaveInCommonIsNoNoise) {
  EXPECT_NEAR(noise_of(100, [](int t, int n) { return 1e9 * (n + 1) * (1 + t / 10 % 3); }), 0, 1e-9);
}

TEST(Steadiness, WhatAveragesOutIsNoNoise) {
  std::mt19937_64 random(20261128);
  std::uniform_real_distribution<double> chance(0.8, 1.2);
  EXPECT_LT(noise_of(400, [&](int, int) { return chance(random); }), 0.02) << "of ±20 % in each superstep";
}

TEST(Steadiness, WhatLastsIsNoise) {
  std::mt19937_64 random(20261128);
  std::uniform_real_distribution<double> chance;
  double speed[kNodes] = {1, 1, 1, 1, 1, 1};
  const double noise = noise_of(800, [&](int, int n) {
    if (chance(random) < (speed[n] < 1 ? 1.0 / 8 : 1.0 / 24)) speed[n] = speed[n] < 1 ? 1 : 0.25;
    return speed[n];
  });
  // A quarter of the time at a quarter of the speed, for 8 supersteps in the mean: ln 4 · √(¼ · ¾) is a superstep's.
  EXPECT_GT(noise, 0.2);
  EXPECT_LT(noise, std::log(4) * std::sqrt(0.25 * 0.75));
}

TEST(Steadiness, ANodeThatHasChangedForGoodIsNoNoise) {
  EXPECT_NEAR(noise_of(100, [](int t, int n) { return n == 2 && t > 50 ? 0.3e9 : 1e9; }), 0, 1e-9);
}

TEST(Steadiness, WhatChangesWithTheRanksOfANodeIsNoNoise) {
  Steadiness steadiness;
  for (int t = 0; t < 100; ++t) {
    for (int n = 0; n < kNodes; ++n) {
      const std::size_t ranks = 1 + (t / 20 + n) % 2;
      steadiness.add("node-" + std::to_string(n), ranks, 1e9 / static_cast<double>(ranks));
    }
    steadiness.end_superstep();
  }
  EXPECT_NEAR(steadiness.noise(), 0, 1e-9);
}

TEST(Steadiness, OfTwoNodesNothingIsKnown) {
  Steadiness steadiness;
  for (int t = 0; t < 100; ++t) {
    steadiness.add("a", 1, 1 + t / 8 % 2);
    steadiness.add("b", 1, 1);
    steadiness.end_superstep();
  }
  EXPECT_EQ(steadiness.noise(), 0);
}

TEST(Steadiness, AnotherUnitBeginsAnew) {
  Steadiness steadiness;
  for (int t = 0; t < 100; ++t) {
    if (t == 50) steadiness.restart();
    for (int n = 0; n < kNodes; ++n) steadiness.add(std::to_string(n), 1, n < 3 && t >= 50 ? 2e9 : 1e9);
    steadiness.end_superstep();
  }
  EXPECT_NEAR(steadiness.noise(), 0, 1e-9);
}

}  // namespace
}  // namespace bsp::observe
