// Links that all ranks' messages share: what is learned of them, what a mapping takes over them, and what Auto makes of it.
#include "operator/decide/model/links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "operator/decide/auto/auto.h"
#include "operator/decide/auto/partners.h"
#include "operator/decide/make_plan.h"
#include "tests/bench/closed_loop.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

constexpr std::uint64_t kLinksSeed = 20261125;

Params of_auto(std::uint64_t expected = 0) {
  Params params;
  take_heuristic(params, Heuristic::kAuto);
  params.expected_supersteps = expected;
  return params;
}

double seconds_at_home(const LoopJob& job) {
  std::vector<ProcessorId> on;
  for (const Rank& rank : job.start.ranks) on.push_back(rank.processor);
  return static_cast<double>(job.supersteps) * job.superstep_seconds(on);
}

// --- What is learned ---

// `ranks` that each receive `bytes` over a link at `pace` s/byte, or over one that carries `capacity` bytes/s, if that takes longer.
void cross(LinkSeen& link, std::size_t ranks, double bytes, double pace, double capacity, double T,
           int supersteps = 12) {
  const double all = static_cast<double>(ranks) * bytes, seconds = std::max(bytes * pace, all / capacity);
  for (int t = 0; t < supersteps; ++t)
    link.add({.bytes = all, .most = bytes, .seconds = seconds * (t % 2 == 0 ? 1.02 : 0.98)}, T);
}
constexpr double kWide = 1e12, kMeasuredT = 1e-8;

TEST(LinkSeen, NothingIsAssumedOfALinkWhosePaceIsTheSame) {
  for (const double T : {0.0, kMeasuredT}) {
    LinkSeen link;
    for (const std::size_t ranks : {1, 4, 32, 2, 64}) cross(link, ranks, 1e6, kMeasuredT, kWide, T);
    EXPECT_EQ(link.capacity(), 0);
  }
}

TEST(LinkSeen, SharedIsOneThatIsSlowerThanItsTWasMeasured) {
  LinkSeen link;
  cross(link, 8, 1e6, kMeasuredT, 2e8, kMeasuredT);
  EXPECT_NEAR(link.capacity(), 2e8, 0.02 * 2e8);
  LinkSeen guessed;
  cross(guessed, 8, 1e6, kMeasuredT, 2e8, 0);
  EXPECT_EQ(guessed.capacity(), 0) << "T was never measured: that is its pace";
  cross(guessed, 2, 1e6, kMeasuredT, 2e8, 0);
  EXPECT_EQ(guessed.capacity(), 0) << "two ranks are quicker: now it would be known what eight take";
  cross(guessed, 8, 1e6, kMeasuredT, 2e8, 0);
  EXPECT_NEAR(guessed.capacity(), 2e8, 0.02 * 2e8);
}

TEST(LinkSeen, OneRankSharesWithNobody) {
  LinkSeen link;
  cross(link, 1, 1e6, 5 * kMeasuredT, kWide, kMeasuredT);
  EXPECT_EQ(link.capacity(), 0);
}

// As in a wavefront: one waits for its neighbour in each superstep, the others receive a barrier's bytes.
TEST(LinkSeen, AFewBytesOfOthersHoldNobodyUp) {
  LinkSeen link;
  for (int t = 0; t < 60; ++t)
    link.add({.bytes = 400'100, .most = 400'000, .seconds = 50 * 400e3 * kMeasuredT}, kMeasuredT);
  EXPECT_EQ(link.capacity(), 0);
}

TEST(LinkSeen, ASuperstepThatWasHeldUpSaysNothing) {
  LinkSeen link;
  cross(link, 8, 1e6, kMeasuredT, kWide, kMeasuredT, 10);
  link.add({.bytes = 8e6, .most = 1e6, .seconds = 1.5 * 1e6 * kMeasuredT}, kMeasuredT);
  cross(link, 8, 1e6, kMeasuredT, kWide, kMeasuredT, 10);
  EXPECT_EQ(link.capacity(), 0);
}

