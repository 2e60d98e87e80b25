// Ranks whose instructions take unlike times: the whole way from what was measured to the moves and what they gain.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "tests/unit/observe/operator_loop.h"
#include "tests/unit/observe/ring_on.h"

namespace bsp::observe {
namespace {

constexpr std::uint64_t kUnlikeSeed = 20261127;

// One rank has more to do than the others, and fewer instructions a second.
decide::LoopRun run_with_an_unlike_rank(decide::LoopJob& job, double longer) {
  job.work[3] *= longer;
  OperatorLoop loop = automatic();
  loop.cycles.assign(job.work.size(), 1);
  loop.cycles[3] = longer;
  return run_as_operator(job, loop, kUnlikeSeed);
}

// Nothing helps, so one move is what it takes to know.
TEST(UnlikeRanks, OneIsNotSentFromNodeToNode) {
  for (const double longer : {1.15, 1.3, 1.5, 2.0}) {
    decide::LoopJob job = ring_on({{"a", 12, 1e9}}, 8, 4000);
    const decide::LoopRun run = run_with_an_unlike_rank(job, longer);
    EXPECT_LE(run.moves, 3u) << longer;  // up to 74 if it is taken for a slow node
    EXPECT_LE(run.makespan, job.seconds_without_moves() * 1.001) << longer;
  }
}

TEST(UnlikeRanks, OneFindsTheFasterPool) {
  for (const double longer : {1.3, 1.5, 2.0}) {
    decide::LoopJob job = ring_on({{"a", 10, 1e9}, {"b", 4, 1.2e9}}, 8, 4000);
    const decide::LoopRun run = run_with_an_unlike_rank(job, longer);
    EXPECT_LE(run.moves, 6u) << longer;  // 17
    EXPECT_LE(run.makespan, job.seconds_without_moves() / 1.2 * 1.02) << longer;
  }
}

struct Outcome {
  double gain = 0, worst = 0;  // of the run without moves; the latter is longer by
  std::uint64_t moves = 0;
};

// Random platforms with half of the slots free. Instructions of a rank take up to exp(ranks) times as long as others or a part of it,
// nodes have as much more or less than their Set's speed.
Outcome run_random(double ranks, double nodes) {
  std::mt19937_64 random(kUnlikeSeed);
  Outcome out;
  double ln = 0;
  constexpr int kWorlds = 20;
  for (std::uint64_t w = 0; w < kWorlds; ++w) {
    decide::LoopJob job = decide::random_loop_job(random, {.most_ranks = 32, .crowded = false});
    const auto drawn = [&random](double spread) {
      return std::exp(std::uniform_real_distribution(-spread, spread)(random));
    };
    OperatorLoop loop = automatic();
    for (std::size_t i = 0; i < job.work.size(); ++i) loop.cycles.push_back(drawn(ranks));
    for (decide::Processor& p : job.start.platform.processors) p.cpu *= drawn(nodes);
    const decide::LoopRun run = run_as_operator(job, loop, kUnlikeSeed + w);
    const double longer = run.makespan / job.seconds_without_moves();
    ln += std::log(longer) / kWorlds;
    out.worst = std::max(out.worst, longer - 1);
    out.moves += run.moves;
  }
  out.gain = 1 - std::exp(ln);
  std::printf("ranks within %.0f %%, nodes within %.0f: gain %.1f %%, worst %.1f, %llu moves\n", 100 * ranks,
              100 * nodes, 100 * out.gain, 100 * out.worst, static_cast<unsigned long long>(out.moves));
  return out;
}

TEST(UnlikeRanks, AreDecidedOnNearlyAsWell) {
  const Outcome alike = run_random(0, 0), unlike = run_random(0.35, 0);
  EXPECT_GE(unlike.gain, 0.9 * alike.gain);
  EXPECT_LE(unlike.worst, 0.02);
  EXPECT_LE(unlike.moves, 3 * alike.moves);  // 4 to 5 times as many if they are taken for slow nodes
}

TEST(UnlikeRanks, UnlikeNodesAreStillSeen) {
  const Outcome alike = run_random(0, 0), unlike = run_random(0, 0.35);
  EXPECT_GE(unlike.gain, alike.gain + 0.05);
}

}  // namespace
}  // namespace bsp::observe
