// GreedyLB and RefineLB on cases small enough to place by hand.
#include "sim/yardsticks/yardsticks.h"

#include <gmock/gmock.h>

#include <random>

#include "sim/applications/lattice_boltzmann.h"
#include "sim/applications/platforms.h"

namespace bsp::sim {
namespace {

decide::Snapshot snapshot_of(std::vector<double> speeds, const std::vector<std::uint32_t>& where) {
  decide::Snapshot snapshot;
  snapshot.platform.sets = {{.name = "only"}};
  for (const double cpu : speeds) snapshot.platform.processors.push_back({.set = SetId{0}, .cpu = cpu});
  snapshot.platform.T = decide::Grid<double>(1, 1, 0.0);
  snapshot.platform.Mig = decide::Grid<double>(1, 1, 0.0);
  for (const std::uint32_t p : where) snapshot.ranks.push_back({.processor = ProcessorId{p}});
  return snapshot;
}

std::vector<std::uint32_t> numbers(const std::vector<ProcessorId>& placed) {
  std::vector<std::uint32_t> out;
  for (const ProcessorId p : placed) out.push_back(p.value);
  return out;
}

double slowest(const decide::Snapshot& snapshot, const std::vector<ProcessorId>& placed, std::span<const double> I) {
  std::vector<double> time(snapshot.platform.processors.size(), 0);
  for (std::size_t i = 0; i < placed.size(); ++i)
    time[placed[i].value] += I[i] / snapshot.platform.processor(placed[i]).available();
  return std::ranges::max(time);
}

TEST(GreedyLB, HeaviestFirstToTheLeastLoaded) {
  // 5→0, 4→1, 3→1 would be 7, so 0: 8? no: 4+3 = 7 < 5+3 = 8, so processor 1; then 2→0, 1→0.
  const auto placed = greedy_lb(snapshot_of({1, 1}, {0, 0, 0, 0, 0}), std::vector<double>{1, 2, 3, 4, 5});
  EXPECT_EQ(numbers(placed), (std::vector<std::uint32_t>{0, 0, 1, 1, 0}));
}

TEST(GreedyLB, KnowsSpeeds) {
  const auto placed = greedy_lb(snapshot_of({1, 4}, {0, 0, 0}), std::vector<double>{2, 2, 2});
  EXPECT_EQ(numbers(placed), (std::vector<std::uint32_t>{1, 1, 1}));  // 6/4 = 1.5 is less than 2/1
}

TEST(GreedyLB, RespectsSlots) {
  auto snapshot = snapshot_of({1, 4}, {0, 0, 0});
  snapshot.platform.processors[1].slots = 1;
  EXPECT_EQ(numbers(greedy_lb(snapshot, std::vector<double>{2, 2, 2})), (std::vector<std::uint32_t>{1, 0, 0}));
}

TEST(RefineLB, KeepsABalancedPlacement) {
  EXPECT_EQ(numbers(refine_lb(snapshot_of({1, 1}, {1, 0, 1, 0}), std::vector<double>{2, 2, 2, 2})),
            (std::vector<std::uint32_t>{1, 0, 1, 0}));
}

TEST(RefineLB, MovesOnlyFromOverloadedProcessors) {
  // Mean 4: processor 0 has 6; 3 would make processor 1 5, 2 makes it 4.
  EXPECT_EQ(numbers(refine_lb(snapshot_of({1, 1}, {0, 0, 0, 1}), std::vector<double>{3, 2, 1, 2})),
            (std::vector<std::uint32_t>{0, 1, 0, 1}));
}

TEST(RefineLB, RaisesTheLimitUntilItCanBeKept) {
  // Mean 8/3, but the rank of 4 alone takes 4: within that limit it moves, as the heaviest, to the idle processor.
  EXPECT_EQ(numbers(refine_lb(snapshot_of({1, 1, 1}, {0, 0, 1}), std::vector<double>{4, 2, 2})),
            (std::vector<std::uint32_t>{2, 0, 1}));
}

TEST(RefineLB, NoRankComputes) {
  EXPECT_EQ(numbers(refine_lb(snapshot_of({1, 1}, {0, 0}), std::vector<double>{0, 0})),
            (std::vector<std::uint32_t>{0, 0}));
}

TEST(RefineLB, NeverMakesTheSlowestSlower) {
  const auto seed = static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed());
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> speeds, I;
    std::vector<std::uint32_t> where;
    for (int p = 0; p < 5; ++p) speeds.push_back(1 + random() % 4);
    for (int i = 0; i < 12; ++i) I.push_back(1 + random() % 9), where.push_back(random() % 5);
    const auto snapshot = snapshot_of(speeds, where);
    std::vector<ProcessorId> now;
    for (const std::uint32_t p : where) now.push_back(ProcessorId{p});
    EXPECT_LE(slowest(snapshot, refine_lb(snapshot, I), I), slowest(snapshot, now, I) + 1e-9)
        << "seed " << seed << " round " << round;
  }
}

TEST(Yardsticks, DecideAndPayForMoves) {
  const Platform platform = five_sets();
  const auto workload = make(LatticeBoltzmann{.ranks = 25, .supersteps = 20});
  Scenario scenario{.platform = platform, .workload = *workload, .params = {.alpha0 = 4}};
  scenario.mapping = initial_mapping(platform, decide::Mapping::kContiguous, 25).value();
  scenario.planner = yardstick_named("Nothing");
  const auto nothing = simulate(scenario);
  ASSERT_TRUE(nothing) << nothing.error().message;
  EXPECT_EQ(nothing->calls_made, 2u);  // after 4 and 12
  EXPECT_TRUE(nothing->moves.empty());
  scenario.planner = yardstick_named("GreedyLB");
  const auto greedy = simulate(scenario);
  ASSERT_TRUE(greedy) << greedy.error().message;
  ASSERT_FALSE(greedy->moves.empty());
  EXPECT_GE(greedy->migration_seconds, greedy->supersteps[3]) << "a call that moves costs a superstep";
  for (const Moved& moved : greedy->moves)
    EXPECT_EQ(moved.superstep, Superstep{4}) << "at the second call every rank is where it should be";
}

TEST(Yardsticks, AreFoundByName) {
  EXPECT_FALSE(yardstick_named("Top"));
  EXPECT_TRUE(yardstick_named("RefineLB"));
}

}  // namespace
}  // namespace bsp::sim
