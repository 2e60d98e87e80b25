#include "sidecar/shim/epoch/edge_choice.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace bsp::shim {
namespace {

constexpr std::size_t kBarrier = 0, kBcast = 1, kGather = 2, kAllreduce = 12;
constexpr auto kNone = EdgeChoice::kCalls;

// A program: collectives, each with the seconds since the one before it.
class Program {
 public:
  // Returns how many seconds after its start the edge was changed last; 0 if it wasn't.
  double run(const std::vector<std::pair<std::size_t, double>>& iteration, double seconds) {
    double ran = 0, changed_at = 0;
    while (ran < seconds)
      for (const auto& [call, apart] : iteration) {
        ran += apart;
        since_decision_ += apart;
        ++calls;
        if (!choice_.count(call)) continue;
        ++decisions;
        if (!choice_.decide(std::exchange(since_decision_, 0))) continue;
        ++changes;
        changed_at = ran;
      }
    return changed_at;
  }
  [[nodiscard]] EdgeChoice::Edge edge() const { return choice_.edge(); }
  void restart() { choice_.restart(), since_decision_ = 0; }
  int decisions = 0, calls = 0, changes = 0;

 private:
  EdgeChoice choice_;
  double since_decision_ = 0;
};

using Edge = EdgeChoice::Edge;

TEST(EdgeChoice, TakesTheCallOfEveryIteration) {
  Program p;
  EXPECT_LT(p.run({{kAllreduce, 0.02}, {kAllreduce, 0.02}, {kAllreduce, 0.02}, {kBarrier, 0.02}}, 60), 1);
  EXPECT_EQ(p.edge(), (Edge{kBarrier, 1}));
  p.run({{kAllreduce, 0.02}, {kAllreduce, 0.02}, {kAllreduce, 0.02}, {kBarrier, 0.02}}, 60);
  EXPECT_EQ(p.changes, 1);
}

TEST(EdgeChoice, CountsSeveralOfShortCallsTogether) {
  Program p;
  p.run({{kAllreduce, 0.0002}, {kAllreduce, 0.0002}, {kBarrier, 0.0006}}, 60);
  EXPECT_EQ(p.edge(), (Edge{kBarrier, 100}));
}

TEST(EdgeChoice, TakesARareCallIfNothingElseRecurs) {
  Program p;
  p.run({{kBarrier, 7}}, 200);
  EXPECT_EQ(p.edge(), (Edge{kBarrier, 1}));
  Program q;  // a frequent one lets ranks move sooner
  q.run({{kBarrier, 6.99}, {kAllreduce, 0.01}, {kAllreduce, 0.01}, {kAllreduce, 0.01}}, 300);
  EXPECT_NE(q.edge().call, kNone);
}

TEST(EdgeChoice, FindsNoneWhereNoneRecurs) {
  Program p;
  p.run({{kBcast, 0.001}, {kGather, 3000}}, 2000);
  EXPECT_EQ(p.edge().call, kNone);
}

TEST(EdgeChoice, FollowsTheProgramIntoItsIterations) {
  Program p;
  p.run({{kBcast, 0.001}}, 8);
  EXPECT_EQ(p.edge().call, kBcast);
  EXPECT_LT(p.run({{kAllreduce, 0.15}, {kAllreduce, 0.15}}, 120), 60);
  EXPECT_EQ(p.edge(), (Edge{kAllreduce, 1}));
}

TEST(EdgeChoice, FollowsCallsThatSlowDown) {
  Program p;
  p.run({{kAllreduce, 0.0001}}, 20);
  EXPECT_EQ(p.edge(), (Edge{kAllreduce, 1000}));
  EXPECT_LT(p.run({{kAllreduce, 0.3}}, 120), 60);
  EXPECT_EQ(p.edge(), (Edge{kAllreduce, 1}));
}

TEST(EdgeChoice, StaysWithinTheRangeWhateverTheNoise) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> noise(0, 0.5);
  Program p;
  for (int i = 0; i < 20'000; ++i) p.run({{kAllreduce, 0.004 * noise(random)}}, 1e-9);  // one call each
  EXPECT_EQ(p.edge().call, kAllreduce);
  EXPECT_EQ(p.changes, 1);
}

// A decision is a reduction of its own.
TEST(EdgeChoice, DecidesSeldom) {
  for (const double apart : {0.00005, 0.001, 0.02, 1.0}) {
    Program p;
    p.run({{kAllreduce, apart}}, 90);
    EXPECT_LE(p.decisions, std::max(p.calls / 100 + 20, static_cast<int>(90 / 0.04) + 20)) << apart;
    if (apart < 0.0001) {
      EXPECT_LE(p.decisions, p.calls / 100);
    }
  }
}

TEST(EdgeChoice, DoesNotCountATimeInWhichTheRanksStoodStill) {
  Program p;
  p.run({{kAllreduce, 0.1}}, 60);
  p.restart();
  p.run({{kAllreduce, 0.1}}, 60);
  EXPECT_EQ(p.changes, 1);
}

}  // namespace
}  // namespace bsp::shim
