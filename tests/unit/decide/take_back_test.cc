// TakeBack over whole runs: waves that made the superstep longer are undone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/decide/auto/take_back.h"
#include "tests/unit/decide/auto_job.h"
#include "tests/unit/decide/random_job.h"

namespace bsp::decide {
namespace {

// "fast" is said to be twice as fast, and is half as fast. Nothing tells the model so but the supersteps.
LoopJob wrongly_rated(std::uint64_t supersteps) {
  LoopJob job = one_rank(supersteps);
  job.pace = [](std::uint64_t, std::uint32_t p) { return p == 1 ? 0.25 : 1; };
  return job;
}

TEST(TakeBack, UndoesAWaveOnceThatMadeSuperstepsLonger) {
  const LoopRun run = run_loop(wrongly_rated(2000), as_a_job_runs(), 0.05, 1);
  EXPECT_EQ(run.moves, 2u);
  EXPECT_EQ(run.taken_back, 1u);
  EXPECT_EQ(run.returns, 0u);
  EXPECT_EQ(run.on[0], ProcessorId{0});
  ASSERT_EQ(run.moved_at.size(), 2u);
  EXPECT_EQ(run.moved_at[1], run.moved_at[0] + TakeBack::kMeasured);
}

// Each of three nodes is what the first one was.
TEST(TakeBack, WaitsAsLongAsTheJobIsOldFromTheSecondOneOn) {
  LoopJob job = wrongly_rated(4000);
  for (const char* name : {"fast-1", "fast-2"}) {
    job.start.platform.processors.push_back(job.start.platform.processors[1]);
    job.start.platform.processors.back().name = name;
  }
  job.pace = [](std::uint64_t, std::uint32_t p) { return p >= 1 ? 0.25 : 1; };
  const Params params = as_a_job_runs();
  const LoopRun run = run_loop(job, params, 0.05, 1);
  EXPECT_EQ(run.taken_back, 3u);
  ASSERT_EQ(run.moved_at.size(), 6u);
  EXPECT_EQ(run.moved_at[2], run.moved_at[1] + TakeBack::kCooldown * params.alpha0);
  EXPECT_GE(run.moved_at[4], 2 * run.moved_at[3]);
}

// However long the windows have become by then.
TEST(TakeBack, DoesNotWaitForALongWindow) {
  LoopJob job = wrongly_rated(2000);
  job.start.platform.Mig = Grid<double>(1, 2, 55);
  for (const std::uint64_t expected : {std::uint64_t{0}, job.supersteps}) {
    Params params = as_a_job_runs();
    params.expected_supersteps = expected;
    const LoopRun run = run_loop(job, params, 0.05, 1);
    EXPECT_EQ(run.taken_back, 1u);
    ASSERT_EQ(run.moved_at.size(), 2u);
    EXPECT_EQ(run.moved_at[1], run.moved_at[0] + TakeBack::kMeasured);
  }
}

TEST(TakeBack, DoesNotBlameTheMovesForMoreWork) {
  LoopJob job = one_rank(2000);
  std::uint64_t moved = run_loop(job, as_a_job_runs(), 0.05, 1).moved_at.at(0);
  job.drift = [moved](std::uint64_t t, std::uint32_t) { return t > moved ? 3 : 1; };
  const LoopRun run = run_loop(job, as_a_job_runs(), 0.05, 1);
  EXPECT_EQ(run.moves, 1u);
  EXPECT_EQ(run.taken_back, 0u);
}

TEST(TakeBack, IsNotMadeForNoise) {
  std::mt19937_64 random(kAutoSeed);
  for (int w = 0; w < 20; ++w) {
    const LoopJob job = random_loop_job(random, {.least_ranks = 4, .most_ranks = 16, .most_steps = 300});
    const LoopRun run = run_loop(job, as_a_job_runs(), 0.2, kAutoSeed + w);
    for (std::size_t n = 0; n < run.taken_back_at.size(); ++n) {
      const auto wave = static_cast<std::size_t>(run.taken_back_at[n]);
      EXPECT_GT(run.superstep_seconds[wave], run.superstep_seconds[wave - 1] * 0.99) << w << ": it was no longer";
    }
  }
}

}  // namespace
}  // namespace bsp::decide
