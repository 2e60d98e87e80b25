// A mapping is reached in waves, whose ranks go to free slots only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "operator/decide/auto/auto.h"
#include "operator/decide/auto/settle.h"
#include "operator/decide/auto/waves.h"
#include "tests/unit/decide/auto_job.h"
#include "tests/unit/decide/random_job.h"

namespace bsp::decide {
namespace {

using ::testing::IsEmpty;

// Three ranks on the slots of one another, and `spare` slots of a slow processor besides.
LoopJob rotation(std::uint32_t spare) {
  LoopJob job;
  job.start.platform = platform_of({{.name = "a", .cpu = 1e9, .slots = 1},
                                    {.name = "b", .cpu = 2e9, .slots = 1},
                                    {.name = "c", .cpu = 4e9, .slots = 1}});
  for (std::uint32_t s = 0; s < spare; ++s)
    job.start.platform.processors.push_back({.name = "spare", .set = {0}, .cpu = 1e9, .slots = 1});
  job.work = {2e9, 4e9, 1e9};  // belong on b, c, a
  for (std::uint32_t i = 0; i < 3; ++i) job.start.ranks.push_back({.processor = {i}});
  job.hears.resize(3);
  job.supersteps = 100;
  return job;
}

TEST(Auto, RotatesRanksWaveByWave) {
  const LoopRun run = run_loop(rotation(1), kAuto, 0, 1);
  EXPECT_EQ(run.on[0], ProcessorId{1});
  EXPECT_EQ(run.on[1], ProcessorId{2});
  EXPECT_GE(run.moved_at.size(), 2u) << "no rank may go where another is";
  for (std::size_t w = 1; w < run.moved_at.size(); ++w)
    EXPECT_EQ(run.moved_at[w] - run.moved_at[w - 1], AutoRule::kBetween) << "one wave soon after the other";
  EXPECT_EQ(run.returns, 0u);
}

TEST(Auto, LeavesARingAloneThatCannotBeBroken) { EXPECT_EQ(run_loop(rotation(0), kAuto, 0, 1).moves, 0u); }

// Every wave of a plan goes to slots that are free before it, all of them reach the mapping.
TEST(Auto, WavesGoToFreeSlotsOnly) {
  std::mt19937_64 random(kAutoSeed);
  int made = 0;
  for (int n = 0; n < 200; ++n) {
    const LoopJob job = random_loop_job(random, {.least_ranks = 3, .most_ranks = 20, .spare = 0.1});
    const Columns columns = *columns_of(job.start);
    Params params = kAuto;
    params.max_moves = n % 3 == 0 ? 2 : 0;
    const Metrics metrics;
    const Case c{job.start, columns, metrics, params, 1, 1};
    std::vector<ProcessorId> slots, mapping = columns.on;
    for (std::uint32_t p = 0; p < columns.slots.size(); ++p)
      slots.insert(slots.end(), columns.slots[p], ProcessorId{p});
    std::ranges::shuffle(slots, random);
    std::ranges::copy_n(slots.begin(), static_cast<std::ptrdiff_t>(mapping.size()), mapping.begin());
    const Waves waves = waves_to(c, job.work, mapping, Alike(columns));
    ASSERT_FALSE(waves.after.empty()) << "one slot is free";
    for (std::size_t i = 0; i < mapping.size(); ++i) {
      const ProcessorId p = waves.after.back()[i];
      EXPECT_EQ(columns.set[p.value], columns.set[mapping[i].value]) << n;
      if (columns.slots[p.value] == 1) continue;
      EXPECT_EQ(p, mapping[i]) << "who shares a processor shares it with whom was asked";
    }
    std::vector<ProcessorId> on = columns.on;
    for (const std::vector<ProcessorId>& after : waves.after) {
      std::vector<std::uint32_t> taken(columns.slots.size(), 0);
      std::size_t moves = 0;
      for (const ProcessorId p : on) ++taken[p.value];
      for (std::size_t i = 0; i < on.size(); ++i) {
        if (after[i] == on[i]) continue;
        ++moves;
        EXPECT_LE(++taken[after[i].value], columns.slots[after[i].value]) << n;
      }
      EXPECT_GE(moves, 1u);
      EXPECT_LE(moves, params.max_moves > 0 ? params.max_moves : moves);
      on = after;
    }
    ++made;
  }
  EXPECT_EQ(made, 200);
}

// With one slot a processor: within τ whenever there is a mapping within τ, which with the largest on the fastest shows.
TEST(Settling, FindsAMappingWheneverThereIsOne) {
  std::mt19937_64 random(kAutoSeed);
  int possible = 0;
  for (int n = 0; n < 300; ++n) {
    LoopJob job = random_loop_job(random, {.least_ranks = 2, .most_ranks = 7, .spare = 0.1});
    const Columns columns = *columns_of(job.start);
    const Metrics metrics{.last = {.recv_bytes = Grid<double>(job.work.size(), columns.sets)}};
    const Case c{job.start, columns, metrics, kAuto, 1, 1};
    const CommOf comm_of(c);
    const std::vector<double> here(job.work.size(), 0);
    Settling settling(c, job.work, here, comm_of);
    const double least = settling.least_time();
    for (const double tau : {least * 0.999, least * (1 + 1e-12), least * 1.2}) {
      const auto mapping =
          settling.within({tau, 1, 1e9, n % 2 == 0 ? Settling::Order::kSoonest : Settling::Order::kCheapest});
      EXPECT_EQ(mapping.has_value(), tau >= least) << n;
      if (!mapping) continue;
      ++possible;
      EXPECT_LE(std::ranges::max(processor_seconds(columns, job.work, *mapping)), tau * (1 + 1e-6)) << n;
      std::vector<std::uint32_t> held(columns.slots.size(), 0);
      for (const ProcessorId p : *mapping) EXPECT_LE(++held[p.value], columns.slots[p.value]) << n;
    }
  }
  EXPECT_EQ(possible, 600);
}

// Ten ranks with much to do on slow processors, ten with little on fast ones, two slots free of each: two of each can
// change their place in every wave. As the processors of a Set are alike, no rank has to wait for a certain one.
TEST(Auto, AFullPoolIsRearrangedInFewWaves) {
  LoopJob job;
  job.start.platform = platform_of(
      {{.name = "slow", .processors = 12, .slots = 1}, {.name = "fast", .processors = 12, .cpu = 4e9, .slots = 1}});
  std::vector<ProcessorId> mapping;
  for (std::uint32_t i = 0; i < 20; ++i) {
    job.start.ranks.push_back({.processor = {i < 10 ? i : i + 2}});
    job.work.push_back(i < 10 ? 4e9 : 1e9);
    mapping.push_back({i < 10 ? i + 12 : i - 10});
  }
  const Columns columns = *columns_of(job.start);
  const Metrics metrics;
  const Case c{job.start, columns, metrics, kAuto, 1, 1};
  const Waves waves = waves_to(c, job.work, mapping, Alike(columns));
  EXPECT_EQ(waves.after.size(), 5u) << "two of each in every wave";
  Columns different = columns;
  different.slots.assign(different.slots.size(), 2);  // so that none are alike
  EXPECT_GT(waves_to(c, job.work, mapping, Alike(different)).after.size(), 5u) << "each waits for its own slot";
  std::size_t moves = 0;
  for (std::size_t w = 0; w < waves.after.size(); ++w)
    for (std::size_t i = 0; i < 20; ++i) moves += waves.after[w][i] != (w > 0 ? waves.after[w - 1] : columns.on)[i];
  EXPECT_EQ(moves, 20u) << "no rank steps aside";
}

TEST(Auto, NoRankMovesBetweenProcessorsThatAreAlike) {
  std::mt19937_64 random(kAutoSeed);
  for (int n = 0; n < 50; ++n) {
    LoopJob job;
    job.start.platform = platform_of({{.name = "a", .processors = 8, .slots = 1}});
    std::vector<ProcessorId> slots, mapping;
    for (std::uint32_t p = 0; p < 8; ++p) slots.push_back({p});
    std::ranges::shuffle(slots, random);
    for (std::uint32_t i = 0; i < 6; ++i) {
      job.start.ranks.push_back({.processor = {i}});
      job.work.push_back(1e9);
      mapping.push_back(slots[i]);
    }
    const Columns columns = *columns_of(job.start);
    const Metrics metrics;
    const Case c{job.start, columns, metrics, kAuto, 1, 1};
    EXPECT_THAT(waves_to(c, job.work, mapping, Alike(columns)).after, IsEmpty()) << n;
  }
}

}  // namespace
}  // namespace bsp::decide
