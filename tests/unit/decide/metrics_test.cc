#include "operator/decide/model/metrics.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "operator/decide/model/window.h"

namespace bsp::decide {
namespace {

// One rank, one Set.
MeasuredSuperstep measured(std::uint64_t t, double I, double CT, double B, double BT) {
  return {.superstep = Superstep{t},
          .instructions = {I},
          .compute_seconds = {CT},
          .recv_bytes = Grid<double>(1, 1, B),
          .recv_seconds = Grid<double>(1, 1, BT)};
}

TEST(Aging, BeginsWithTheFirstMeasurementAndThenHalvesTheDistance) {
  Metrics m = open_metrics({}, {}, 1, 1);
  update(m, measured(1, 100, 8, 1000, 0.8), 3, {});
  EXPECT_DOUBLE_EQ(m.PI[0], 100);
  EXPECT_DOUBLE_EQ((m.BTP[0, 0]), 0.8);
  update(m, measured(2, 200, 16, 3000, 0.4), 3, {});
  EXPECT_DOUBLE_EQ(m.PI[0], 150);
  EXPECT_DOUBLE_EQ(m.CTP[0], 12);
  EXPECT_DOUBLE_EQ((m.PB[0, 0]), 2000);
  EXPECT_DOUBLE_EQ((m.BTP[0, 0]), 0.6);
  update(m, measured(3, 50, 4, 0, 0), 3, {});
  EXPECT_DOUBLE_EQ(m.PI[0], 100);
  EXPECT_DOUBLE_EQ(m.CTP[0], 8);
  EXPECT_DOUBLE_EQ((m.PB[0, 0]), 1000);
  EXPECT_DOUBLE_EQ((m.BTP[0, 0]), 0.3);
}

TEST(Aging, SumsTheWindowAndKeepsItsLastSuperstep) {
  Metrics m = open_metrics({}, {}, 1, 1);
  update(m, measured(1, 100, 1, 10, 1), 2, {});
  update(m, measured(2, 300, 1, 30, 1), 2, {});
  EXPECT_DOUBLE_EQ(m.I_window[0], 400);
  EXPECT_DOUBLE_EQ((m.B_window[0, 0]), 40);
  EXPECT_DOUBLE_EQ(m.last.instructions[0], 300);
  EXPECT_EQ(m.supersteps, 2u);
}

TEST(Predictability, StepsByOneOverAlphaAndStaysWithinZeroAndOne) {
  const Params params{.delta = 0.1, .beta = 0.1};
  Metrics m = open_metrics({}, {}, 1, 1);
  update(m, measured(1, 100, 1, 0, 0), 4, params);  // X'_k = X_k: as predicted, but 1 is the most
  EXPECT_DOUBLE_EQ(m.P_comp[0], 1);
  update(m, measured(2, 200, 1, 0, 0), 4, params);  // PI 150, tolerated from 180
  EXPECT_DOUBLE_EQ(m.P_comp[0], 0.75);
  update(m, measured(3, 155, 1, 0, 0), 4, params);  // PI 152.5, tolerated from 139.5 to 170.5
  EXPECT_DOUBLE_EQ(m.P_comp[0], 1);
  for (std::uint64_t t = 4; t < 12; ++t) update(m, measured(t, t % 2 == 0 ? 1e6 : 1, 1, 0, 0), 4, params);
  EXPECT_DOUBLE_EQ(m.P_comp[0], 0);
  EXPECT_DOUBLE_EQ((m.P_comm[0, 0]), 1) << "nothing received is nothing mispredicted";
}

TEST(Predictability, TheToleranceIsAroundTheMeasuredValueBordersIncluded) {
  // PI = 150 after 100 and 200: 200·(1−0.25) = 150.
  for (const auto& [delta, P] : {std::pair{0.25, 1.0}, {0.24, 0.5}}) {
    Metrics m = open_metrics({}, {}, 1, 1);
    update(m, measured(1, 100, 1, 0, 0), 2, {.delta = delta});
    update(m, measured(2, 200, 1, 0, 0), 2, {.delta = delta});
    EXPECT_DOUBLE_EQ(m.P_comp[0], P) << delta;
  }
}

TEST(Predictability, BytesHaveToleranceBetaOfTheirOwn) {
  Metrics m = open_metrics({}, {}, 1, 1);
  const Params params{.delta = 10, .beta = 0.01};
  update(m, measured(1, 100, 1, 100, 1), 5, params);
  update(m, measured(2, 200, 1, 200, 1), 5, params);
  EXPECT_DOUBLE_EQ(m.P_comp[0], 1);
  EXPECT_DOUBLE_EQ((m.P_comm[0, 0]), 0.8);
}

TEST(State, PersistsPOverWindowsAndRestartsTheAging) {
  const Params params{.alpha0 = 2, .delta = 0.1, .beta = 0.1};
  Window first({}, params, 1, 1);
  first.add(measured(1, 100, 1, 100, 1));
  first.add(measured(2, 200, 1, 200, 1));
  ASSERT_TRUE(first.call_due());
  const State state = std::move(first).close({.k = Superstep{3}, .alpha = 2, .d = 0.5});
  EXPECT_DOUBLE_EQ(state.P_comp[0], 0.5);
  EXPECT_DOUBLE_EQ((state.P_comm[0, 0]), 0.5);

  Window second(state, params, 1, 1);
  EXPECT_DOUBLE_EQ(second.metrics().P_comp[0], 0.5);
  second.add(measured(3, 40, 1, 40, 1));
  EXPECT_DOUBLE_EQ(second.metrics().PI[0], 40);
  EXPECT_DOUBLE_EQ(second.metrics().P_comp[0], 1);
}

TEST(State, ASetThatIsNewToTheStateStartsAtOne) {
  State state{.P_comp = {0.5}, .P_comm = {Grid<double>(1, 1, 0.25), 1}};
  const Window window(state, {}, 1, 2);
  EXPECT_DOUBLE_EQ((window.metrics().P_comm[0, 0]), 0.25);
  EXPECT_DOUBLE_EQ((window.metrics().P_comm[0, 1]), 1);
}

TEST(State, ARestartedOperatorThatAddsTheWindowAgainGoesOnAsIfNothingHadHappened) {
  const Params params{.alpha0 = 3};
  State state{.cadence = {.k = Superstep{7}, .alpha = 3, .alpha_next = 3, .d = 0.75, .gamma = 4}};
  const auto run = [&](State from) {
    Window window(std::move(from), params, 1, 1);
    for (std::uint64_t t = 7; t <= 9; ++t) {
      const double now = static_cast<double>(t);
      window.add(measured(t, now * 100, now, now * 10, now));
    }
    return std::move(window).close({});
  };
  EXPECT_EQ(run(state), run(State(state)));
  Window half(state, params, 1, 1);
  half.add(measured(7, 700, 7, 70, 7));
  EXPECT_FALSE(half.call_due());
  EXPECT_EQ(half.cadence().gamma, 4u);
  EXPECT_DOUBLE_EQ(half.cadence().d, 0.75);
}

// In powers of two, as nothing is rounded then.
TEST(Window, RescaledIsOneOfTheOtherUnit) {
  const Params params{.alpha0 = 4};
  Window half(State{}, params, 1, 1), whole(State{}, params, 1, 1);
  for (std::uint64_t t = 1; t <= 3; ++t) {
    half.add(measured(t, 100.0 * t, t, 10, 1));
    whole.add(measured(t, 200.0 * t, t, 10, 1));
  }
  half.rescale(std::vector<double>{2});
  const auto same = [&] {
    const Metrics &a = half.metrics(), &b = whole.metrics();
    return std::tie(a.PI, a.CTP, a.P_comp, a.I_window, a.last.instructions, a.I_recent) ==
           std::tie(b.PI, b.CTP, b.P_comp, b.I_window, b.last.instructions, b.I_recent);
  };
  EXPECT_TRUE(same());
  for (Window* window : {&half, &whole}) window->add(measured(4, 700, 4, 10, 1));
  EXPECT_TRUE(same()) << "and goes on in it";
}

}  // namespace
}  // namespace bsp::decide
