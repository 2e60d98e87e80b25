// What shared memory is worth: which ranks share a pod after which waves, what their messages take then, and what Auto makes of it.
#include "operator/decide/auto/pods.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "operator/decide/auto/auto.h"
#include "operator/decide/auto/partners.h"
#include "operator/decide/explain.h"
#include "operator/decide/make_plan.h"
#include "tests/bench/closed_loop.h"
#include "tests/unit/decide/measured_job.h"
#include "tests/unit/decide/random_job.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

constexpr std::uint64_t kPodsSeed = 20261129;

std::vector<ProcessorId> home_of(const LoopJob& job) {
  std::vector<ProcessorId> on;
  for (const Rank& rank : job.start.ranks) on.push_back(rank.processor);
  return on;
}

// Some ranks go to slots that are free.
std::vector<ProcessorId> next_wave(const LoopJob& job, std::vector<ProcessorId> on, std::mt19937_64& random) {
  std::vector<ProcessorId> free;
  for (std::uint32_t p = 0; p < job.start.platform.processors.size(); ++p)
    if (!std::ranges::contains(on, ProcessorId{p})) free.push_back({p});
  std::ranges::shuffle(free, random);
  for (ProcessorId& p : on)
    if (random() % 2 == 0 && !free.empty()) p = free.back(), free.pop_back();
  return on;
}

// Wave by wave, with seats that are free at the call and seats that waves leave.
TEST(Pods, AreAsWavesMakeThem) {
  std::mt19937_64 random(kPodsSeed);
  for (int n = 0; n < 200; ++n) {
    LoopJob job = random_loop_job(random, {.least_ranks = 4, .most_ranks = 24, .pods = true});
    LoopPods before(job.start);
    const std::vector<ProcessorId> on = next_wave(job, home_of(job), random);
    before.move(on);
    before.tell(job.start);
    for (std::size_t i = 0; i < on.size(); ++i) job.start.ranks[i].processor = on[i];
    const MeasuredJob all(job, true);
    const Case c = all.of();
    const Heard heard(c);
    LoopPods real(all.job.start);
    std::vector<std::vector<ProcessorId>> waves;
    for (int w = 0; w < 3; ++w) {
      waves.push_back(next_wave(job, w == 0 ? on : waves.back(), random));
      real.move(waves.back());
      std::vector<double> seconds;
      heard.seconds(waves, seconds);
      const double took = all.job.communication(waves.back(), real);
      EXPECT_NEAR(std::ranges::max(seconds), took, 1e-9 * took) << n << ", wave " << w;
      if (w > 0) continue;
      heard.seconds(waves.back(), seconds);
      EXPECT_NEAR(std::ranges::max(seconds), took, 1e-9 * took) << n;
    }
  }
}

TEST(Pods, OnlyAutoReadsThem) {
  std::mt19937_64 random(kPodsSeed + 1);
  int moved = 0;
  for (int n = 0; n < 60; ++n)
    for (const Strategy& strategy : strategies()) {
      if (strategy.heuristic == Heuristic::kAuto) continue;
      const OneSuperstep job(random, {.ranks = 12, .processors = 8, .sets = 3}, strategy.heuristic);
      Snapshot with = job.snapshot;
      with.platform.shared.assign(3, {1e-10, 1e-7});
      with.platform.apart.assign(3, {1e-7, 1e-3});
      for (std::uint32_t i = 0; i < with.ranks.size(); ++i) {
        with.ranks[i].pod = 1 + with.ranks[i].processor.value;
        with.ranks[i].partners = {{{(i + 1) % 12}, 1e9, 1e4}};
      }
      const Window window = job.window();
      const auto a = make_plan(job.snapshot, window, job.params), b = make_plan(with, window, job.params);
      ASSERT_TRUE(a && b);
      EXPECT_EQ(explain(*a, job.snapshot), explain(*b, with)) << strategy.name;
      EXPECT_EQ(a->objective.after, b->objective.after);
      moved += !a->moves.empty();
    }
  EXPECT_GT(moved, 60);
}