TEST(LinkSeen, LatenciesAreNotDivided) {
  LinkSeen link;
  cross(link, 8, 1e3, 100 * kMeasuredT, kWide, kMeasuredT);
  EXPECT_EQ(link.capacity(), 0);
}

TEST(LinkSeen, CarriesWhatItWasSeenToCarry) {
  LinkSeen link;
  cross(link, 8, 1e6, kMeasuredT, 2e8, kMeasuredT);
  cross(link, 8, 1e6, kMeasuredT, 4e8, kMeasuredT);
  EXPECT_NEAR(link.capacity(), 4e8, 0.02 * 4e8) << "others used it before";
  cross(link, 8, 1e6, kMeasuredT, 2e8, kMeasuredT, (LinkSeen::kFallen - 1) * LinkSeen::kBlock);
  EXPECT_NEAR(link.capacity(), 4e8, 0.02 * 4e8) << "not for long enough";
  EXPECT_EQ(LinkSeen(3e8).capacity(), 3e8) << "from a status";
}

// What others leave of it.
TEST(LinkSeen, CarriesLessOnceOthersUseIt) {
  LinkSeen link;
  cross(link, 8, 1e6, kMeasuredT, 4e8, kMeasuredT, 60);
  cross(link, 8, 1e6, kMeasuredT, 1e8, kMeasuredT, 3 * LinkSeen::kFallen * LinkSeen::kBlock);
  EXPECT_NEAR(link.capacity(), 1e8, 0.05 * 1e8);
  cross(link, 8, 1e6, kMeasuredT, 3e8, kMeasuredT);
  EXPECT_NEAR(link.capacity(), 3e8, 0.05 * 3e8) << "the others are gone";
}

TEST(LinkSeen, FallsByWhatWasSeenInARowOnly) {
  LinkSeen link;
  cross(link, 8, 1e6, kMeasuredT, 4e8, kMeasuredT, 60);
  const double before = link.capacity();
  for (int n = 0; n < 20; ++n) {
    cross(link, 8, 1e6, kMeasuredT, 1e8, kMeasuredT, (LinkSeen::kFallen - 1) * LinkSeen::kBlock);
    EXPECT_NEAR(link.capacity(), before, 0.05 * before);
    cross(link, 8, 1e6, kMeasuredT, 4e8, kMeasuredT, LinkSeen::kBlock);
  }
}

// Fewer bytes that cross at their own pace say nothing of what the link would carry.
TEST(LinkSeen, CarriesNoLessWhereLessCrosses) {
  LinkSeen link;
  cross(link, 8, 1e6, kMeasuredT, 2e8, kMeasuredT);
  cross(link, 1, 1e6, kMeasuredT, 2e8, kMeasuredT, 100);
  for (int t = 0; t < 100; ++t) link.add({.bytes = 1.1e6, .most = 1e6, .seconds = 1e6 * kMeasuredT}, kMeasuredT);
  EXPECT_NEAR(link.capacity(), 2e8, 0.02 * 2e8);
}

// ±10 % on every rank's bytes and time, for 1,000 supersteps: no drift.
TEST(LinkSeen, NoiseMakesItNeitherFallNorRise) {
  double least = 1, most = 1;
  for (const std::size_t ranks : {2, 4, 8, 32})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      std::mt19937_64 random(kLinksSeed + seed);
      const auto noisy = [&](double value) { return value * std::uniform_real_distribution(0.9, 1.1)(random); };
      constexpr double kCapacity = 1e8;
      LinkSeen link;
      double lowest = 2 * kCapacity, seen = 0;
      for (int t = 0; t < 1000; ++t) {
        Crossing crossing;
        for (std::size_t i = 0; i < ranks; ++i) {
          const double bytes = noisy(1e6);
          crossing.bytes += bytes;
          crossing.most = std::max(crossing.most, bytes);
          crossing.seconds = std::max(crossing.seconds, noisy(1e6 * static_cast<double>(ranks) / kCapacity));
        }
        link.add(crossing, 0.4e-8);
        seen = link.capacity();
        if (t > 30) lowest = std::min(lowest, seen);
      }
      EXPECT_GT(lowest, 0.9 * kCapacity) << ranks << " ranks, seed " << seed;
      EXPECT_LT(seen, 1.08 * kCapacity) << ranks << " ranks, seed " << seed;
      least = std::min(least, lowest / kCapacity), most = std::max(most, seen / kCapacity);
    }
  std::printf("C of a noisy link: %.3f to %.3f of the truth\n", least, most);
}

