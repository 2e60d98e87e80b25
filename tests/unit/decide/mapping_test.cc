#include "operator/decide/model/mapping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint32_t> mapped(Mapping mapping, std::uint32_t ranks, const Platform& platform) {
  std::vector<std::uint32_t> processors;
  const auto placed = initial_mapping(mapping, ranks, platform);
  for (ProcessorId p : placed.value()) processors.push_back(p.value);
  return processors;
}

// Processors 0 1 of 1 GHz, 2 of 3 GHz, 3 4 of 2 GHz.
Platform sources_model() { return platform_of({{"a", 2, 1e9}, {"b", 1, 3e9}, {"c", 2, 2e9}}); }

TEST(Mapping, ContiguousFillsASetThenTheNextAndWrapsAround) {
  EXPECT_THAT(mapped(Mapping::kContiguous, 7, sources_model()), ElementsAre(0, 1, 2, 3, 4, 0, 1));
}

TEST(Mapping, AscendingAndDescendingGoByCapacity) {
  EXPECT_THAT(mapped(Mapping::kAscending, 6, sources_model()), ElementsAre(0, 1, 3, 4, 2, 0));
  EXPECT_THAT(mapped(Mapping::kDescending, 6, sources_model()), ElementsAre(2, 3, 4, 0, 1, 2));
}

TEST(Mapping, CpuTakesTheLargestShareLeft) {
  // Shares: 3 | 2 2 | 1.5 | 1 (0, 1, 2 again, 3 again …): the smaller index first.
  EXPECT_THAT(mapped(Mapping::kCpu, 8, sources_model()), ElementsAre(2, 3, 4, 2, 0, 1, 2, 3));
}

TEST(Mapping, RoundRobinGoesAcrossTheSets) {
  EXPECT_THAT(mapped(Mapping::kRoundRobin, 6, sources_model()), ElementsAre(0, 2, 3, 1, 4, 0));
}

TEST(Mapping, SlotsAreCapacity) {
  const Platform platform = platform_of({{"a", 1, 1e9, 2}, {"b", 2, 3e9, 1}});
  EXPECT_THAT(mapped(Mapping::kContiguous, 4, platform), ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(mapped(Mapping::kDescending, 4, platform), ElementsAre(1, 2, 0, 0));
  EXPECT_THAT(mapped(Mapping::kCpu, 4, platform), ElementsAre(1, 2, 0, 0));
  EXPECT_THAT(mapped(Mapping::kRoundRobin, 4, platform), ElementsAre(0, 1, 2, 0));
}

TEST(Mapping, TakenSlotsAndCordonsAreNot) {
  Platform platform = platform_of({{"a", 2, 1e9, 2}, {"b", 2, 1e9, 1}, {"c", 1, 1e9, 8}});
  platform.processors[0].taken = 1;
  platform.processors[2].cordoned = true;
  platform.sets[2].cordoned = true;
  EXPECT_THAT(mapped(Mapping::kContiguous, 4, platform), ElementsAre(0, 1, 1, 3));
}

TEST(Mapping, NamesTheRemedyWhereThereIsNoSlot) {
  for (Mapping mapping :
       {Mapping::kContiguous, Mapping::kAscending, Mapping::kDescending, Mapping::kCpu, Mapping::kRoundRobin}) {
    const auto none = initial_mapping(mapping, 6, platform_of({{"a", 5, 1e9, 1}}));
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, ErrorCode::kNoSpace);
    EXPECT_EQ(none.error().message,
              "6 ranks need 6 slots, but the Sets have 5 free: add 1 slot to the pools, or create the job with 5 "
              "ranks");
    EXPECT_EQ(initial_mapping(mapping, 1, Platform{}).error().message,
              "1 rank needs 1 slot, but the Sets have 0 free: add nodes that fit a rank to the pools, or let the ranks "
              "ask for less (requests, affinity, nodeSelector of spec.template) and tolerate more (tolerations)");
  }
}

TEST(Mapping, HasTheNamesOfTheManifest) {
  for (std::string_view name : {"Contiguous", "Ascending", "Descending", "CPU", "RoundRobin"})
    EXPECT_EQ(to_string(*mapping_named(name)), name);
  EXPECT_THAT(mapping_named("contiguous").error().message,
              HasSubstr("unknown initial mapping 'contiguous': use one of Contiguous"));
}

}  // namespace
}  // namespace bsp::decide
