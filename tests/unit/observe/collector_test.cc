// What the collector makes of reports that come late, twice, out of order or not at all, and which it asks for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "operator/observe/collector.h"

namespace bsp::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

wire::SuperstepReport step(std::uint64_t superstep) {
  wire::SuperstepReport s;
  s.superstep = superstep;
  s.instructions = superstep * 1000;
  s.compute_ns = 2'000'000'000;
  s.comm_ns = 300'000'000;
  s.edge_ns = 200'000'000;
  return s;
}
wire::RankReport report(std::uint32_t rank, std::vector<std::uint64_t> supersteps, std::uint64_t memory = 0) {
  wire::RankReport r;
  r.rank = rank;
  r.memory_bytes = memory;
  for (std::uint64_t s : supersteps) r.supersteps.push_back(step(s)), r.completed = s;
  return r;
}
std::vector<std::uint64_t> take_all(Collector& c) {
  std::vector<std::uint64_t> taken;
  while (auto s = c.take()) taken.push_back(s->superstep.value);
  return taken;
}

TEST(Collector, ASuperstepIsWholeWhenAllRanksHaveReportedIt) {
  Collector c(3, 2);
  c.add(report(0, {1, 2}));
  c.add(report(1, {1}));
  EXPECT_FALSE(c.take());
  EXPECT_EQ(c.completed(2), 0u);
  c.add(report(2, {1, 2, 3}));
  EXPECT_THAT(take_all(c), ElementsAre(1));
  EXPECT_EQ(c.completed(2), 3u);
  c.add(report(1, {2}));
  EXPECT_THAT(take_all(c), ElementsAre(2));
}

TEST(Collector, WhatOneRankLostIsSkippedByAll) {
  Collector c(2, 1);
  c.add(report(0, {1, 2, 3, 4, 5, 6}));
  c.add(report(1, {3, 5, 6}));
  EXPECT_THAT(take_all(c), ElementsAre(3, 5, 6));
  c.add(report(1, {1, 2, 4}));  // too late
  EXPECT_THAT(take_all(c), IsEmpty());
}

TEST(Collector, AsksForWhatItDoesNotHave) {
  Collector c(2, 1);
  EXPECT_EQ(c.since(0), 0u);
  c.add(report(0, {1, 2, 3}));
  c.add(report(1, {1}));
  EXPECT_EQ(c.since(0), 3u);
  EXPECT_EQ(c.since(1), 1u);
  take_all(c);
  EXPECT_EQ(c.since(1), 1u);
  c.skip_to(10);
  EXPECT_EQ(c.since(0), 10u);
  c.add(report(0, {9, 10, 11}));
  c.add(report(1, {9, 10, 11}));
  EXPECT_THAT(take_all(c), ElementsAre(11));
}

TEST(Collector, FieldsAndUnits) {
  Collector c(2, 3);
  wire::RankReport a = report(0, {7}, 1234), b = report(1, {7});
  a.supersteps[0].recv_bytes = {10, 20};  // trailing zeros are cut
  b.supersteps[0].edge_ns = 0;
  b.supersteps[0].compute_ns = 4'000'000'000;
  b.supersteps[0].recv_bytes = {1, 2, 3, 4};  // a Set that is none of ours
  b.supersteps[0].recv_ns = {200'000'000, 0, 100'000'000};
  c.add(a);
  c.add(b);
  const auto s = c.take();
  ASSERT_TRUE(s);
  EXPECT_EQ(s->superstep.value, 7u);
  EXPECT_THAT(s->instructions, ElementsAre(7000, 7000));
  EXPECT_THAT(s->compute_seconds, ElementsAre(2, 4));
  EXPECT_DOUBLE_EQ(s->communication_seconds, 0.3) << "of the rank that came last";
  EXPECT_EQ((s->recv_bytes[0, 1]), 20);
  EXPECT_EQ((s->recv_bytes[0, 2]), 0);
  EXPECT_EQ((s->recv_bytes[1, 2]), 3);
  EXPECT_DOUBLE_EQ((s->recv_seconds[1, 0]), 0.2);
  EXPECT_DOUBLE_EQ((s->recv_seconds[1, 2]), 0.1);
  EXPECT_EQ(c.memory_bytes(0), 1234u);
  EXPECT_EQ(c.memory_bytes(1), 0u);
  ASSERT_THAT(c.history(), SizeIs(1));
  const SuperstepTimes& t = c.history().front();
  EXPECT_DOUBLE_EQ(t.seconds, (2.5 + 4.3) / 2);
  EXPECT_DOUBLE_EQ(t.imbalance, 4.3 / 3.3 - 1) << "2.3 s and 4.3 s: the shared phase of 0.3 s counts for both";
}

