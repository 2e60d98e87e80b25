#include "operator/observe/rank_factors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace bsp::observe {
namespace {

using Strings = std::vector<std::string>;

// Ranks of one Set, which all compute 10⁹ instructions a superstep.
struct CountedJob {
  Strings nodes;
  std::vector<double> seconds;  // by rank, of a superstep
  Calibration calibration{};
  RankFactors factors{};
  std::uint64_t superstep = 0;

  void run(int supersteps) {
    const Strings sets(nodes.size(), "s");
    for (int t = 0; t < supersteps; ++t) {
      SuperstepTimes times;
      times.superstep = ++superstep;
      times.instructions.assign(nodes.size(), 1e9), times.compute_seconds = seconds;
      for (std::size_t i = 0; i < nodes.size(); ++i) times.instructions[i] *= factors.factor(i);
      calibration.add_superstep(times, sets, nodes);
      factors.add(times, sets, nodes, calibration);
    }
  }
  std::vector<double> settle() { return factors.settle(calibration); }
  double speed_of(const std::string& node) { return calibration.cpu_of_node(node, "s", {}).value; }
};

CountedJob of_six() { return {.nodes = {"a", "b", "c", "d", "e", "f"}, .seconds = {1, 1, 1, 1, 1, 1}}; }

// Four ranks that take twice as long on both their nodes.
CountedJob of_unlike_ranks() {
  CountedJob job{.nodes = {}, .seconds = {}};
  for (int i = 0; i < 12; ++i) job.nodes.push_back("n" + std::to_string(i)), job.seconds.push_back(i < 4 ? 2 : 1);
  job.run(8);
  for (int i = 0; i < 4; ++i) job.nodes[i] = "m" + std::to_string(i);
  job.run(4);
  return job;
}

TEST(RankFactors, ARankTakesAlongWhatIsItsOwn) {
  CountedJob job = of_six();
  job.seconds[5] = 2;
  job.run(20);
  EXPECT_TRUE(job.settle().empty()) << "its node may be slow";
  EXPECT_NEAR(job.speed_of("f"), 0.5e9, 1e6);
  job.nodes[5] = "g";
  job.run(3);
  EXPECT_TRUE(job.settle().empty()) << "too few supersteps to say";
  job.run(1);
  const std::vector<double> ratio = job.settle();
  ASSERT_EQ(ratio.size(), 6u);
  EXPECT_NEAR(ratio[5], 2, 0.01);
  EXPECT_EQ(std::ranges::count(ratio, 1.0), 5);
  EXPECT_NEAR(job.factors.factor(5), 2, 0.01);
  EXPECT_EQ(job.factors.factor(0), 1);
  EXPECT_NEAR(job.speed_of("f"), 1e9, 1e6) << "neither the node that it left is slow …";
  job.run(20);
  EXPECT_NEAR(job.speed_of("g"), 1e9, 1e6) << "… nor the one that it is on";
  EXPECT_TRUE(job.settle().empty()) << "nothing new";
}

TEST(RankFactors, ASlowNodeStaysBehind) {
  CountedJob job = of_six();
  job.seconds[5] = 2;
  job.run(20);
  job.nodes[5] = "g", job.seconds[5] = 1;
  job.run(20);
  EXPECT_TRUE(job.settle().empty());
  EXPECT_EQ(job.factors.factor(5), 1);
}

// Which of the two it is, the third node tells.
TEST(RankFactors, OneOfTwoSlowNodesIsNoRank) {
  CountedJob job = of_six();
  for (const auto& [node, seconds] : {std::pair("f", 2.0), {"g", 1.0}, {"h", 2.0}}) {
    job.nodes[5] = node, job.seconds[5] = seconds;
    job.run(8);
  }
  job.settle();
  EXPECT_EQ(job.factors.factor(5), 1);
}

TEST(RankFactors, UnlikeNodesMakeNoUnlikeRanks) {
  CountedJob job = of_six();
  job.seconds = {1, 1, 1, 1.5, 1.4, 1.3};
  job.run(8);
  job.nodes = {"a", "b", "c", "g", "h", "i"}, job.seconds = {1, 1, 1, 1.2, 0.8, 0.9};
  job.run(8);
  EXPECT_TRUE(job.settle().empty()) << "one of three is slow on both its nodes";
}

TEST(RankFactors, WhereRanksAreUnlikeThoseAreThatHaveNotMoved) {
  CountedJob job = of_unlike_ranks();
  job.seconds[4] = 1.5;
  job.run(8);
  job.settle();
  EXPECT_NEAR(job.factors.factor(0), 2, 0.01);
  EXPECT_EQ(job.factors.factor(4), 1) << "its node has slowed down since";
  job = of_unlike_ranks();
  CountedJob other{.nodes = job.nodes, .seconds = job.seconds};
  for (int i = 0; i < 4; ++i) other.nodes[i] = "n" + std::to_string(i);
  other.seconds[4] = 1.5;
  other.run(8);
  other.nodes = job.nodes;
  other.run(4);
  other.settle();
  EXPECT_NEAR(other.factors.factor(4), 1.5, 0.01);
}

TEST(RankFactors, ShortComputationsSayNothing) {
  CountedJob job = of_six();
  job.seconds[5] = 0.05;  // a rank with 20 times the speed is one that reads a cache
  job.run(8);
  job.nodes[5] = "g";
  job.run(8);
  EXPECT_TRUE(job.settle().empty());
}

TEST(RankFactors, AFreshOperatorKnowsThem) {
  CountedJob job = of_unlike_ranks();
  job.settle();
  const nlohmann::json stored = job.factors.to_json();
  EXPECT_EQ(stored.size(), 4u);
  job.factors = RankFactors::from_json(stored, 12);
  EXPECT_NEAR(job.factors.factor(3), 2, 0.01);
  job.nodes[3] = "k";
  job.run(20);
  EXPECT_TRUE(job.settle().empty()) << "it is on a third node what it was";
  EXPECT_EQ(job.factors.to_json(), stored);
}

TEST(RankFactors, WhatCannotBeReadIsLeftOut) {
  using nlohmann::json;
  for (const char* text :
       {"null", "7", R"({"0": 1})", "[1, null, [], [0], [0, 1, 2]]", R"([["0", 1]])", R"([[0, "1"]])", "[[-1, 1]]",
        "[[6, 1]]", "[[0.5, 1]]", "[[0, 1e300]]", "[[0, -4]]", "[[0, null]]"}) {
    const RankFactors factors = RankFactors::from_json(json::parse(text), 6);
    for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(factors.factor(i), 1) << text;
    EXPECT_EQ(factors.to_json(), json::array()) << text;
  }
}

}  // namespace
}  // namespace bsp::observe