// The worst that reports can say: nothing follows from it but a number that a platform may have.
TEST(LinkSeen, WhateverIsReported) {
  const double infinite = std::numeric_limits<double>::infinity();
  for (const double bytes : {0.0, 1e300, infinite})
    for (const double seconds : {0.0, 1e-300, 1e300, infinite, std::nan("")}) {
      LinkSeen link;
      cross(link, 8, 1e6, kMeasuredT, 2e8, kMeasuredT);
      for (int t = 0; t < 12; ++t) link.add({.bytes = bytes, .most = bytes, .seconds = seconds}, kMeasuredT);
      EXPECT_TRUE(std::isfinite(link.capacity())) << bytes << " bytes in " << seconds << " s";
      EXPECT_GE(link.capacity(), 0);
    }
}

TEST(Crossings, AreThoseBetweenDifferentSets) {
  MeasuredSuperstep t;
  Grid<double> bytes(3, 2), seconds(3, 2);
  bytes[0, 0] = 1, bytes[0, 1] = 10, bytes[1, 1] = 30, bytes[2, 0] = 5;
  seconds[0, 1] = 2, seconds[1, 1] = 4, seconds[2, 0] = 3;
  t.recv_bytes = bytes, t.recv_seconds = seconds;
  const std::vector<SetId> own{{0}, {0}, {1}};
  const std::vector<Crossing> found = crossings(t, own);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].from, SetId{0});
  EXPECT_EQ(found[0].to, SetId{1});
  EXPECT_EQ(found[0].bytes, 5);
  EXPECT_EQ(found[1].bytes, 40);
  EXPECT_EQ(found[1].most, 30);
  EXPECT_EQ(found[1].seconds, 4);
}

// --- What a mapping takes ---

std::vector<ProcessorId> shuffled(const LoopJob& job, std::mt19937_64& random) {
  std::vector<ProcessorId> slots, on;
  for (std::uint32_t p = 0; p < job.start.platform.processors.size(); ++p)
    slots.insert(slots.end(), job.start.platform.processors[p].slots, ProcessorId{p});
  std::ranges::shuffle(slots, random);
  for (std::size_t i = 0; i < job.work.size(); ++i) on.push_back(slots[i]);
  return on;
}

TEST(Links, WhatCrossesIsExactWhereAllPartnersAreKnown) {
  std::mt19937_64 random(kLinksSeed);
  for (int n = 0; n < 200; ++n) {
    LoopJob job = random_loop_job(random, {.least_ranks = 3, .most_ranks = 20, .shared = true});
    for (std::uint32_t i = 0; i < job.work.size(); ++i)
      job.start.ranks[i].partners = partners_of(job, i, [](double bytes) { return bytes; });
    job.start.platform.capacity = job.capacity;
    const Columns columns = *columns_of(job.start);
    Grid<double> bytes(job.work.size(), columns.sets);
    for (std::uint32_t i = 0; i < job.work.size(); ++i)
      for (const LoopJob::Partner& k : job.hears[i]) bytes[i, columns.own[k.from].value] += k.bytes;
    Metrics metrics;
    metrics.last.instructions = job.work;
    metrics.last.recv_bytes = bytes;
    const Params params;
    const Case c{job.start, columns, metrics, params, 1, 1};
    const std::vector<ProcessorId> on = shuffled(job, random);
    const double real = job.links(on).busiest().seconds;
    EXPECT_NEAR(Heard(c).busiest_link(on).seconds, real, 1e-9 * real) << n;
    const double pause = job.pause(columns.on, on);
    EXPECT_NEAR(pause_of(job.start, columns, columns.on, on), pause, 1e-12 * pause) << n;
  }
}