// Rank 0 computes for 1 s, `later` for 3 s. Rank 0 then receives `received` s, waits `edge` s at the edge, and the others 0.1 s.
struct Late {
  std::uint32_t later = 1;
  std::vector<double> received{};
  double edge = 0.1;
  std::vector<std::uint32_t> partners{};  // of rank 0
};
std::vector<double> received_by_rank_0(const Late& late) {
  const auto ns = [](double seconds) { return static_cast<std::uint64_t>(std::llround(seconds * 1e9)); };
  Collector c(3, 2);
  for (std::uint32_t i = 0; i < 3; ++i) {
    wire::RankReport one = report(i, {1});
    wire::SuperstepReport& s = one.supersteps[0];
    s.compute_ns = ns(i == late.later ? 3 : 1), s.comm_ns = 0, s.edge_ns = ns(0.1);
    if (i == 0) {
      s.edge_ns = ns(late.edge);
      for (const double seconds : late.received) s.recv_bytes.push_back(1000), s.recv_ns.push_back(ns(seconds));
      s.comm_ns = ns(2.2);
      one.partners = late.partners, one.partner_bytes.assign(late.partners.size(), 1000);
    }
    c.add(one);
  }
  const auto s = c.take();
  return {s->recv_seconds[0, 0], s->recv_seconds[0, 1]};
}

TEST(Collector, AWaitForASenderThatComputesLongerIsNoTransfer) {
  using testing::DoubleNear;
  const auto are = [](double first, double second) {
    return ElementsAre(DoubleNear(first, 1e-6), DoubleNear(second, 1e-6));
  };
  EXPECT_THAT(received_by_rank_0({.received = {2.2}, .partners = {1}}), are(0.2, 0)) << "2 s of 2.2 were the wait";
  EXPECT_THAT(received_by_rank_0({.received = {2.2}}), are(0.2, 0)) << "nothing is known of who it hears from";
  EXPECT_THAT(received_by_rank_0({.received = {1.1, 1.1}, .partners = {2, 1}}), are(0.1, 0.1));
  EXPECT_THAT(received_by_rank_0({.received = {0.2}, .partners = {1}}), are(0.2, 0))
      << "the shim has left it out already";
  EXPECT_THAT(received_by_rank_0({.received = {2.2}, .partners = {2}}), are(2.2, 0)) << "the sender wasn't late";
  EXPECT_THAT(received_by_rank_0({.received = {2.2}, .edge = 2.1, .partners = {1}}), are(2.2, 0))
      << "it waited at the edge: what it received, it had received before";
  EXPECT_THAT(received_by_rank_0({.later = 0, .received = {2.2}, .partners = {1}}), are(2.2, 0));
}

