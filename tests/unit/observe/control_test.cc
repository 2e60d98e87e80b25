// What a wave has changed, beside what the machine did meanwhile.
#include "operator/observe/control.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace bsp::observe {
namespace {

using Pairs = std::vector<std::pair<double, double>>;

TEST(Control, IsTheMedianOfThoseThatStayed) {
  const Control c = control_of(Pairs{{1, 1.5}, {2, 3.02}, {1, 1.49}, {1, 9}}, 0.001);
  EXPECT_NEAR(c.ratio, 1.5, 0.02);
  EXPECT_EQ(c.ranks, 4u);
  EXPECT_LT(c.error, 0.03) << "one that is far off says nothing of the others";
}

TEST(Control, NobodyStayedOrCanBeCompared) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  for (const Pairs& pairs : {Pairs{}, Pairs{{0, 1}, {1, 0}, {-1, 1}, {1, kNaN}, {kNaN, 1}, {1, kInf}}}) {
    const Control c = control_of(pairs, 0.1);
    EXPECT_EQ(c.ratio, 1);
    EXPECT_EQ(c.ranks, 0u);
    const Gain gain = gain_of(2, 0.01, 1.5, 0.01, c);
    EXPECT_DOUBLE_EQ(gain.seconds, 0.5);
    EXPECT_TRUE(gain.is_noise()) << "the machine may have less to do than before";
    EXPECT_FALSE(gain_of(2, 0.01, 0.5, 0.01, c).is_noise());
  }
}

TEST(Control, FewSayLittle) {
  EXPECT_EQ(control_of(Pairs{{1, 1}, {1, 1}}, 0).error, Control::kFewSpread);
  EXPECT_EQ(control_of(Pairs{{1, 1}, {1, 1}, {1, 1}}, 0).error, 0);
  for (const Pairs& pairs : {Pairs{{1, 1.5}}, Pairs{{1, 1.5}, {1, 1.5}}}) {
    const Gain gain = gain_of(1, 0, 1, 0, control_of(pairs, 0));
    EXPECT_DOUBLE_EQ(gain.seconds, 0.5);
    EXPECT_GT(gain.error, 0.5) << "what they saw may be their own";
  }
}

TEST(Control, AGainOfNothingIsNoise) {
  EXPECT_TRUE(gain_of(1, 0, 1, 0, {}).is_noise());
  EXPECT_TRUE(gain_of(1, 0.1, 0.9, 0.1, {}).is_noise());
  EXPECT_TRUE(gain_of(std::nan(""), 0, 1, 0, {}).is_noise());
}

// Two equal jobs of six ranks, one of which moves and computes 0.4 s less since. The machine of the other gets slower by half after the
// wave, by 5 % more or less for each rank.
TEST(Control, AMachineThatIsSlowerByHalfAfterTheWaveChangesNoGainByMoreThanItsError) {
  std::mt19937_64 random(20261129);
  const auto around = [&](double x, double by) { return x * std::normal_distribution(1.0, by)(random); };
  int apart = 0, plainly_wrong = 0;
  constexpr int kPairs = 400, kSupersteps = 10;
  for (int n = 0; n < kPairs; ++n) {
    Gain told[2];
    for (const bool loaded : {false, true}) {
      Pairs stayed(5);
      double before = 0, after = 0;
      for (auto& [was, is] : stayed) {
        const double load = loaded ? around(1.5, 0.05) : around(1, 0.01);
        for (int t = 0; t < kSupersteps; ++t)
          was += around(1, 0.02) / kSupersteps, is += around(load, 0.02) / kSupersteps;
      }
      const double load = loaded ? around(1.5, 0.05) : around(1, 0.01);
      for (int t = 0; t < kSupersteps; ++t)
        before += around(1.4, 0.02) / kSupersteps, after += around(1.0 * load, 0.02) / kSupersteps;
      const double of_mean = 0.02 / std::sqrt(kSupersteps);
      const Control c = control_of(stayed, of_mean * std::sqrt(2));
      const Gain gain = gain_of(before, before * of_mean, after, after * of_mean, c);
      // In seconds of the machine as it was.
      told[loaded] = {gain.seconds / c.ratio, gain.error / c.ratio};
      plainly_wrong += loaded && before - after < 0;
    }
    apart += std::abs(told[1].seconds - 0.4) > told[1].error;
    apart += std::abs(told[0].seconds - 0.4) > told[0].error;
  }
  EXPECT_GT(plainly_wrong, kPairs * 3 / 4) << "without the control they would be told as losses";
  EXPECT_LE(apart, 2 * kPairs / 10);
}

}  // namespace
}  // namespace bsp::observe
