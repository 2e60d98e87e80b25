// A job that goes by price, whose prices are unknown, wrong, or change: what it says, and what becomes of plans made before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "operator/reconcile/kernel/prices.h"
#include "operator/reconcile/kernel/status.h"
#include "tests/unit/reconcile/rescheduling_fixture.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Prices : public ::testing::Test {
 protected:
  Prices() {
    w.also_seen = [this](Observed& o) {
      for (observe::NodeFacts& node : o.nodes) node.price = price.at(node.set);
      if (!wrong.empty()) o.nodes.front().price = 0, o.nodes.front().wrong_price = wrong;
    };
    w.job.spec.objective.type = crds::ObjectiveType::kPrice;
    check(w.run_until(crds::JobPhase::kRunning), "the job runs");
  }
  std::string said() {
    w.tick();
    const crds::Condition* c = crds::find_condition(w.job.status.conditions, kPricesUnknown);
    return c && c->status == crds::ConditionStatus::kTrue ? c->message : "";
  }
  // Rank 0 is to go to fast, as that is cheaper.
  void decide() {
    price = {{"slow", 3}, {"fast", 1}};
    w.decide({{.migration = "", .rank = 0, .set = "fast", .node = "fast-0", .predicted_gain_seconds = 1}});
  }
  void expect_cancelled(const char* why) {
    ASSERT_TRUE(w.run_until([&] { return w.wave_phase() == migrate::Phase::kRolledBack; })) << w.trace;
    EXPECT_EQ(w.job.status.ranks[0].set, "slow");
    const bool told = std::ranges::any_of(w.events, [&](const Event& e) { return e.message.contains(why); });
    EXPECT_TRUE(told) << w.trace;
    EXPECT_EQ(w.violation, "");
  }

  sim::World w{{.ranks = 2, .slow = 2, .fast = 2}};
  std::map<std::string, double> price{{"slow", 1}, {"fast", 3}};
  std::string wrong;
};

TEST_F(Prices, ThatAreUnknownAreTold) {
  EXPECT_EQ(said(), "");
  price["fast"] = 0;
  EXPECT_THAT(said(), HasSubstr("2 of 4 nodes have no price and count as the dearest"));
  price["fast"] = 2;
  EXPECT_EQ(said(), "");
  price = {{"slow", 0}, {"fast", 0}};
  EXPECT_THAT(said(), HasSubstr("no node has a price, so that the cheapest job is the shortest"));
  w.job.spec.objective = {};
  EXPECT_EQ(said(), "") << "by time alone prices aren't read";
}

TEST_F(Prices, ThatCantBeReadAreTold) {
  wrong = "0,81";
  EXPECT_THAT(said(),
              HasSubstr("1 of 4 nodes has no price and counts as the dearest; migbsp.io/price-per-hour of node"));
  EXPECT_THAT(said(), HasSubstr("is \"0,81\" and no number above 0"));
  EXPECT_THAT(said(), HasSubstr("annotate"));
}

TEST_F(Prices, AWaveIsCarriedOutAtThePricesThatItWasDecidedBy) {
  decide();
  ASSERT_TRUE(w.run_until([&] { return w.job.status.ranks[0].set == "fast"; })) << w.trace;
}

TEST_F(Prices, AWaveThatSavesLessByNowIsNotCarriedOut) {
  decide();
  ASSERT_TRUE(w.run_until(migrate::Phase::kPreparing));
  price = {{"slow", 3}, {"fast", 9}};
  expect_cancelled("prices have changed since it was decided: the ranks' slots would cost +6 an hour instead of -2");
}

TEST_F(Prices, AWaveThatSavesMoreByNowIsCarriedOut) {
  decide();
  ASSERT_TRUE(w.run_until(migrate::Phase::kPreparing));
  price = {{"slow", 9}, {"fast", 1}};
  ASSERT_TRUE(w.run_until([&] { return w.job.status.ranks[0].set == "fast"; })) << w.trace;
}

TEST_F(Prices, AWaveForAnotherObjectiveIsNotCarriedOut) {
  decide();
  ASSERT_TRUE(w.run_until(migrate::Phase::kPreparing));
  w.job.spec.objective = {};
  expect_cancelled("spec.objective has changed since it was decided");
}

TEST_F(Prices, WhatPeopleAskForIsCarriedOutAtAnyPrice) {
  w.migrate_by_hand("by-hand", 0, "fast");
  ASSERT_TRUE(w.run_until(migrate::Phase::kPreparing));
  price = {{"slow", 1}, {"fast", 100}};
  ASSERT_TRUE(w.run_until([&] { return w.job.status.ranks[0].set == "fast"; })) << w.trace;
}

// A window that has grown long ends soon when what it is about changes.
class LongWindow : public Rescheduling {
 protected:
  LongWindow() {
    o.job.spec.rescheduling.heuristic = crds::Heuristic::kAuto;
    o.job.spec.objective.type = crds::ObjectiveType::kPrice;
    o.job.spec.objective.max_slowdown = 5;  // it is in no hurry to leave slow
    price("slow", 1);
    price("fast", 5);
    scheduler = std::make_unique<Rescheduler>(rescheduler());
    while (o.job.status.alpha < 30 && t < 2000) run();
    check(o.job.status.alpha >= 30, "the window has grown");
    while (!run()) check(t < 4000, "a call comes");
  }
  void price(const std::string& set, double each) {
    for (observe::NodeFacts& node : o.nodes)
      if (node.set == set) node.price = each;
  }
  std::optional<Decided> run() {
    std::optional<Decided> decided = feed(*scheduler, t++);
    store(*scheduler);
    return decided;
  }
  // Supersteps to the next call.
  std::uint64_t wait() {
    const std::uint64_t begin = t;
    while (!(last = run())) check(t < begin + 1000, "a call comes");
    return t - begin;
  }

  std::unique_ptr<Rescheduler> scheduler;
  std::uint64_t t = 1;
  std::optional<Decided> last;
};

TEST_F(LongWindow, EndsSoonAfterAPriceHasChanged) {
  run();
  price("slow", 9);
  EXPECT_LE(wait(), 8u);
  EXPECT_THAT(last->moves, Not(IsEmpty())) << last->decision.message;
  EXPECT_THAT(last->decision.message, HasSubstr("the ranks' slots cost 23 an hour, ")) << last->decision.message;
}

TEST_F(LongWindow, StaysLongIfNoPriceChanges) {
  run();
  EXPECT_GT(wait(), 20u);
}

TEST_F(LongWindow, EndsSoonAfterItsObjectiveHasChanged) {
  run();
  o.job.spec.objective = {};
  EXPECT_TRUE(scheduler->follow(o.job.spec));
  EXPECT_LE(wait(), 8u);
}

TEST_F(LongWindow, SaysThatTheDeadlineIsOver) {
  o.job.spec.objective.type = crds::ObjectiveType::kDeadline;
  o.job.spec.objective.deadline = "1s";
  o.job.spec.rescheduling.expected_supersteps = 100'000;
  o.job.status.start_time = o.now - std::chrono::seconds(11);
  EXPECT_TRUE(scheduler->follow(o.job.spec));
  wait();
  EXPECT_THAT(last->decision.message, HasSubstr("the deadline passed 10 s ago")) << last->decision.message;
  o.job.spec.objective.deadline = "1h";
  EXPECT_TRUE(scheduler->follow(o.job.spec));
  wait();
  EXPECT_THAT(last->decision.message, HasSubstr("the deadline will be missed by about ")) << last->decision.message;
}

}  // namespace
}  // namespace bsp::reconcile