// As last reported, less what can't be.
TEST(Collector, PartnersAreRanksOfTheJob) {
  Collector c(3, 2);
  const auto heard = [&](std::vector<std::uint32_t> ranks, std::vector<std::uint64_t> bytes) {
    wire::RankReport one = report(0, {});
    one.partners = std::move(ranks);
    one.partner_bytes = std::move(bytes);
    c.add(one);
    return c.partners(0);
  };
  using decide::Partner;
  EXPECT_THAT(c.partners(0), testing::IsEmpty());
  EXPECT_THAT(heard({2, 1}, {300, 20}), ElementsAre(Partner{{2}, 300}, Partner{{1}, 20}));
  EXPECT_THAT(heard({}, {}), testing::SizeIs(2)) << "nothing new";
  EXPECT_THAT(heard({~0u, 0, 3, 1, 1}, {9, 8, 7, 6, 5}), ElementsAre(Partner{{1}, 6}))
      << "no such rank, itself, no such rank, and one twice";
  EXPECT_THAT(heard({1, 2}, {6}), ElementsAre(Partner{{1}, 6}));
  EXPECT_THAT(heard(std::vector<std::uint32_t>(100, 2), std::vector<std::uint64_t>(100, 1)),
              ElementsAre(Partner{{2}, 1}));
  EXPECT_THAT(c.partners(1), testing::IsEmpty());
  EXPECT_THAT(c.partners(7), testing::IsEmpty());
  wire::RankReport stranger = report(9, {});
  stranger.partners = {0}, stranger.partner_bytes = {1};
  c.add(stranger);
}

