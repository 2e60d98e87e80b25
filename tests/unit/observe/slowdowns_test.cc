#include "operator/observe/slowdowns.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/observe/operator_loop.h"
#include "tests/unit/observe/ring_on.h"

namespace bsp::observe {
namespace {

constexpr std::uint64_t kSlowdownSeed = 20261127;

// Six ranks with equal work, times in ns.
struct TimedJob {
  std::vector<std::string> nodes{"a", "b", "c", "d", "e", "f"};
  std::vector<double> work = std::vector<double>(6, 1e9);
  Calibration calibration{};
  Slowdowns slowdowns{};

  void run(int supersteps) {
    for (int t = 0; t < supersteps; ++t) slowdowns.add(work, nodes, calibration);
  }
  std::vector<double> factors() {
    std::vector<double> out;
    for (std::size_t i = 0; i < nodes.size(); ++i) out.push_back(slowdowns.factor(i));
    return out;
  }
  // Rank 3 takes twice as long, and moves.
  void move_a_suspect(double work_there) {
    run(20);
    work[3] = 2e9;
    run(6);
    nodes[3] = "g", work[3] = work_there;
    run(20);
  }
};

const std::vector<double> kNoSuspect(6, 1.0);

TEST(Slowdowns, ASteadyRankThatTakesLongerIsASuspect) {
  TimedJob job;
  job.run(16);
  job.work[3] = 2e9;
  job.run(2);
  EXPECT_EQ(job.factors(), kNoSuspect);
  job.run(1);
  EXPECT_NEAR(job.slowdowns.factor(3), 0.5, 1e-6) << "its work is what it was";
  EXPECT_TRUE(job.slowdowns.suspects(3));
  job.run(100);
  EXPECT_NEAR(job.slowdowns.factor(3), 0.5, 1e-6);
  job.work.assign(6, 3e9), job.work[3] = 6e9;
  job.run(100);
  EXPECT_NEAR(job.slowdowns.factor(3), 0.5, 0.01) << "whatever the program does meanwhile";
  job.work[3] = 3e9;
  job.run(3);
  EXPECT_EQ(job.factors(), kNoSuspect) << "it has recovered";
}

TEST(Slowdowns, NoSuspectWithoutAHistory) {
  TimedJob job;
  job.run(15);
  job.work[3] = 2e9;
  job.run(50);
  EXPECT_EQ(job.factors(), kNoSuspect);
}

TEST(Slowdowns, WhatManyRanksHaveInCommonIsTheProgram) {
  for (const std::size_t many : {2u, 3u, 6u}) {
    TimedJob job;
    job.run(20);
    for (std::size_t i = 0; i < many; ++i) job.work[i] = 2e9;
    job.run(20);
    EXPECT_EQ(job.factors(), kNoSuspect) << many;
  }
}

TEST(Slowdowns, NeitherAPeakNorAnUnsteadyRankIsASuspect) {
  TimedJob job;
  for (int t = 0; t < 100; ++t) {
    job.work[2] = t % 7 < 2 ? 2e9 : 1e9;
    job.work[3] = t == 60 || t == 61 ? 5e9 : 1e9;
    job.run(1);
    EXPECT_EQ(job.factors(), kNoSuspect) << t;
  }
  job.work[2] = 1.5e9;
  job.run(10);
  EXPECT_EQ(job.factors(), kNoSuspect) << "it has taken as long before";
}

TEST(Slowdowns, OfTwoRanksNoneCanTell) {
  TimedJob job{.nodes = {"a", "b"}, .work = {1e9, 1e9}};
  job.run(20);
  job.work[1] = 2e9;
  job.run(20);
  EXPECT_EQ(job.slowdowns.factor(1), 1);
}

TEST(Slowdowns, AfterItsMoveARankIsNone) {
  for (const double there : {1e9, 2e9}) {
    TimedJob job;
    job.move_a_suspect(there);
    EXPECT_EQ(job.factors(), kNoSuspect);
  }
}

TEST(Slowdowns, AJobWhoseWorkChangesByItselfHasNone) {
  TimedJob job;
  job.move_a_suspect(2e9);
  job.run(20);
  job.nodes[3] = "d", job.work[3] = 1e9;
  job.move_a_suspect(2e9);
  job.run(20);
  job.work[4] = 2e9;
  job.run(20);
  EXPECT_EQ(job.factors(), kNoSuspect) << "two were none";
  TimedJob slow;
  for (int times = 0; times < 3; ++times) slow.nodes[3] = "d", slow.move_a_suspect(1e9);
  slow.work[4] = 2e9;
  slow.run(20);
  EXPECT_TRUE(slow.slowdowns.suspects(4)) << "three nodes were slow";
}

TEST(Slowdowns, GoOnInAnotherUnit) {
  TimedJob job;
  job.run(20);
  job.work[3] = 2e9;
  job.run(4);
  for (std::size_t i = 0; i < 6; ++i) job.slowdowns.rescale(i, 10), job.work[i] *= 10;
  job.run(4);
  EXPECT_NEAR(job.slowdowns.factor(3), 0.5, 1e-6);
  EXPECT_EQ(job.slowdowns.factor(4), 1);
}

// Supersteps before and after are compared in one unit.
TEST(Slowdowns, AreJudgedInTheUnitOfNow) {
  TimedJob job;
  for (const int rank : {3, 4}) {
    job.work.assign(6, 1e9);
    job.run(60);
    job.work[rank] = 2e9;
    job.run(6);
    job.nodes[rank] += "'";
    job.run(2);
    for (std::size_t i = 0; i < 6; ++i) job.slowdowns.rescale(i, 10), job.work[i] *= 10;
    job.run(1);
    for (std::size_t i = 0; i < 6; ++i) job.slowdowns.rescale(i, 0.1);
  }
  job.work.assign(6, 1e9);
  job.run(60);
  job.work[5] = 2e9;
  job.run(20);
  EXPECT_EQ(job.factors(), kNoSuspect) << "two had more to do";
}

// --- Over whole runs: eight ranks on twelve nodes of one kind -----------------------------------------------------------

decide::LoopRun run_timed(const decide::LoopJob& job) {
  OperatorLoop loop = automatic();
  loop.timed = true;
  return run_as_operator(job, loop, kSlowdownSeed);
}

TEST(Slowdowns, ASlowNodeIsLeft) {
  for (const double slow : {0.3, 0.6, 0.8}) {
    decide::LoopJob job = ring_on({{"a", 12, 1e9}}, 8, 2000);
    job.pace = [slow](std::uint64_t t, std::uint32_t p) { return p == 3 && t >= 700 ? slow : 1.0; };
    const decide::LoopRun all = run_timed(job);
    EXPECT_LE(all.makespan, 2050) << slow;  // 5,036, 2,868 and 2,326 s without a move
    EXPECT_EQ(all.moves, 1u) << slow;
  }
}

TEST(Slowdowns, MoreWorkCostsAMove) {
  decide::LoopJob job = ring_on({{"a", 12, 1e9}}, 8, 2000);
  job.drift = [](std::uint64_t t, std::uint32_t i) { return i == 3 && t >= 700 ? 2.0 : 1.0; };
  const decide::LoopRun all = run_timed(job);
  EXPECT_LE(all.moves, 1u);
  EXPECT_LE(all.makespan, job.seconds_without_moves() * 1.001);
}

TEST(Slowdowns, WorkThatWandersCostsTwo) {
  decide::LoopJob job = ring_on({{"a", 12, 1e9}}, 8, 4000);
  job.drift = [](std::uint64_t t, std::uint32_t i) { return (t / 100 + i) % 8 == 0 ? 2.0 : 1.0; };
  const decide::LoopRun wandering = run_timed(job);
  EXPECT_LE(wandering.moves, 2u);
  EXPECT_LE(wandering.makespan, job.seconds_without_moves() * 1.001);
  std::mt19937_64 random(kSlowdownSeed);
  std::vector<std::vector<double>> work(8);
  for (std::vector<double>& of_rank : work) {
    double now = 1;
    for (std::uint64_t t = 0; t <= job.supersteps; ++t) {
      if (random() % 500 == 0) now = std::uniform_real_distribution(0.5, 1.5)(random);
      of_rank.push_back(now);
    }
  }
  job.drift = [&work](std::uint64_t t, std::uint32_t i) { return work[i][t]; };
  const decide::LoopRun redrawn = run_timed(job);
  EXPECT_LE(redrawn.moves, 4u);
  EXPECT_LE(redrawn.makespan, job.seconds_without_moves() * 1.001);
}

}  // namespace
}  // namespace bsp::observe
