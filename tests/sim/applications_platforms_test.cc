// The sources' platforms: nodes, cost of a byte, and initial mappings.
#include <gmock/gmock.h>

#include <map>

#include "sim/applications/calibration.h"
#include "sim/applications/platforms.h"
#include "sim/scenario.h"

namespace bsp::sim {
namespace {

std::map<std::string, int> ranks_by_set(const decide::Platform& nodes, const std::vector<ProcessorId>& mapping) {
  std::map<std::string, int> count;
  for (const ProcessorId p : mapping) ++count[nodes.sets[nodes.processor(p).set.value].name];
  return count;
}

TEST(FiveSets, HasTheSourcesNodes) {
  const auto nodes = decision_platform(five_sets());
  ASSERT_TRUE(nodes) << nodes.error().message;
  EXPECT_EQ(nodes->processors.size(), 20u + 16 + 6 + 112 + 20);
  EXPECT_EQ(nodes->processors[0].name, "L1");
  EXPECT_EQ(nodes->processors.back().name, "A20");
}

TEST(FiveSets, BytesCostTheCalibratedTime) {
  const auto nodes = decision_platform(five_sets());
  ASSERT_TRUE(nodes) << nodes.error().message;
  for (std::uint32_t a = 0; a < 5; ++a)
    for (std::uint32_t b = 0; b < 5; ++b)
      EXPECT_NEAR(
          (nodes->T[a, b]),
          (b == 0 ? calibration::kByteInsideL : calibration::kByteInside) + (a == b ? 0 : calibration::kByteOfLine),
          1e-18)
          << a << " " << b;
}

TEST(FiveSets, FillsUpInTheSourcesOrder) {
  using Count = std::map<std::string, int>;
  const auto nodes = decision_platform(five_sets());
  ASSERT_TRUE(nodes) << nodes.error().message;
  const auto placed = [&](std::uint32_t n) {
    return ranks_by_set(*nodes, initial_mapping(five_sets(), decide::Mapping::kContiguous, n).value());
  };
  EXPECT_EQ(placed(10), (Count{{"Labtec", 10}}));
  EXPECT_EQ(placed(25), (Count{{"Labtec", 20}, {"Corisco", 5}}));
  EXPECT_EQ(placed(50), (Count{{"Labtec", 20}, {"Corisco", 16}, {"Frontal", 6}, {"ICE", 8}}));
  EXPECT_EQ(placed(100), (Count{{"Labtec", 20}, {"Corisco", 16}, {"Frontal", 6}, {"ICE", 58}}));
  EXPECT_EQ(placed(200), (Count{{"Labtec", 40}, {"Corisco", 22}, {"Frontal", 6}, {"ICE", 112}, {"Aquario", 20}}));
}

TEST(Grid5000, HasOneNodeForEachMachine) {
  const auto nodes = decision_platform(grid5000_platform());
  ASSERT_TRUE(nodes) << nodes.error().message;
  EXPECT_EQ(nodes->processors.size(), 15u + 15 + 10);
  const std::vector<ProcessorId> placed = grid5000_mapping(decide::Mapping::kAscending);
  EXPECT_EQ(ranks_by_set(*nodes, placed), (std::map<std::string, int>{{"Capricorne", 37}, {"Suno", 23}}));
  EXPECT_EQ(nodes->processor(placed[0]).name, "Capricorne-1");
  EXPECT_EQ(nodes->processor(placed[59]).name, "Suno-8");
}

}  // namespace
}  // namespace bsp::sim