// Where no decision would use them, nothing is kept.
TEST(Collector, PartnersOfVeryManyRanksAreDropped) {
  Collector c(20'001, 1);
  wire::RankReport one = report(0, {});
  one.partners = {1}, one.partner_bytes = {1};
  c.add(one);
  EXPECT_THAT(c.partners(0), testing::IsEmpty());
}

TEST(Collector, UnknownRanksAreIgnoredAndHistoryIsBounded) {
  Collector c(1, 1);
  c.add(report(1, {1}));
  EXPECT_FALSE(c.take());
  for (std::uint64_t t = 1; t <= Collector::kHistory + 50; ++t) {
    c.add(report(0, {t}));
    ASSERT_TRUE(c.take());
  }
  EXPECT_EQ(c.history().size(), Collector::kHistory);
  EXPECT_EQ(c.history().front().superstep, 51u);
}

// Rank 1 is silent for long, or never was: what it can still deliver is the last 256, and no more of rank 0 is held.
TEST(Collector, WhatWaitsForASilentRankIsBounded) {
  Collector c(2, 1);
  for (std::uint64_t s = 1; s <= 10'000; ++s) {
    wire::RankReport one = report(0, {s});
    one.supersteps[0].recv_bytes = std::vector<std::uint64_t>(64, 1);
    c.add(one);
  }
  EXPECT_FALSE(c.take());
  EXPECT_EQ(c.since(0), 10'000u);
  std::vector<std::uint64_t> last;
  for (std::uint64_t s = 9'700; s <= 10'000; ++s) last.push_back(s);
  c.add(report(1, last));
  std::vector<std::uint64_t> taken;
  while (const auto step = c.take()) taken.push_back(step->superstep.value);
  ASSERT_EQ(taken.size(), wire::kMostRecords);
  EXPECT_EQ(taken.front(), 9'745u);
  EXPECT_EQ(taken.back(), 10'000u);
}

// Reports in any order, doubled, some lost: every superstep comes at most once, in order, and each that all ranks
// reported before a later one was taken comes.
TEST(Collector, AnyOrderOfReportsGivesEachSuperstepOnce) {
  EXPECT_TRUE(rc::check([] {
    const auto ranks = *rc::gen::inRange<std::uint32_t>(1, 5);
    Collector c(ranks, 1);
    std::vector<std::set<std::uint64_t>> collected(ranks);
    std::uint64_t last = 0;
    const auto reports = *rc::gen::container<std::vector<std::pair<std::uint32_t, std::uint64_t>>>(
        rc::gen::pair(rc::gen::inRange<std::uint32_t>(0, ranks), rc::gen::inRange<std::uint64_t>(1, 12)));
    for (const auto& [rank, superstep] : reports) {
      c.add(report(rank, {superstep}));
      if (superstep > last) collected[rank].insert(superstep);
      while (auto s = c.take()) {
        RC_ASSERT(s->superstep.value > last);
        last = s->superstep.value;
        for (const auto& t : collected) RC_ASSERT(t.contains(last));
      }
      for (std::uint64_t t = last + 1; t < 12; ++t)
        RC_ASSERT(!std::ranges::all_of(collected, [&](const auto& have) { return have.contains(t); }));
    }
  }));
}

// What a round of requests to all ranks finds, until the sample has settled.
std::uint64_t settled(std::size_t ranks, std::uint64_t supersteps_in_a_round) {
  Sampling s(ranks);
  for (int round = 0; round < 100; ++round) {
    for (std::size_t i = 0; i < ranks; ++i) s.completed(supersteps_in_a_round);
    s.begin_round();
  }
  return s.every();
}

TEST(Sampling, AsksForWhatCanBeRead) {
  EXPECT_EQ(settled(4, 100), 1u);
  EXPECT_EQ(settled(1000, 5), 1u);
  EXPECT_EQ(settled(1000, 50), 8u) << "5 ms";
  EXPECT_EQ(settled(10'000, 1), 1u) << "each of long supersteps";
  EXPECT_EQ(settled(10'000, 5), 4u);
}

TEST(Sampling, IsWiderWhileRanksAreAskedTooRarely) {
  Sampling s(10);
  const auto turn = [&](std::uint64_t supersteps) {
    for (int i = 0; i < 10; ++i) s.completed(supersteps);
    s.begin_round();
  };
  for (int i = 0; i < 8; ++i) turn(200);
  const std::uint64_t wide = s.every();
  EXPECT_GE(wide, 4u) << "of a ring of 256, half was new";
  EXPECT_LE(wide, 16u) << "what was requested before a change says nothing about it";
  for (int i = 0; i < 100; ++i) turn(1);
  EXPECT_EQ(s.every(), 1u);
}

TEST(Sampling, OneRankThatClaimsMuchChangesNothing) {
  Sampling s(100);
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 99; ++i) s.completed(1);
    s.completed(1ull << 40);
    s.begin_round();
  }
  EXPECT_EQ(s.every(), 1u);
}

TEST(Sampling, TheSampleHasNoPeriodAndHoldsThoseOfItsMultiples) {
  for (const std::uint64_t every : {1, 2, 8, 64}) {
    std::uint64_t in_it = 0;
    std::set<std::uint64_t> phases;  // of a program whose work recurs every 64 supersteps
    for (std::uint64_t t = 1; t <= 1'000'000; ++t) {
      if (!wire::sampled(t, every)) continue;
      ++in_it;
      phases.insert(t % 64);
      EXPECT_TRUE(wire::sampled(t, every / 2));
    }
    EXPECT_NEAR(static_cast<double>(in_it), 1e6 / static_cast<double>(every), 5e4 / static_cast<double>(every))
        << every;
    EXPECT_EQ(phases.size(), 64u) << every;
  }
}

TEST(MeanTimes, OfTheSuperstepsBetween) {
  std::deque<SuperstepTimes> history;
  for (std::uint64_t t = 1; t <= 5; ++t)
    history.push_back({.superstep = t,
                       .seconds = static_cast<double>(t),
                       .imbalance = 0,
                       .compute_seconds = {1.0 * static_cast<double>(t), 2},
                       .instructions = {}});
  const auto mean = mean_times(history, 2, 4);
  ASSERT_TRUE(mean);
  EXPECT_EQ(mean->supersteps, 3u);
  EXPECT_DOUBLE_EQ(mean->seconds, 3);
  EXPECT_THAT(mean->compute_seconds, ElementsAre(3, 2));
  EXPECT_FALSE(mean_times(history, 6, 9));
  EXPECT_FALSE(mean_times({}, 0, 9));
}

}  // namespace
}  // namespace bsp::observe
