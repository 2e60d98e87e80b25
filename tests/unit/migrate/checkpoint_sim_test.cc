// The wave in which nobody moves: every victim in every phase, many seeds. Either every rank has an image of the same gate, or the
// set is given up; the ranks go on where they are, unless one of their processes is really gone.
#include <gtest/gtest.h>

#include <format>

#include "tests/unit/migrate/world.h"

namespace bsp::migrate::sim {
namespace {

constexpr int kSetSeeds = 25;

Scenario scenario(int seed) {
  Scenario s;
  s.seed = static_cast<std::uint64_t>(seed);
  s.ranks = 1 + static_cast<std::uint32_t>(seed % 5);
  s.moves = 0;
  s.checkpoint = true;
  s.forgetful = seed % 4 == 0;
  return s;
}

bool loses_a_rank(Victim victim) {
  return victim == Victim::kStayingProgram || victim == Victim::kStayingPod || victim == Victim::kProgram ||
         victim == Victim::kInit || victim == Victim::kSourcePod;
}

class SetSim : public testing::TestWithParam<std::tuple<Victim, Phase>> {};

TEST_P(SetSim, IsWholeOrGivenUp) {
  const auto [victim, phase] = GetParam();
  int struck = 0, given_up = 0;
  for (int seed = 1; seed <= kSetSeeds; ++seed) {
    Scenario s = scenario(seed);
    s.victim = victim;
    s.phase = phase;
    s.delay_ms = (seed * 7) % 40;
    s.operator_dies_with_it = seed % 3 == 0;
    constexpr Phase kBefore[] = {Phase::kPausing, Phase::kCheckpointing};
    if (phase == Phase::kRollingBack) s.cancelled_in = kBefore[seed / 4 % 2];
    World world(s);
    const Outcome o = world.run();
    struck += o.struck;
    ASSERT_EQ(o.violation, "") << std::format("seed {}\n{}", seed, o.trace);
    const bool may_lose = o.struck && loses_a_rank(victim);
    if (!may_lose) {
      ASSERT_NE(o.wave.phase, Phase::kFailed) << std::format("seed {}: {}\n{}", seed, o.wave.message, o.trace);
    }
    given_up += o.wave.phase != Phase::kSucceeded;
    const bool pause = victim == Victim::kOperatorAway || victim == Victim::kApiServerPause;
    if (o.struck) {
      ASSERT_LT(o.seconds_after_fault, pause ? 75.0 : 10.0) << std::format("seed {}\n{}", seed, o.trace);
    }
  }
  EXPECT_GT(struck, 0) << "the fault never happened: the case tests nothing";
  // What the storage does is no business of the ranks.
  if (victim == Victim::kStorageHangs) {
    EXPECT_EQ(given_up, phase == Phase::kRollingBack ? kSetSeeds : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    VictimByPhase, SetSim,
    testing::Combine(testing::Values(Victim::kProgram, Victim::kInit, Victim::kCriuDump, Victim::kStayingSidecar,
                                     Victim::kStayingProgram, Victim::kStayingPod, Victim::kOperator,
                                     Victim::kOperatorAway, Victim::kApiServerPause, Victim::kClockBack,
                                     Victim::kStorageFails, Victim::kStorageHangs),
                     testing::Values(Phase::kPausing, Phase::kCheckpointing, Phase::kResuming, Phase::kRollingBack)),
    [](const auto& param) {
      std::string name =
          std::format("{}_{}", to_string(std::get<0>(param.param)), crds::to_string(std::get<1>(param.param)));
      std::ranges::replace(name, '-', '_');
      return name;
    });

TEST(SetSimPlain, WithoutFaultsEveryRankHasAnImage) {
  for (int seed = 1; seed <= 40; ++seed) {
    const Scenario s = scenario(seed);
    World world(s);
    const Outcome o = world.run();
    ASSERT_EQ(o.violation, "") << "seed " << seed << '\n' << o.trace;
    ASSERT_EQ(o.wave.phase, Phase::kSucceeded) << "seed " << seed << ": " << o.wave.message << '\n' << o.trace;
    EXPECT_EQ(o.stored, s.ranks) << "seed " << seed;
    EXPECT_GT(o.wave.pause.total_ms, 0);
    EXPECT_GT(o.wave.pause.dump_ms, 0);
    // The commit, and what comes before it.
    EXPECT_LE(o.stores_while_stopped, 3) << "seed " << seed << '\n' << o.trace;
  }
}

// A rank that can't be dumped blocks the set, and the others don't wait for it.
TEST(SetSimPlain, AFailedDumpGivesUpTheSet) {
  int given_up = 0;
  for (int seed = 1; seed <= 20; ++seed) {
    Scenario s = scenario(seed);
    s.victim = Victim::kCriuDump;
    s.phase = Phase::kPausing;
    World world(s);
    const Outcome o = world.run();
    ASSERT_EQ(o.violation, "") << "seed " << seed << '\n' << o.trace;
    if (!o.struck || o.wave.phase != Phase::kRolledBack) continue;
    ++given_up;
    EXPECT_EQ(o.wave.reason, "CheckpointFailed") << o.wave.message;
    EXPECT_LT(o.stored, s.ranks);
  }
  EXPECT_GT(given_up, 10);
}

}  // namespace
}  // namespace bsp::migrate::sim
