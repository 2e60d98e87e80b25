// Naive and Increments, step by step.
#include <gtest/gtest.h>

#include "tests/unit/exchange/group.h"

namespace bsp::exchange {
namespace {

TEST(Naive, BroadcastsBeyondTheThresholdOnly) {
  Group group(Mechanism::kNaive, 3, 1, 10);
  group.start({100});
  group.settle();
  EXPECT_EQ(group.count(Kind::kHello), 6u);
  group.change(0, 10);
  EXPECT_EQ(group.count(Kind::kLoads), 0u);
  group.change(0, 1);
  EXPECT_EQ(group.count(Kind::kLoads), 2u);
  group.settle();
  EXPECT_EQ(group[1].view().load(0), 111);
  group.change(0, -3);
  group.settle();
  EXPECT_EQ(group[1].view().load(0), 111);
  group.tick(0);
  group.settle();
  EXPECT_EQ(group[1].view().load(0), 108);
}

TEST(Naive, DropsAnOlderValueThatArrivesLate) {
  Group group(Mechanism::kNaive, 2);
  group.start({0});
  group.change(0, 1);
  group.change(0, 1);
  // The newest arrives first; the Hello of 0 and its first change arrive after it.
  while (!group.flying.empty()) group.deliver([](std::size_t n) { return n - 1; }, false);
  EXPECT_EQ(group[1].view().load(0), 2);
}

TEST(Naive, TwoDecidersPickTheSameTarget) {
  Group group(Mechanism::kNaive, 3);
  group.start({0});
  group.settle();
  group.want(0);
  group.decided(0, {{.to = 2, .resource = 0, .amount = 5}});
  group.settle();
  group.want(1);
  EXPECT_TRUE(group.ready[1]);
  EXPECT_EQ(group[1].view().load(2), 0) << "decisions aren't announced";
  group.change(2, 5, true);
  group.settle();
  EXPECT_EQ(group[1].view().load(2), 5);
}

TEST(Increments, NextDeciderSeesTheDecision) {
  Group group(Mechanism::kIncrements, 3);
  group.start({0});
  group.settle();
  group.want(0);
  group.decided(0, {{.to = 2, .resource = 0, .amount = 5}});
  EXPECT_EQ(group[0].view().load(2), 5) << "at once by the decider itself";
  group.settle();
  EXPECT_EQ(group[1].view().load(2), 5);
  EXPECT_EQ(group[2].own()[0], 5);
}

TEST(Increments, CountsAReservationOnceInEitherOrder) {
  for (const bool before : {true, false}) {
    Group group(Mechanism::kIncrements, 3);
    group.start({1});
    group.settle();
    group.want(0);
    group.decided(0, {{.to = 2, .resource = 0, .amount = 5}});
    if (before) group.change(2, 5, true);
    group.settle();
    if (!before) group.change(2, 5, true);
    group.change(2, -2);
    group.settle();
    for (Member m = 0; m < 3; ++m) EXPECT_EQ(group[m].view().load(2), 4) << "at member " << m;
  }
}

TEST(Increments, SmallChangesAddUpToOneMessage) {
  Group group(Mechanism::kIncrements, 4, 2, 10);
  group.start({0, 0});
  group.settle();
  for (int i = 0; i < 5; ++i) group.change(1, 2, false, 1);
  group.change(1, 1, false, 0);
  EXPECT_EQ(group.count(Kind::kLoads), 0u);
  group.change(1, 2, false, 1);
  EXPECT_EQ(group.count(Kind::kLoads), 3u);
  group.settle();
  EXPECT_EQ(group[0].view().load(1, 1), 12);
  EXPECT_EQ(group[0].view().load(1, 0), 1) << "a message has all resources";
}

TEST(NoMoreMaster, GetsReservationsButNoLoads) {
  for (const Mechanism mechanism : {Mechanism::kNaive, Mechanism::kIncrements}) {
    Group group(mechanism, 4);
    group.start({0});
    group.settle();
    group.no_more(3);
    group.settle();
    EXPECT_EQ(group.count(Kind::kNoMoreMaster), 3u);
    group.change(0, 1);
    EXPECT_EQ(group.count(Kind::kLoads), 2u) << to_string(mechanism);
    group.settle();
    EXPECT_EQ(group[3].view().load(0), 0);
    EXPECT_EQ(group[1].view().load(0), 1);
  }
  Group group(Mechanism::kIncrements, 4);
  group.start({0});
  group.no_more(3);
  group.no_more(2);
  group.settle();
  group.want(0);
  group.decided(0, {{.to = 3, .resource = 0, .amount = 7}});
  EXPECT_EQ(group.count(Kind::kReserve), 2u) << "to 1, which decides, and 3, which gets the work";
  group.settle();
  EXPECT_EQ(group[3].own()[0], 7);
  EXPECT_EQ(group[1].view().load(3), 7);
}

TEST(Maintained, ViewIsReadyWhenAllHaveSentHelloOrAreLost) {
  Group group(Mechanism::kIncrements, 3);
  group.start({1});
  group.want(0);
  EXPECT_FALSE(group.ready[0]);
  // Only member 1's messages arrive.
  std::erase_if(group.flying, [](const Group::Flying& f) { return f.from == 2; });
  group.settle();
  EXPECT_FALSE(group.ready[0]);
  group.report_lost(0, 2);
  EXPECT_TRUE(group.ready[0]);
  EXPECT_TRUE(group[0].view().lost(2));
}

TEST(Maintained, KnownInitialLoadsNeedNoHello) {
  auto machine = make_protocol(Mechanism::kNaive, {.self = 1, .members = 2, .initial = {3, 4}});
  Output out;
  machine->start(std::vector<double>{4}, out);
  machine->want_decision(out);
  EXPECT_TRUE(out.sends.empty());
  EXPECT_TRUE(out.ready);
  EXPECT_EQ(machine->view().load(0), 3);
}

// New machines after others: a member's carried load counts until it sends Hello.
TEST(Maintained, CarriedLoadsCountUntilTheHello) {
  for (const Mechanism mechanism : {Mechanism::kNaive, Mechanism::kIncrements}) {
    const auto machine =
        make_protocol(mechanism, {.self = 0, .members = 3, .resources = 1, .initial = {}, .carried = {1, 5, 7}});
    Output out;
    machine->start(std::vector<double>{2}, out);
    EXPECT_EQ(machine->view().total(0), 2 + 5 + 7);
    machine->want_decision(out);
    EXPECT_FALSE(out.ready) << "carried loads alone don't make the view ready";
    machine->received(1, {.kind = Kind::kHello, .id = 1, .loads = {4}}, out);
    machine->lost(2, out);
    EXPECT_TRUE(out.ready);
    EXPECT_EQ(machine->view().load(1), 4);
    EXPECT_EQ(machine->view().load(2), 7) << "it is the best knowledge";
  }
}

TEST(Maintained, ResourcesCanBeAddedLater) {
  for (const Mechanism mechanism : {Mechanism::kNaive, Mechanism::kIncrements}) {
    const auto machine = make_protocol(mechanism, {.self = 0, .members = 2, .resources = 1, .initial = {}});
    Output out;
    machine->start(std::vector<double>{2}, out);
    machine->received(1, {.kind = Kind::kHello, .id = 1, .loads = {4}}, out);
    machine->grow(2);
    EXPECT_EQ(machine->view().load(0, 0), 2);
    EXPECT_EQ(machine->view().load(1, 0), 4);
    EXPECT_EQ(machine->view().total(1), 0);
    out = {};
    machine->load_changed(1, 3, false, out);
    ASSERT_EQ(out.sends.size(), 1u);
    EXPECT_EQ(out.sends[0].message.loads.at(1), 3);
  }
}

}  // namespace
}  // namespace bsp::exchange
