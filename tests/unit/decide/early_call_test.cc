// An early call: when a balanced job's windows have grown and it isn't balanced any more. And how long windows grow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/decide/make_plan.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsSupersetOf;
using ::testing::Le;

constexpr Params kEarlyCalls{.heuristic = Heuristic::kAuto, .early_calls = true};

// Four ranks; from `flip` on, the last takes four times as long. Calls in [1, supersteps].
std::vector<std::uint64_t> calls(const Params& params, std::uint64_t flip, std::uint64_t recovers,
                                 std::uint64_t supersteps) {
  std::vector<std::uint64_t> made;
  State state;
  std::uint64_t t = 0;
  while (t < supersteps) {
    Window window(state, params, 4, 1);
    while (t < supersteps && !window.call_due()) {
      const bool slow = ++t >= flip && t < recovers;
      window.add({.superstep = {t},
                  .instructions = {1, 1, 1, 1},
                  .compute_seconds = {1, 1, 1, slow ? 4.0 : 1.0},
                  .recv_bytes = Grid<double>(4, 1),
                  .recv_seconds = Grid<double>(4, 1)});
    }
    if (!window.call_due()) break;
    made.push_back(t);
    World world({{.name = "a", .processors = 4, .slots = 1}}, {0, 1, 2, 3});
    state = std::move(window).close(make_plan(world.snapshot, window, params)->next);
  }
  return made;
}

TEST(EarlyCall, ComesWhenTheBalanceFlips) {
  EXPECT_THAT(calls(kEarlyCalls, 210, 1000, 240),
              ElementsAre(10, 20, 30, 40, 50, 60, 70, 80, 90, 101, 113, 127, 142, 159, 178, 200, 214, 224, 234))
      << "no window is longer than an eighth of the job's age, and after the early call α is α₀ again";
  Params automig = kEarlyCalls;
  automig.early_calls = false;
  automig.heuristic = Heuristic::kAutoMig;
  EXPECT_THAT(calls(automig, 200, 1000, 320), ElementsAre(10, 30, 70, 150, 310));
}

TEST(EarlyCall, IsNotMadeForASpike) {
  EXPECT_THAT(calls(kEarlyCalls, 210, 214, 320), IsSupersetOf({200, 225, 253, 284, 319}))
      << "four supersteps are no flip";
  EXPECT_THAT(calls(kEarlyCalls, 210, 214, 320), Each(AnyOf(Le(200u), Ge(225u))));
}

// What made the wave that was taken back is still there.
TEST(EarlyCall, IsNotMadeWhileAWaveThatWasTakenBackCoolsDown) {
  Window window({.cadence = {.alpha = 40, .cooling = true}}, kEarlyCalls, 2, 1);
  std::uint64_t t = 0;
  const auto add = [&](int supersteps, double seconds) {
    for (int n = 0; n < supersteps; ++n)
      window.add({.superstep = {++t},
                  .instructions = {1, 1},
                  .compute_seconds = {1, seconds},
                  .recv_bytes = Grid<double>(2, 1),
                  .recv_seconds = Grid<double>(2, 1)});
  };
  add(20, 9);
  EXPECT_FALSE(window.call_due());
  add(1, 1);
  add(5, 9);
  EXPECT_TRUE(window.call_due()) << "it was balanced meanwhile";
}

// However the balance changes, calls are at most as many as α₀ alone would make, and the windows' growth at most that.
TEST(EarlyCall, IsBounded) {
  for (const std::uint64_t period : {6u, 11u, 25u, 60u}) {
    std::uint64_t made = 0;
    State state;
    Window window(state, kEarlyCalls, 2, 1);
    for (std::uint64_t t = 1; t <= 3000; ++t) {
      const bool slow = t / period % 2 == 1;
      window.add({.superstep = {t},
                  .instructions = {1, 1},
                  .compute_seconds = {1, slow ? 9.0 : 1.0},
                  .recv_bytes = Grid<double>(2, 1),
                  .recv_seconds = Grid<double>(2, 1)});
      if (!window.call_due()) continue;
      ++made;
      World world({{.name = "a", .processors = 2, .slots = 1}}, {0, 1});
      const Cadence next = make_plan(world.snapshot, window, kEarlyCalls)->next;
      EXPECT_GE(next.alpha, kEarlyCalls.alpha0);
      state = std::move(window).close(next);
      window = Window(state, kEarlyCalls, 2, 1);
    }
    EXPECT_LE(made, 2 * 3000 / kEarlyCalls.alpha0) << period;
  }
}

}  // namespace
}  // namespace bsp::decide
