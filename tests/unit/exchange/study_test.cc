// The basis of the study's results: shares, reproducible runs, message counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/exchange/gather.h"
#include "sim/exchange/pools.h"
#include "sim/exchange/solver.h"

namespace bsp::sim::exchange {
namespace {

using bsp::exchange::Mechanism;

TEST(Pour, FillsTheLowestToOneLevel) {
  const auto shares = pour({5, 1, 9, 3, 0}, 4, 4, 16);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].process, 1u);
  EXPECT_DOUBLE_EQ(shares[0].seconds, 3);  // up to 4
  EXPECT_EQ(shares[1].process, 3u);
  EXPECT_DOUBLE_EQ(shares[1].seconds, 1);
}

TEST(Pour, UsesAtMostTheAllowedSlaves) {
  const auto shares = pour({0, 1, 2, 3}, 3, 30, 2);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_DOUBLE_EQ(shares[0].seconds, 15.5);
  EXPECT_DOUBLE_EQ(shares[1].seconds, 14.5);
}

Workload small(std::uint64_t seed) {
  return make_workload({.processes = 12, .seed = seed, .tasks = 30, .front_seconds = 0.3});
}

TEST(Solver, ComputesAllWorkUnderEveryMechanism) {
  const Workload workload = small(3);
  double work = 0;
  for (const auto& queue : workload.queues)
    for (const Task& task : queue) work += task.seconds;
  const Outcome best = solve(workload, {}, std::nullopt, 0);
  EXPECT_EQ(best.messages, 0u);
  EXPECT_EQ(best.view_error, 0);
  EXPECT_NEAR(best.peak, 0, 1e-12);
  EXPECT_GE(best.makespan, work / 12);
  for (const Mechanism mechanism : {Mechanism::kNaive, Mechanism::kIncrements, Mechanism::kSnapshot})
    for (const bool threaded : {false, true}) {
      const Outcome outcome = solve(workload, {.threaded = threaded}, mechanism, 0.01);
      EXPECT_EQ(outcome.decisions, workload.decisions);
      EXPECT_GE(outcome.makespan, work / 12);
      EXPECT_GT(outcome.messages, 0u);
    }
}

TEST(Solver, SameArgumentsGiveSameResults) {
  for (const Mechanism mechanism : {Mechanism::kNaive, Mechanism::kIncrements, Mechanism::kSnapshot}) {
    const Outcome a = solve(small(5), {.threaded = true}, mechanism, 0.01);
    const Outcome b = solve(small(5), {.threaded = true}, mechanism, 0.01);
    EXPECT_EQ(a.messages, b.messages);
    EXPECT_EQ(a.makespan, b.makespan);
    EXPECT_EQ(a.view_error, b.view_error);
  }
  EXPECT_NE(solve(small(5), {}, Mechanism::kNaive, 0.01).makespan,
            solve(small(6), {}, Mechanism::kNaive, 0.01).makespan);
}

TEST(Solver, HeldSnapshotIsExactWhenNoProcessComputes) {
  const Outcome outcome = solve(small(7), {}, Mechanism::kSnapshot, 0.01);
  EXPECT_NEAR(outcome.view_error, 0, 1e-9);
  EXPECT_NEAR(outcome.peak, 0, 1e-9);
  EXPECT_GE(outcome.messages, 3 * 11 * outcome.decisions);
}

TEST(Pools, SnapshotNeverOverbooks) {
  for (const double burst : {0.0, 1.0}) {
    const PoolsParams params{.replicas = 8, .burst = burst};
    EXPECT_EQ(place_on_pools(params, Mechanism::kSnapshot).overbooked, 0u);
    EXPECT_GT(place_on_pools(params, Mechanism::kNaive).overbooked, 0u);
  }
}

TEST(Gather, CountsMessagesAndTheirCost) {
  const GatherParams params{.ranks = 1000, .sets = 10, .report_bytes = 200};
  const Gathered flat = gather(Gathering::kFlat, params);
  const Gathered managers = gather(Gathering::kManagers, params);
  const Gathered condensed = gather(Gathering::kCondensed, params);
  EXPECT_EQ(flat.messages, 2000u);
  EXPECT_EQ(managers.messages, 2000u);
  EXPECT_EQ(flat.operator_messages, 2000u);
  EXPECT_EQ(managers.operator_messages, 20u);
  EXPECT_DOUBLE_EQ(managers.operator_bytes, flat.operator_bytes);
  EXPECT_DOUBLE_EQ(condensed.operator_bytes, 24'000);
  // 2,000 messages of 20 µs, and the bytes of requests and reports.
  EXPECT_NEAR(flat.operator_cpu, 2000 * params.message + 1000 * (200 + 100) * params.byte, 1e-9);
  EXPECT_LT(managers.latency, flat.latency);
  EXPECT_LT(condensed.latency, managers.latency);
}

TEST(Gather, MoreSetsThanRanksAskEachRankOnce) {
  const Gathered r = gather(Gathering::kManagers, {.ranks = 3, .sets = 64, .report_bytes = 200});
  EXPECT_EQ(r.messages, 6u);
  EXPECT_EQ(r.connections, 3u);
}

}  // namespace
}  // namespace bsp::sim::exchange