TEST(Pods, PricesAreAsTheyCanBe) {
  std::mt19937_64 random(kPodsSeed + 2);
  const LoopJob job = random_loop_job(random, {.pods = true});
  const auto decided_with = [&](auto change) {
    Snapshot snapshot = job.start;
    change(snapshot);
    return columns_of(snapshot).has_value();
  };
  EXPECT_TRUE(decided_with([](Snapshot&) {}));
  EXPECT_TRUE(decided_with([](Snapshot& s) { s.platform.shared = s.platform.apart = {}; }));
  EXPECT_TRUE(decided_with([](Snapshot& s) { s.ranks[0].pod = ~0u, s.platform.processors[0].pod = ~0u; }));
  EXPECT_FALSE(decided_with([](Snapshot& s) { s.platform.shared = {}; }));
  EXPECT_FALSE(decided_with([](Snapshot& s) { s.platform.apart.pop_back(); }));
  EXPECT_FALSE(decided_with([](Snapshot& s) { s.platform.shared[0].byte = -1; }));
  EXPECT_FALSE(
      decided_with([](Snapshot& s) { s.platform.apart[0].message = std::numeric_limits<double>::infinity(); }));
  EXPECT_FALSE(decided_with([](Snapshot& s) { s.platform.apart[0].byte = std::numeric_limits<double>::quiet_NaN(); }));
  EXPECT_FALSE(decided_with([](Snapshot& s) { s.ranks[0].partners = {{{1}, 1, -1}}; }));
}

// A ring of eight ranks, four on each of two nodes, who talk in many small messages. A third node has one slot that is 1.3 times as fast.
LoopJob ring(double messages, std::uint32_t slots_of_third) {
  LoopJob job;
  Platform& platform = job.start.platform;
  for (std::uint32_t n = 0; n < 3; ++n) {
    platform.sets.push_back({.name = "set-" + std::to_string(n)});
    const std::uint32_t slots = n == 2 ? slots_of_third : 4;
    platform.processors.insert(
        platform.processors.end(), slots,
        {.name = "node-" + std::to_string(n), .set = {n}, .cpu = n == 2 ? 1.3e9 : 1e9, .slots = 1});
  }
  platform.T = Grid<double>(3, 3, 1e-9);
  platform.T_origin = Grid<Origin>(3, 3, Origin::kMeasured);
  platform.Mig = Grid<double>(1, 3, 0.3);
  platform.shared.assign(3, {.byte = 3e-10, .message = 0.3e-6});
  platform.apart.assign(3, {.byte = 1e-9, .message = 8e-6});
  for (std::uint32_t i = 0; i < 8; ++i) {
    job.start.ranks.push_back({.processor = {i}, .memory_bytes = 50e6, .pod = 1 + i / 4});
    job.work.push_back(i == 1 ? 1.1e9 : 0.8e9);
    job.hears.push_back({{(i + 1) % 8, 8 * messages, messages}, {(i + 7) % 8, 8 * messages, messages}});
  }
  job.supersteps = 1000;
  return job;
}