TEST(Links, OnlyThoseOfAPlatformAreBelieved) {
  LoopJob job;
  job.start.platform = platform_of({{.name = "a"}, {.name = "b"}});
  job.start.ranks = {{.processor = {0}}};
  const auto decided_with = [&](Grid<double> capacity) {
    Snapshot snapshot = job.start;
    snapshot.platform.capacity = std::move(capacity);
    return columns_of(snapshot).has_value();
  };
  EXPECT_TRUE(decided_with({}));
  EXPECT_TRUE(decided_with(Grid<double>(2, 2, 1e9)));
  EXPECT_FALSE(decided_with(Grid<double>(2, 3, 1e9)));
  EXPECT_FALSE(decided_with(Grid<double>(2, 2, -1)));
  EXPECT_FALSE(decided_with(Grid<double>(2, 2, std::numeric_limits<double>::infinity())));
  EXPECT_FALSE(decided_with(Grid<double>(2, 2, std::nan(""))));
}

// --- What Auto makes of it ---

// Four pairs of ranks that talk, in two Sets that a link joins, over which every pair talks. A byte takes as long for one rank as
// inside a Set, so that nothing but the link's capacity brings a pair together.
LoopJob pairs_apart() {
  LoopJob job;
  job.start.platform =
      platform_of({{.name = "a", .processors = 6, .slots = 1}, {.name = "b", .processors = 6, .slots = 1}});
  job.start.platform.T = Grid<double>(2, 2, 1e-9);
  job.start.platform.T_origin = Grid<Origin>(2, 2, Origin::kMeasured);
  job.start.platform.Mig = Grid<double>(1, 2, 0.1);
  for (std::uint32_t i = 0; i < 8; ++i) {
    job.start.ranks.push_back({.processor = {i % 2 == 0 ? i / 2 : 6 + i / 2}});
    job.work.push_back(1e9);
    job.hears.push_back({{i ^ 1, 20e6}});
  }
  job.capacity = Grid<double>(2, 2, 1e8);
  job.supersteps = 200;
  return job;
}

TEST(Links, PairsThatTalkOverASharedOneComeTogether) {
  const LoopJob job = pairs_apart();
  const LoopRun run = run_loop(job, of_auto(), 0.02, 1), unseen = run_loop(job, of_auto(), 0.02, 1, plan_without_links);
  EXPECT_EQ(unseen.moves, 0u);
  EXPECT_LT(run.makespan, 0.6 * seconds_at_home(job));
  EXPECT_EQ(run.returns, 0u);
  EXPECT_LT(run.superstep_seconds.back(), 1.021) << "nothing crosses the link";
}

// World 36 of bench_decisions --seed 2 --row shared: whoever goes first fills a link. Step by step within what links carry, the job took
// 0.3 % longer than without moves.
TEST(Links, RanksThatFillOneOnTheirWayGoOn) {
  std::mt19937_64 random(2004);
  LoopJob job;
  for (int w = 0; w <= 36; ++w) job = random_loop_job(random, {.least_share = 0.02, .most_share = 0.2, .shared = true});
  const LoopRun run = run_loop(job, of_auto(job.supersteps), 0.02, 2 * 7919 + 36);
  EXPECT_LT(run.makespan, 0.8 * job.seconds_without_moves());
  EXPECT_EQ(run.returns, 0u);
}

// Half of the ranks would be twice as fast elsewhere, but all of them hear from the others, over a link for one.
LoopJob overloaded() {
  LoopJob job;
  job.start.platform = platform_of(
      {{.name = "slow", .processors = 8, .slots = 1}, {.name = "fast", .processors = 4, .cpu = 2e9, .slots = 1}});
  job.start.platform.T = Grid<double>(2, 2, 1e-9);
  job.start.platform.T_origin = Grid<Origin>(2, 2, Origin::kMeasured);
  job.start.platform.Mig = Grid<double>(1, 2, 0.1);
  for (std::uint32_t i = 0; i < 8; ++i) {
    job.start.ranks.push_back({.processor = {i}});
    job.work.push_back(i < 4 ? 2e9 : 1e9);
    job.hears.push_back({});
    for (std::uint32_t k = 0; k < 8; ++k)
      if (k != i) job.hears.back().push_back({k, 20e6});
  }
  job.capacity = Grid<double>(2, 2, 1e8);
  job.supersteps = 400;
  return job;
}

