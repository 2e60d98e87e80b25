// The sources' platforms: nodes, cost of a byte, and initial mappings.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <ranges>

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

TEST(Grid5000, MappingsCountAMachineAsOneProcessorOfItsWholePower) {
  using Count = std::map<std::string, int>;
  const auto nodes = decision_platform(grid5000());
  ASSERT_TRUE(nodes) << nodes.error().message;
  EXPECT_EQ(nodes->processors.size(), 10u * 4 + 15 * 2 + 15 * 8);
  const auto placed = [&](decide::Mapping mapping) { return grid5000_mapping(mapping, 60).value(); };
  const auto ascending = placed(decide::Mapping::kAscending);
  EXPECT_EQ(ranks_by_set(*nodes, ascending), (Count{{"Capricorne", 30}, {"Chicon", 15}, {"Suno", 15}}));
  EXPECT_EQ(nodes->processor(ascending[0]).name, "Capricorne-1.0");
  EXPECT_EQ(nodes->processor(ascending[40]).name, "Capricorne-1.0") << "two share a core, while another is free";
  EXPECT_EQ(ranks_by_set(*nodes, placed(decide::Mapping::kDescending)),
            (Count{{"Suno", 30}, {"Chicon", 15}, {"Capricorne", 15}}));
  EXPECT_EQ(ranks_by_set(*nodes, placed(decide::Mapping::kCpu)), (Count{{"Suno", 50}, {"Chicon", 10}}));
}

TEST(Grid5000, CpuIsTheSlowestMapping) {
  // The slowest processor's seconds for one instruction of each of its processes.
  const auto slowest = [nodes = decision_platform(grid5000()).value()](decide::Mapping mapping) {
    std::map<ProcessorId, double> seconds;
    const std::vector<ProcessorId> placed = grid5000_mapping(mapping, 60).value();
    for (const ProcessorId p : placed) seconds[p] += 1 / nodes.processor(p).cpu;
    return std::ranges::max(seconds | std::views::values);
  };
  const double ascending = slowest(decide::Mapping::kAscending);
  EXPECT_DOUBLE_EQ(slowest(decide::Mapping::kDescending), ascending);
  EXPECT_DOUBLE_EQ(slowest(decide::Mapping::kRoundRobin), ascending);
  EXPECT_NEAR(slowest(decide::Mapping::kCpu) / ascending, 100.36 / 80.47, 0.01);
}

}  // namespace
}  // namespace bsp::sim