// By bytes, rank 1 gains 0.25 s a superstep where it computes faster. But it hears 100,000 messages from each side.
TEST(Pods, ARankStaysWithThoseWhoTalkToIt) {
  for (const std::uint64_t length : {0, 1000}) {
    Params params;
    take_heuristic(params, Heuristic::kAuto);
    params.expected_supersteps = length;
    const LoopJob chatty = ring(100'000, 1), quiet = ring(100, 1);
    const LoopRun stayed = run_loop(chatty, params, 0.02, 1);
    EXPECT_EQ(stayed.moves, 0u);
    const LoopRun blind = run_loop(chatty, params, 0.02, 1, plan_without_pods);
    EXPECT_GT(blind.moves, 0u);
    EXPECT_GT(blind.makespan, stayed.makespan);
    EXPECT_EQ(run_loop(quiet, params, 0.02, 1).moves, 1u) << "a few messages are worth it";
  }
}

// The pod whose rank is slow goes to a faster node that has slots for all of it.
TEST(Pods, ThoseWhoShareAPodMoveAsOne) {
  Params params;
  take_heuristic(params, Heuristic::kAuto);
  const LoopJob job = ring(20'000, 4);
  const LoopRun run = run_loop(job, params, 0.02, 1);
  EXPECT_EQ(run.moves, 4u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_GE(run.on[i].value, 8u) << i;
  EXPECT_LT(run.makespan, 0.95 * job.seconds_without_moves());
}

// Neighbours that began on different nodes meet in pods.
TEST(Pods, ThoseWhoTalkMeetInOne) {
  LoopJob job = ring(30'000, 8);
  for (std::uint32_t i = 0; i < 8; ++i) {
    job.work[i] = 0.8e9;
    job.start.ranks[i].processor = {(i % 2) * 4 + i / 2};
    job.start.ranks[i].pod = 1 + i % 2;
  }
  for (std::uint32_t p = 8; p < 16; ++p) job.start.platform.processors[p].cpu = 1e9;
  Params params;
  take_heuristic(params, Heuristic::kAuto);
  const LoopRun run = run_loop(job, params, 0.02, 1);
  EXPECT_LT(run.makespan, 0.7 * job.seconds_without_moves());
  EXPECT_EQ(run_loop(job, params, 0.02, 1, plan_without_pods).moves, 0u);
}

// Free seats of the pod that a partner is in.
TEST(Pods, ARankTakesTheFreeSeatBesideItsPartners) {
  LoopJob job = ring(30'000, 1);
  job.start.platform.processors.back().cpu = 1e9;
  job.work.assign(8, 0.8e9);
  job.start.platform.processors[3].pod = 1;
  job.start.ranks[3] = {.processor = {8}, .memory_bytes = 50e6};
  Params params;
  take_heuristic(params, Heuristic::kAuto);
  LoopRun run = run_loop(job, params, 0.02, 1);
  EXPECT_EQ(run.on[3].value, 3u);
  EXPECT_EQ(run.moves, 1u);
  job.start.platform.processors[3].pod = 0;
  EXPECT_EQ(run_loop(job, params, 0.02, 1).moves, 0u) << "a pod of its own on the same node shares nothing";
}

// A node has a free seat of the pod that ranks 0 and 1 are in, and a slot. Who goes there first takes the seat, as in the operator,
// whichever of the two a mapping names; a second one has a new pod.
TEST(Pods, WhoGoesToANodeTakesItsFreeSeatsFirst) {
  LoopJob job = ring(30'000, 1);
  std::vector<Processor>& processors = job.start.platform.processors;
  processors[2].pod = 1;
  processors.resize(9);
  for (std::uint32_t i : {2u, 3u}) {
    processors.push_back(processors[8]);
    job.start.ranks[i] = {.processor = {7 + i}, .memory_bytes = 50e6, .pod = 9};
  }
  const MeasuredJob known(job, true);
  const Case c = known.of();
  const Pods pods(c);
  const auto shares = [&](const std::vector<Pods::Number>& after, std::uint32_t i) { return after[i] == after[0]; };
  for (const std::uint32_t slot : {2u, 3u}) {
    std::vector<ProcessorId> on = home_of(job);
    on[3] = {slot};
    EXPECT_TRUE(shares(pods.after(on), 3)) << slot;
    EXPECT_TRUE(shares(pods.after(std::vector{on}), 3)) << slot;
    on[2] = {5 - slot};  // both at once: the seat is the first one's
    EXPECT_TRUE(shares(pods.after(on), 2)) << slot;
    EXPECT_FALSE(shares(pods.after(on), 3)) << slot;
    EXPECT_EQ(pods.after(on), pods.after(std::vector{on})) << slot;
  }
}

// If nobody knows yet whom ranks hear from, what comes from their Set comes from their pod.
TEST(Pods, AreNotTornApartBeforePartnersAreKnown) {
  LoopJob job = ring(1, 1);
  for (auto& partners : job.hears)
    for (LoopJob::Partner& k : partners) k.bytes = 1e8;
  job.start.platform.T = Grid<double>(3, 3, 3e-9);
  MeasuredJob known(job, true);
  for (Rank& rank : known.job.start.ranks) rank.partners.clear();
  const Case c = known.of();
  const Heard heard(c);
  EXPECT_TRUE(heard.knows_partners());
  std::vector<ProcessorId> on = home_of(job);
  std::vector<double> now, alone;
  heard.seconds(on, now);
  on[1] = {8};
  heard.seconds(on, alone);
  EXPECT_GT(alone[1], 2 * now[1]);
}

// Nobody has measured what a byte takes between the Sets. What is assumed of checkpoints is no reason to stay.
TEST(Pods, ABandwidthThatIsOnlyAssumedCountsAsBetweenPods) {
  for (const Origin origin : {Origin::kMeasured, Origin::kAssumed}) {
    LoopJob job = ring(1, 1);
    job.start.platform.T = Grid<double>(3, 3, 3e-9);
    job.start.platform.T_origin = Grid<Origin>(3, 3, origin);
    for (auto& partners : job.hears)
      for (LoopJob::Partner& k : partners) k.bytes = 1e8;
    const MeasuredJob known(job, true);
    const Case c = known.of();
    std::vector<ProcessorId> on = home_of(job);
    on[1] = {8};
    std::vector<double> seconds;
    Heard(c).seconds(on, seconds);
    EXPECT_NEAR(seconds[1], 2e8 * (origin == Origin::kMeasured ? 3e-9 : 1e-9), 1e-4);
  }
}

// Few ranks, where every mapping can be tried; without noise, the length given. And with noise, nothing known of the length.
TEST(Pods, AreWorthWhatTheOptimumShows) {
  std::mt19937_64 random(kPodsSeed + 3);
  double with = 0, without = 0, worst = 0, blind = 0;
  int worse = 0, blind_worse = 0;
  constexpr int kWorlds = 30;
  for (int n = 0; n < kWorlds; ++n) {
    const LoopJob job = random_loop_job(
        random,
        {.least_ranks = 4, .most_ranks = 5, .spare = 0.3, .least_steps = 1000, .most_steps = 1000, .pods = true});
    Params params;
    take_heuristic(params, Heuristic::kAuto);
    const double still = job.seconds_without_moves();
    for (const bool is_blind : {false, true}) {
      const double longer =
          run_loop(job, params, 0.02, n, is_blind ? plan_without_pods : make_plan).makespan / still - 1;
      (is_blind ? blind : worst) = std::max(is_blind ? blind : worst, longer);
      (is_blind ? blind_worse : worse) += longer > 0.01;
    }
    params.expected_supersteps = job.supersteps;
    const double optimum = exhaustive_optimum(job);
    with += run_loop(job, params, 0, 1).makespan / optimum - 1;
    without += run_loop(job, params, 0, 1, plan_without_pods).makespan / optimum - 1;
  }
  std::printf(
      "Auto above the optimum: %.2f %% with pods, %.2f %% without; worst world %.1f %% longer, %.1f %%; %d and %d > 1 "
      "%% worse\n",
      100 * with / kWorlds, 100 * without / kWorlds, 100 * worst, 100 * blind, worse, blind_worse);
  EXPECT_LT(with, without);
  EXPECT_LT(with / kWorlds, 0.03);
  EXPECT_EQ(worse, 0);
}

}  // namespace
}  // namespace bsp::decide