TEST(Links, AWaveThatOverloadedOneIsTheLast) {
  const LoopJob job = overloaded();
  for (const std::uint64_t expected : {std::uint64_t{0}, job.supersteps}) {
    const LoopRun run = run_loop(job, of_auto(expected), 0.02, 1),
                  unseen = run_loop(job, of_auto(expected), 0.02, 1, plan_without_links);
    EXPECT_LT(run.makespan, 1.02 * seconds_at_home(job));
    EXPECT_LT(unseen.makespan, 1.1 * seconds_at_home(job)) << "taken back, but tried again with others";
    EXPECT_GT(unseen.makespan, run.makespan);
    EXPECT_EQ(run.returns, 0u);
    std::printf("overloaded: %.1f %% longer than without moves, %llu moves, %llu back; unseen %.1f %%\n",
                100 * (run.makespan / seconds_at_home(job) - 1), (unsigned long long)run.moves,
                (unsigned long long)run.taken_back, 100 * (unseen.makespan / seconds_at_home(job) - 1));
  }
}

// Whatever ±10 % of noise makes of it.
TEST(Links, NoiseMakesNoneShared) {
  std::mt19937_64 random(kLinksSeed + 2);
  int calls = 0;
  for (int n = 0; n < 40; ++n) {
    const LoopJob job = random_loop_job(random, {.least_ranks = 4, .most_ranks = 24, .most_steps = 400});
    const LoopPlanner planner = [&](const Snapshot& snapshot, const Window& window, const Params& params) {
      ++calls;
      EXPECT_TRUE(snapshot.platform.capacity.empty()) << n;
      return make_plan(snapshot, window, params);
    };
    run_loop(job, of_auto(), 0.1, kLinksSeed + static_cast<std::uint64_t>(n), planner);
  }
  EXPECT_GT(calls, 200);
}

// Every mapping of few ranks, by the real capacities.
TEST(Links, AutoIsNearTheBestOfAllMappings) {
  std::mt19937_64 random(kLinksSeed + 1);
  double seen = 0, unseen = 0, worst = 0;
  int worse = 0;
  constexpr int kWorlds = 60;
  for (int n = 0; n < kWorlds; ++n) {
    const LoopJob job = random_loop_job(random, {.least_ranks = 4,
                                                 .most_ranks = 6,
                                                 .spare = 0.25,
                                                 .least_steps = 1000,
                                                 .most_steps = 1000,
                                                 .least_share = 0.02,
                                                 .most_share = 0.2,
                                                 .shared = true});
    const double optimum = exhaustive_optimum(job);
    const LoopRun run = run_loop(job, of_auto(job.supersteps), 0, 1);
    const double above = run.makespan / optimum - 1;
    seen += above;
    worst = std::max(worst, above);
    worse += run.makespan > 1.01 * seconds_at_home(job);
    EXPECT_EQ(run.returns, 0u) << n;
    unseen += run_loop(job, of_auto(job.supersteps), 0, 1, plan_without_links).makespan / optimum - 1;
  }
  std::printf(
      "shared links, %d worlds: Auto %.2f %% above the optimum (worst %.1f), %.2f %% with them unseen; %d worse than "
      "still\n",
      kWorlds, 100 * seen / kWorlds, 100 * worst, 100 * unseen / kWorlds, worse);
  EXPECT_LT(seen, unseen);
  EXPECT_LT(seen / kWorlds, 0.03);
  EXPECT_EQ(worse, 0);
}

}  // namespace
}  // namespace bsp::decide
