#include "operator/decide/model/pm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PmList pm_list(const World& world, const Params& params = {}) {
  return make_pm_list({world.snapshot, *columns_of(world.snapshot), world.window(params).metrics(), params, 1, 1});
}

TEST(ISet, IsTheRatioOfMeanAvailableCapacities) {
  Platform platform = platform_of({{"a", 2, 1e9}, {"b", 2, 4e9}, {"empty", 0}});
  platform.processors[2].load = 0.5;  // b: 2e9 and 4e9 available, mean 3e9
  const Grid<double> ISet = iset(*columns_of({.platform = platform}));
  EXPECT_DOUBLE_EQ((ISet[0, 1]), 3);
  EXPECT_DOUBLE_EQ((ISet[1, 0]), 1.0 / 3);
  EXPECT_DOUBLE_EQ((ISet[0, 0]), 1);
  EXPECT_DOUBLE_EQ((ISet[0, 2]), 0);
}

TEST(Pm, HasTheThreeTermsOfTheDefinition) {
  // CTP = 2 s on slow (5e8), ISet(fast) = 3; 1e6 bytes received from fast at 10 ns each = 10 ms;
  // Mem = 2e8 bytes · 10 ns + 1 ms.
  World world({{"slow", 1, 5e8}, {"fast", 1, 1.5e9}}, {0});
  world.recv_bytes[0, 1] = 1e6;
  world.snapshot.ranks[0].memory_bytes = 2e8;
  const PmList list = pm_list(world);
  ASSERT_EQ(list.entries.size(), 1u);
  const PmEntry& e = list.entries[0];
  EXPECT_EQ(e.target, SetId{1});
  EXPECT_DOUBLE_EQ(e.comp, 6);
  EXPECT_DOUBLE_EQ(e.comm, 0.01);
  EXPECT_DOUBLE_EQ(e.mem, 2.001);
  EXPECT_DOUBLE_EQ(e.pm, 6 + 0.01 - 2.001);
}

TEST(Pm, ComparesWithTheOwnSetWhoseMemCountsToo) {
  // fast: 3 − 2.5 = 0.5; own: 2 − 1 ms. Without the own Set's PM the rank would be in the list.
  World world({{"slow", 1, 5e8}, {"fast", 1, 7.5e8}}, {0});
  world.snapshot.platform.Mig[0, 1] = 2.5;
  EXPECT_THAT(pm_list(world).entries, IsEmpty());
  // At the same cost for its own Set it is.
  world.snapshot.platform.Mig[0, 0] = 2.5;
  EXPECT_EQ(pm_list(world).entries.size(), 1u);
}

TEST(Pm, StaysWhereEqualSetsOfferTheSame) {
  World world({{"a", 1}, {"b", 1}}, {0, 1});
  world.snapshot.platform.T = Grid<double>(2, 2, 1e-9);
  const PmList list = pm_list(world);
  EXPECT_THAT(list.entries, IsEmpty());
  EXPECT_EQ(list.stays[0].reason, Reason::kBestSetIsOwn);
}

TEST(Pm, SortsByDecreasingPmAndEqualOnesByRank) {
  World world({{"slow", 4, 5e8}, {"fast", 1, 1e9}}, {0, 1, 2, 3});
  world.instructions = {1e9, 3e9, 1e9, 2e9};
  std::vector<std::uint32_t> ranks;
  for (const PmEntry& e : pm_list(world).entries) ranks.push_back(e.rank.value);
  EXPECT_THAT(ranks, ElementsAre(1, 3, 0, 2));
}

TEST(Pm, ATargetWithoutProcessorsIsNone) {
  World world({{"slow", 1, 5e8}, {"empty", 0}, {"fast", 1, 1e9}}, {0});
  world.recv_bytes[0, 1] = 1e12;  // the empty Set would be the best by far
  ASSERT_EQ(pm_list(world).entries.size(), 1u);
  EXPECT_EQ(pm_list(world).entries[0].target, SetId{2});
}

TEST(Pm, ClosedSetsLeaveTheSecondBest) {
  World world({{"slow", 1, 5e8, 1}, {"fast", 1, 1e9, 1}, {"fastest", 1, 2e9, 1}}, {0});
  EXPECT_EQ(pm_list(world).entries.at(0).target, SetId{2});
  World cordoned = world;
  cordoned.snapshot.platform.sets[2].cordoned = true;
  EXPECT_EQ(pm_list(cordoned).entries.at(0).target, SetId{1});
  World full = world;
  full.snapshot.platform.processors[2].taken = 1;
  EXPECT_EQ(pm_list(full).entries.at(0).target, SetId{1});
  World lacking = world;
  lacking.snapshot.ranks[0].no_moves_to = {SetId{2}};
  EXPECT_EQ(pm_list(lacking).entries.at(0).target, SetId{1});
}

TEST(Pm, UsesEachRanksOwnMigrationCostWhereThereIsOne) {
  World world({{"slow", 2, 5e8}, {"fast", 2, 1e9}}, {0, 1});
  world.snapshot.platform.Mig = Grid<double>(2, 2, 0.1);
  world.snapshot.platform.Mig[1, 1] = 0.25;
  const PmList list = pm_list(world);
  ASSERT_EQ(list.entries.size(), 2u);
  EXPECT_EQ(list.entries[0].rank, RankId{0});
  EXPECT_DOUBLE_EQ(list.entries[0].mem, 0.1);
  EXPECT_DOUBLE_EQ(list.entries[1].mem, 0.25);
}

}  // namespace
}  // namespace bsp::decide
