// A superstep's times against values computed by hand, on the platform of engine_fixture.h.
#include <gmock/gmock.h>

#include "tests/sim/engine_fixture.h"

namespace bsp::sim::test {
namespace {

constexpr double kExact = 2e-9;  // s; SimGrid has a resolution of 1 ns

TEST(Superstep, ComputationTakesInstructionsOverSpeed) {
  const Simulated t = simulated(two_sets(), {.instructions = {1e9, 3e8, 1e9, 0}}, on({0, 1, 2, 3}));
  EXPECT_NEAR(t.compute_seconds[0], 1, kExact);
  EXPECT_NEAR(t.compute_seconds[1], 0.3, kExact);
  EXPECT_NEAR(t.compute_seconds[2], 0.5, kExact);
  EXPECT_EQ(t.compute_seconds[3], 0);
  EXPECT_NEAR(t.seconds, 1, kExact);
}

TEST(Superstep, RanksOnOneNodeShareItUntilOneFinishes) {
  const Simulated t = simulated(two_sets(), {.instructions = {1e9, 3e9, 1e9}}, on({0, 0, 1}));
  EXPECT_NEAR(t.compute_seconds[0], 2, kExact);  // half of the node until 10⁹ are done
  EXPECT_NEAR(t.compute_seconds[1], 4, kExact);  // 10⁹ shared, 2·10⁹ alone
  EXPECT_NEAR(t.compute_seconds[2], 1, kExact);
}

TEST(Superstep, ExternalLoadReducesANodesSpeed) {
  Platform platform = two_sets();
  platform.sets[0].nodes[0].load = 0.75;
  EXPECT_NEAR(simulated(platform, {.instructions = {1e9}}, on({0})).compute_seconds[0], 4, kExact);
}

TEST(Superstep, MessageStartsAfterItsSenderComputes) {
  // 1 MB at 100 MB/s over two links of 1 ms
  const Simulated t = simulated(two_sets(), {.instructions = {5e8, 1e8}, .messages = {message(0, 1, 1e6)}}, on({0, 1}));
  EXPECT_NEAR((t.recv_seconds[1, 0]), 0.012, kExact);
  EXPECT_EQ((t.recv_seconds[1, 1]), 0);
  EXPECT_EQ((t.recv_bytes[1, 0]), 1e6);
  EXPECT_NEAR(t.seconds, 0.5 + 0.012, kExact);
}

TEST(Superstep, StrictPhasesStartMessagesAfterAllCompute) {
  Platform platform = two_sets();
  platform.departure = Departure::kAllReady;
  const Demand demand{.instructions = {1e8, 1e9}, .messages = {message(0, 1, 1e6)}};
  EXPECT_NEAR(simulated(platform, demand, on({0, 1})).seconds, 1.012, kExact);
  EXPECT_NEAR(simulated(two_sets(), demand, on({0, 1})).seconds, 1, kExact);  // otherwise it has long arrived
}

TEST(Superstep, MessagesBetweenSetsShareTheUplink) {
  const Demand one{.instructions = {0, 0, 0, 0}, .messages = {message(0, 2, 1e6)}};
  const Demand two{.instructions = {0, 0, 0, 0}, .messages = {message(0, 2, 1e6), message(1, 3, 1e6)}};
  const Demand across{.instructions = {0, 0, 0, 0}, .messages = {message(0, 2, 1e6), message(3, 1, 1e6)}};
  EXPECT_NEAR(simulated(two_sets(), one, on({0, 1, 2, 3})).seconds, 0.022, kExact);     // 1 MB at 50 MB/s
  EXPECT_NEAR(simulated(two_sets(), two, on({0, 1, 2, 3})).seconds, 0.042, kExact);     // at 25 MB/s each
  EXPECT_NEAR(simulated(two_sets(), across, on({0, 1, 2, 3})).seconds, 0.022, kExact);  // full duplex
  Platform wide = two_sets();
  wide.sets[0].uplink.shared = false;
  EXPECT_NEAR(simulated(wide, two, on({0, 1, 2, 3})).seconds, 0.022, kExact);
}

TEST(Superstep, StoredMessagesCrossTheUplinkAndThenTheReceiversLink) {
  Platform platform = two_sets();
  platform.forwarding = Forwarding::kStored;
  const Demand one{.instructions = {0, 0, 0, 0}, .messages = {message(0, 2, 1e6)}};
  const Demand two{.instructions = {0, 0, 0, 0}, .messages = {message(0, 2, 1e6), message(1, 3, 1e6)}};
  const Demand inside{.instructions = {0, 0, 0, 0}, .messages = {message(0, 1, 1e6)}};
  const Simulated alone = simulated(platform, one, on({0, 1, 2, 3}));
  EXPECT_NEAR(alone.seconds, 0.02 + 0.011, kExact);  // 1 MB at 50 MB/s, then at 100 MB/s and 1 ms
  EXPECT_NEAR((alone.recv_seconds[2, 0]), 0.031, kExact);
  EXPECT_NEAR(simulated(platform, two, on({0, 1, 2, 3})).seconds, 0.04 + 0.011, kExact);  // both share the uplink only
  EXPECT_NEAR(simulated(platform, inside, on({0, 1, 2, 3})).seconds, 0.012, kExact);      // as otherwise
  const auto nodes = decision_platform(platform);
  ASSERT_TRUE(nodes) << nodes.error().message;
  EXPECT_NEAR((nodes->T[0, 1]), 30e-9, 1e-18);
  EXPECT_NEAR((nodes->T[0, 0]), 10e-9, 1e-18);
}

TEST(Superstep, StoredMessagesToOneRankArriveInTurnAsWholes) {
  Platform platform = two_sets();
  platform.forwarding = Forwarding::kStored;
  platform.delivery = Delivery::kInTurn;
  const Demand demand{.instructions = {0, 0, 0}, .messages = {message(0, 2, 1e6), message(1, 2, 1e6)}};
  EXPECT_NEAR(simulated(platform, demand, on({0, 1, 2})).seconds, 2 * 0.031, kExact);
}

TEST(Superstep, WithoutUplinksOnlyNodeLinksCount) {
  Platform platform = two_sets();
  platform.sets[0].uplink = {};
  EXPECT_NEAR(simulated(platform, {.instructions = {0, 0}, .messages = {message(0, 1, 1e6)}}, on({0, 2})).seconds,
              0.012, kExact);
}

TEST(Superstep, MessagesToOneRankShareItsLinkOrArriveInTurn) {
  Platform platform = two_sets();
  const Demand demand{.instructions = {0, 0, 0}, .messages = {message(0, 2, 1e6), message(1, 2, 1e6)}};
  const auto mapping = on({2, 0, 3});  // from b and from a to a rank in b
  const Simulated together = simulated(platform, demand, mapping);
  EXPECT_NEAR((together.recv_seconds[2, 0]), 0.022, kExact);  // both get 50 MB/s
  EXPECT_NEAR((together.recv_seconds[2, 1]), 0.022, kExact);
  platform.delivery = Delivery::kInTurn;
  const Simulated in_turn = simulated(platform, demand, mapping);
  EXPECT_NEAR((in_turn.recv_seconds[2, 1]), 0.012, kExact);
  EXPECT_NEAR((in_turn.recv_seconds[2, 0]), 0.022, kExact);
  EXPECT_NEAR(in_turn.seconds, 0.034, kExact);
}

TEST(Superstep, OverlappingTransitTimesCountOnce) {
  const Demand demand{.instructions = {0, 0, 0}, .messages = {message(0, 2, 1e6), message(1, 2, 2e6)}};
  // Both at 50 MB/s for 20 ms, then the rest of the second, 1 MB, alone; 2 ms latency.
  const Simulated t = simulated(two_sets(), demand, on({2, 2, 3}));
  EXPECT_NEAR((t.recv_seconds[2, 1]), 0.032, kExact);
  EXPECT_EQ((t.recv_bytes[2, 1]), 3e6);
}

TEST(Superstep, MessagesWithinANodeCostNothing) {
  const Simulated t = simulated(two_sets(), {.instructions = {1e9, 0}, .messages = {message(0, 1, 1e9)}}, on({0, 0}));
  EXPECT_NEAR(t.seconds, 1, kExact);
  EXPECT_EQ((t.recv_seconds[1, 0]), 0);
  EXPECT_EQ((t.recv_bytes[1, 0]), 1e9);
}

TEST(Superstep, MessagesCrossTrunks) {
  Platform platform = two_sets();
  platform.sets.push_back({.name = "c",
                           .nodes = {{.name = "c0", .speed = 1e9}},
                           .link = {.bandwidth = 1e9, .latency = 0},
                           .router = "far"});
  platform.trunks = {{.from = "", .to = "middle", .link = {.bandwidth = 1e9, .latency = 0.1}},
                     {.from = "far", .to = "middle", .link = {.bandwidth = 10e6, .latency = 0.2}}};
  const Demand demand{.instructions = {0, 0}, .messages = {message(0, 1, 1e6)}};
  EXPECT_NEAR(simulated(platform, demand, on({2, 4})).seconds, 0.1 + 0.001 + 0.1 + 0.2, kExact);  // 1 MB at 10 MB/s
  EXPECT_NEAR(simulated(platform, demand, on({4, 2})).seconds, 0.1 + 0.001 + 0.1 + 0.2, kExact);
  const auto nodes = decision_platform(platform);
  ASSERT_TRUE(nodes);
  EXPECT_DOUBLE_EQ((nodes->T[2, 0]), 1e-7);
  EXPECT_DOUBLE_EQ((nodes->T[0, 1]), 2e-8);
  EXPECT_DOUBLE_EQ((nodes->T[1, 1]), 1e-8);
}

TEST(Superstep, RepeatedSuperstepsAreCached) {
  const Platform platform = two_sets();
  const auto nodes = decision_platform(platform);
  auto supersteps = Supersteps::start(platform, *nodes, true);
  ASSERT_TRUE(supersteps) << supersteps.error().message;
  const Demand demand{.instructions = {1e9, 2e9}, .messages = {message(0, 1, 1e6)}};
  const Simulated first = **supersteps->run(demand, on({0, 1}));
  EXPECT_NE((*supersteps->run(demand, on({0, 2})))->seconds, first.seconds);
  EXPECT_EQ((*supersteps->run(demand, on({0, 1})))->seconds, first.seconds);
  EXPECT_EQ(supersteps->simulated(), 2u);
}

}  // namespace
}  // namespace bsp::sim::test
