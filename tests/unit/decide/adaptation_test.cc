#include "operator/decide/model/adaptation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace bsp::decide {
namespace {

using ::testing::ElementsAre;

constexpr Balance kEven{.slowest = 1, .fastest = 1, .mean = 1, .computed = 4};
constexpr Balance kUneven{.slowest = 2, .fastest = 0.5, .mean = 1, .computed = 4};

// The supersteps after which calls are made, none of them with a migration.
std::vector<std::uint64_t> calls(std::uint64_t alpha0, const Balance& balance, std::uint64_t supersteps) {
  const Params params{.alpha0 = alpha0};
  Cadence cadence = open_cadence({}, params);
  std::vector<std::uint64_t> calls;
  for (std::uint64_t t = 1; t <= supersteps; ++t) {
    adapt_alpha(cadence, balance, params);
    if (!call_due(cadence, Superstep{t}, t - cadence.k.value + 1, params)) continue;
    calls.push_back(t);
    cadence = open_cadence(next_cadence(cadence, Superstep{t}, false, params), params);
  }
  return calls;
}

TEST(Alpha, CallsOfABalancedJobAreThoseThatThePapersPrint) {
  EXPECT_THAT(calls(2, kEven, 254), ElementsAre(2, 6, 14, 30, 62, 126, 254));
  EXPECT_THAT(calls(4, kEven, 200), ElementsAre(4, 12, 28, 60, 124));
  EXPECT_THAT(calls(8, kEven, 100), ElementsAre(8, 24, 56));
  EXPECT_THAT(calls(16, kEven, 200), ElementsAre(16, 48, 112));
}

TEST(Alpha, DoublesFromTenToTwentyInTenBalancedSupersteps) {
  const Params params{.alpha0 = 10};
  Cadence cadence = open_cadence({}, params);
  for (int t = 0; t < 10; ++t) adapt_alpha(cadence, kEven, params);
  EXPECT_EQ(cadence.alpha_next, 20u);
  EXPECT_EQ(cadence.alpha, 10u) << "the window under way keeps its length";
}

TEST(Alpha, NeverFallsBelowItsStart) { EXPECT_THAT(calls(4, kUneven, 16), ElementsAre(4, 8, 12, 16)); }

TEST(Alpha, FallsByOneForEachUnbalancedSuperstep) {
  const Params params{.alpha0 = 4};
  Cadence cadence = open_cadence({.alpha = 8, .d = 0.5}, params);
  for (int t = 0; t < 3; ++t) adapt_alpha(cadence, kUneven, params);
  EXPECT_EQ(cadence.alpha_next, 5u);
}

TEST(Alpha, ALostSuperstepDelaysTheCallToTheNextOne) {
  const Cadence cadence{.k = Superstep{5}, .alpha = 4};
  EXPECT_FALSE(call_due(cadence, Superstep{7}, 3, {}));
  EXPECT_TRUE(call_due(cadence, Superstep{8}, 4, {}));
  EXPECT_TRUE(call_due(cadence, Superstep{9}, 4, {}));
  EXPECT_TRUE(call_due(cadence, Superstep{8}, 1, {})) << "the published heuristics compare no windows";
}

TEST(Alpha, AutoWaitsForAsManyMeasuredSuperstepsAsItComparesWindowsBy) {
  const Params params{.early_calls = true};
  const Cadence cadence{.k = Superstep{5}, .alpha = 4}, brief{.k = Superstep{5}, .alpha = 2};
  EXPECT_FALSE(call_due(cadence, Superstep{90}, 3, params));
  EXPECT_TRUE(call_due(cadence, Superstep{91}, 4, params));
  EXPECT_FALSE(call_due(cadence, Superstep{7}, 4, params));
  EXPECT_FALSE(call_due(brief, Superstep{90}, 1, params));
  EXPECT_TRUE(call_due(brief, Superstep{91}, 2, params)) << "between two waves";
}

// D of the windows that follow calls at which moves were made (true) or not.
std::vector<double> ds(const Params& params, std::initializer_list<bool> migrated) {
  Cadence cadence = open_cadence({}, params);
  std::vector<double> ds;
  for (bool m : migrated) {
    cadence = next_cadence(cadence, cadence.k, m, params);
    ds.push_back(cadence.d);
  }
  return ds;
}

TEST(D, GrowsByHalfAtTheOmegathCallWithoutMigrationAndStaysBelowOne) {
  EXPECT_THAT(ds({.d0 = 0.5, .omega = 3}, {false, false, false, false, false}),
              ElementsAre(0.5, 0.5, 0.75, 0.75, 0.75));
}

TEST(D, FallsByHalfAtAMigrationButNeverBelowItsStart) {
  EXPECT_THAT(ds({.d0 = 0.5, .omega = 1}, {false, true, true}), ElementsAre(0.75, 0.5, 0.5));
  EXPECT_THAT(ds({.d0 = 0.25, .omega = 1}, {false, false, false, true, true}),
              ElementsAre(0.375, 0.5625, 0.84375, 0.421875, 0.25));
}

TEST(D, AMigrationStartsTheCountOfCallsAgain) {
  EXPECT_THAT(ds({.d0 = 0.5, .omega = 2}, {false, true, false, false}), ElementsAre(0.5, 0.5, 0.5, 0.75));
}

MeasuredSuperstep measured(std::vector<double> seconds, double shared, std::vector<double> instructions) {
  return {.superstep = Superstep{1},
          .instructions = std::move(instructions),
          .compute_seconds = std::move(seconds),
          .communication_seconds = shared};
}

TEST(Balanced, ComparesBothEndsWithTheMeanStrictly) {
  const auto at = [](double slowest, double fastest) {
    return Balance{.slowest = slowest, .fastest = fastest, .mean = 1, .computed = 2};
  };
  EXPECT_TRUE(balanced(at(1.49, 0.51), 0.5));
  EXPECT_FALSE(balanced(at(1.5, 0.51), 0.5));
  EXPECT_FALSE(balanced(at(1.49, 0.5), 0.5));
}

TEST(Balanced, TheSharedPhaseCountsForEachProcess) {
  // 1 s and 3 s are far apart; with 10 s of communication for both they are not.
  EXPECT_FALSE(balanced(balance_of(measured({1, 3}, 0, {1, 1})), 0.5));
  EXPECT_TRUE(balanced(balance_of(measured({1, 3}, 10, {1, 1})), 0.5));
}

TEST(Balanced, OnlyProcessesThatComputedCount) {
  const Balance balance = balance_of(measured({1, 0, 1}, 0.5, {7, 0, 7}));
  EXPECT_EQ(balance.computed, 2u);
  EXPECT_DOUBLE_EQ(balance.mean, 1.5);
  EXPECT_TRUE(balanced(balance, 0.5));
  EXPECT_FALSE(balanced(balance_of(measured({0, 0}, 1, {0, 0})), 0.5));
}

TEST(Balanced, TheSharedPhaseIsWhatTheLastToArriveSpendsInIt) {
  EXPECT_DOUBLE_EQ(shared_phase_seconds(std::vector{0.9, 0.2, 0.5}), 0.2);
  EXPECT_DOUBLE_EQ(shared_phase_seconds({}), 0);
}

TEST(Balanced, ImbalanceIsHowMuchLongerTheSlowestTakes) {
  EXPECT_DOUBLE_EQ(balance_of(measured({1, 3}, 0, {1, 1})).imbalance(), 0.5);
  EXPECT_DOUBLE_EQ(Balance{}.imbalance(), 0);
}

// A million histories of 8 supersteps with calls among them, balanced or not and migrating or not as it comes.
TEST(Adaptation, AlphaAndDStayInTheirRanges) {
  const std::uint64_t seed = 20261121;
  std::mt19937_64 random(seed);
  std::uint64_t calls_made = 0, alpha_most = 0;
  double d_most = 0;
  for (int history = 0; history < 1'000'000; ++history) {
    const std::uint64_t dice = random();
    const Params params{.alpha0 = 1 + dice % 3,
                        .d0 = 0.01 + static_cast<double>(dice >> 8 & 0xff) / 256 * 0.98,
                        .omega = 1 + (dice >> 16 & 3)};
    std::uint64_t balance = random(), migrations = random();
    Cadence cadence = open_cadence({}, params);
    for (std::uint64_t t = 1; t <= 8; ++t, balance >>= 1) {
      const Cadence before = cadence;
      adapt_alpha(cadence, (balance & 1) != 0 ? kEven : kUneven, params);
      const std::uint64_t step = cadence.alpha_next > before.alpha_next ? cadence.alpha_next - before.alpha_next
                                                                        : before.alpha_next - cadence.alpha_next;
      bool good = cadence.alpha_next >= params.alpha0 && step <= 1 && cadence.alpha == before.alpha;
      if (call_due(cadence, Superstep{t}, t - cadence.k.value + 1, params)) {
        good = good && t == cadence.k.value + cadence.alpha - 1;
        const bool migrated = (migrations & 1) != 0;
        migrations >>= 1;
        cadence = open_cadence(next_cadence(cadence, Superstep{t}, migrated, params), params);
        good = good && cadence.d >= params.d0 && cadence.d < 1 && cadence.k == Superstep{t + 1} &&
               cadence.alpha >= params.alpha0 && cadence.gamma == (migrated ? 0 : before.gamma + 1);
        ++calls_made;
      }
      ASSERT_TRUE(good) << "seed " << seed << ", history " << history << ", superstep " << t;
      alpha_most = std::max(alpha_most, cadence.alpha);
      d_most = std::max(d_most, cadence.d);
    }
  }
  EXPECT_GT(calls_made, 1'000'000u);
  EXPECT_GE(alpha_most, 6u) << "α₀ = 3 doubles";
  EXPECT_GT(d_most, 0.9);
}

}  // namespace
}  // namespace bsp::decide
