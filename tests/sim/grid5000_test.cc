// The program behind the tables of MigCube and MigHull: its deployments, its rules, and its course.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <ranges>

#include "sim/grid5000/program.h"

namespace bsp::sim::grid5000 {
namespace {

using decide::Mapping;

constexpr std::uint32_t kCapricorne = 0, kSuno = 1, kChicon = 2;

std::array<int, kSites> by_site(std::span<const Machine> on) {
  std::array<int, kSites> count{};
  for (const Machine m : on) ++count[m.site];
  return count;
}

int largest(std::span<const Machine> on) {
  std::map<Machine, int> held;
  for (const Machine m : on) ++held[m];
  return std::ranges::max(held | std::views::values);
}

TEST(Deployments, PlaceSixtyProcessesOnTwoSites) {
  for (const Mapping mapping : {Mapping::kAscending, Mapping::kDescending, Mapping::kRoundRobin}) {
    const std::vector<Machine> on = deployment(mapping).on;
    EXPECT_EQ(by_site(on), (std::array{37, 23, 0}));
    EXPECT_EQ(largest(on), 4);
  }
  EXPECT_EQ(by_site(deployment(Mapping::kCpu).on), (std::array{42, 18, 0}));
  EXPECT_EQ(largest(deployment(Mapping::kCpu).on), 5) << "so CPU is the slowest";
  EXPECT_EQ(deployment(Mapping::kDescending).on.front(), (Machine{kSuno, 0}));
  EXPECT_EQ(deployment(Mapping::kRoundRobin).on.back(), (Machine{kSuno, 7}));
}

TEST(Latency, CountsTheLinksOnTheWay) {
  EXPECT_DOUBLE_EQ(latency({kSuno, 0}, {kSuno, 1}), 3 * kLatency);
  EXPECT_DOUBLE_EQ(latency({kSuno, 0}, {kCapricorne, 0}), 10 * kLatency);
  EXPECT_DOUBLE_EQ(latency({kSuno, 0}, {kChicon, 0}), 12 * kLatency);
}

// Processes that compute for as long as each other, on machines of their own.
std::vector<Measured> equal(std::size_t processes, double seconds) {
  Measured each{.computing = std::vector<double>(4, seconds)};
  each.exchanging.fill(std::vector<double>(4, 0));
  return std::vector<Measured>(processes, each);
}

TEST(PublishedRules, CandidatesLeaveTheirSiteForTheEmptiestMachines) {
  std::vector<Machine> on{{kCapricorne, 0}, {kCapricorne, 1}, {kCapricorne, 2}};
  Rules rules(Heuristic::kMigCube, {3, 2, 0});
  const auto moves = rules.call(equal(3, 0.5), on);
  EXPECT_EQ(moves.size(), 3u);
  EXPECT_EQ(on, (std::vector<Machine>{{kSuno, 0}, {kSuno, 1}, {kSuno, 0}}));
}

TEST(PublishedRules, TheOwnSiteIsNeverTheBest) {
  std::vector<Machine> on{{kSuno, 0}, {kSuno, 1}, {kSuno, 2}};
  Rules rules(Heuristic::kMigCube, {3, 3, 0});
  EXPECT_EQ(rules.call(equal(3, 0.5), on).size(), 2u) << "but for process 1, which receives nothing";
  EXPECT_EQ(on, (std::vector<Machine>{{kSuno, 0}, {kCapricorne, 0}, {kCapricorne, 1}}));
}

TEST(PublishedRules, ACandidateStaysOne) {
  std::vector<Machine> on{{kCapricorne, 0}, {kCapricorne, 1}, {kCapricorne, 2}, {kCapricorne, 3}};
  std::vector<Measured> measured = equal(4, 0.5);
  for (std::size_t i = 2; i < 4; ++i) measured[i].computing.assign(4, 0.01);  // far from the largest PM
  Rules rules(Heuristic::kMigCube, {4, 4, 4});
  EXPECT_EQ(rules.call(measured, on).size(), 2u);
  std::swap(measured[0], measured[2]);
  std::swap(measured[1], measured[3]);
  EXPECT_EQ(rules.call(measured, on).size(), 3u) << "process 2 goes on, too, and process 1 is where it wants to be";
}

TEST(PublishedProgram, TakesThePrintedTimeAlone) {
  const auto seconds = [](Mapping mapping) { return run({.mapping = mapping, .supersteps = 100}).seconds; };
  EXPECT_NEAR(seconds(Mapping::kAscending), 80.47, 0.05);
  EXPECT_NEAR(seconds(Mapping::kDescending), 81.37, 0.05);
  EXPECT_NEAR(seconds(Mapping::kCpu), 100.36, 0.05);
}

TEST(PublishedProgram, CallsAfterEveryAlphaSuperstepsAndMovesToAndFro) {
  const Ran ran = run({.mapping = Mapping::kAscending,
                       .supersteps = 48,
                       .alpha = 16,
                       .heuristic = Heuristic::kMigHull,
                       .migrates = true});
  ASSERT_EQ(ran.calls.size(), 3u);
  for (const Ran::Called& call : ran.calls) {
    EXPECT_EQ(call.superstep % 16, 0u);
    EXPECT_GE(call.moves, 59u);
  }
  const auto to = [&](std::uint32_t superstep, std::uint32_t site) {
    return std::ranges::count_if(ran.moves,
                                 [&](const Ran::Moved& m) { return m.superstep == superstep && m.to.site == site; });
  };
  EXPECT_EQ(to(16, kSuno), 37);
  EXPECT_EQ(to(48, kSuno), 36) << "process 1 stayed there";
  EXPECT_EQ(to(32, kSuno), 23) << "who went to Chicon; the others return to Capricorne";
}

TEST(PublishedProgram, DecidesWithoutMovingForThePriceOfItsCalls) {
  const Program program{.mapping = Mapping::kAscending, .supersteps = 40, .alpha = 8};
  const Ran ran = run(program);
  EXPECT_EQ(ran.calls.size(), 5u);
  EXPECT_TRUE(ran.moves.empty());
  EXPECT_NEAR(ran.seconds, 33.42, 0.2);
}

}  // namespace
}  // namespace bsp::sim::grid5000
