// Bottleneck: what it is for, and how near to the best it comes. The best is found by trying every mapping.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "operator/decide/bottleneck/trial.h"
#include "operator/decide/make_plan.h"
#include "operator/decide/model/pm.h"
#include "operator/decide/papers/levels.h"
#include "tests/unit/decide/bound.h"
#include "tests/unit/decide/random_job.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kSeed = 20261121;

// F of a mapping, and whether it is allowed, as the definitions read.
struct Judge {
  const OneSuperstep& job;
  double alpha;

  [[nodiscard]] double F(const std::vector<std::uint32_t>& on) const {
    const Platform& platform = job.snapshot.platform;
    std::vector<double> instructions(platform.processors.size(), 0.0);
    double time = 0, comm = 0, mem = 0;
    for (std::uint32_t i = 0; i < on.size(); ++i) {
      const Rank& rank = job.snapshot.ranks[i];
      const std::uint32_t own = platform.processor(rank.processor).set.value, j = platform.processors[on[i]].set.value;
      instructions[on[i]] += job.superstep.instructions[i];
      time = std::max(time, instructions[on[i]] / platform.processors[on[i]].available());
      for (std::uint32_t k = 0; k < platform.sets.size(); ++k)
        comm = std::max(comm, job.superstep.recv_bytes[i, k] * platform.T[k, j]);
      if (on[i] != rank.processor.value)
        mem = std::max(mem, rank.memory_bytes * platform.T[own, j] + platform.Mig[0, j]);
    }
    return alpha * (time + comm) + mem;
  }

  [[nodiscard]] bool allowed(const std::vector<std::uint32_t>& on) const {
    const Platform& platform = job.snapshot.platform;
    std::vector<std::uint32_t> booked(platform.processors.size(), 0);
    for (const Rank& rank : job.snapshot.ranks) ++booked[rank.processor.value];
    std::uint32_t moves = 0;
    for (std::uint32_t i = 0; i < on.size(); ++i) {
      const Rank& rank = job.snapshot.ranks[i];
      const Processor& to = platform.processors[on[i]];
      if (on[i] == rank.processor.value) continue;
      ++moves;
      if (!rank.not_migratable.empty() || to.cordoned || platform.sets[to.set.value].cordoned) return false;
      if (std::ranges::count(rank.no_moves_to, to.set) > 0) return false;
      if (to.slots > 0 && ++booked[on[i]] > to.slots) return false;
    }
    return job.params.max_moves == 0 || moves <= job.params.max_moves;
  }

  // Of all mappings.
  [[nodiscard]] double least_F() const {
    const auto processors = static_cast<std::uint32_t>(job.snapshot.platform.processors.size());
    std::vector<std::uint32_t> on(job.snapshot.ranks.size(), 0);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t digit = 0; digit < on.size();) {
      if (allowed(on)) least = std::min(least, F(on));
      for (digit = 0; digit < on.size() && ++on[digit] == processors; ++digit) on[digit] = 0;
    }
    return least;
  }

  [[nodiscard]] std::vector<std::uint32_t> mapping(const Plan& plan) const {
    std::vector<std::uint32_t> on;
    for (const Rank& rank : job.snapshot.ranks) on.push_back(rank.processor.value);
    for (const Move& move : plan.moves) on[move.rank.value] = move.to.value;
    return on;
  }
};

Plan plan_with(const OneSuperstep& job, Heuristic heuristic, std::uint64_t alpha) {
  OneSuperstep other = job;
  other.params.heuristic = heuristic;
  return *make_plan(other.snapshot, other.window(alpha), other.params);
}

double lower_bound_of(const OneSuperstep& job, double alpha) {
  return objective_lower_bound({job.snapshot, *columns_of(job.snapshot), job.window().metrics(), job.params, 1, 1},
                               alpha);
}

// The ratios of F to something, over many jobs.
struct Ratios {
  std::vector<double> all{};

  [[nodiscard]] double mean() const { return std::reduce(all.begin(), all.end()) / static_cast<double>(all.size()); }
  [[nodiscard]] double worst() const { return *std::ranges::max_element(all); }
  [[nodiscard]] double share_of_ones() const {
    const auto ones = std::ranges::count_if(all, [](double r) { return r < 1 + 1e-9; });
    return static_cast<double>(ones) / static_cast<double>(all.size());
  }
  void print(const char* what) const {
    std::printf("%s: mean %.4f, worst %.4f, equal in %.1f %% of %zu jobs (seed %llu)\n", what, mean(), worst(),
                share_of_ones() * 100, all.size(), static_cast<unsigned long long>(kSeed));
  }
};

TEST(Bottleneck, IsNeverWorseThanAutoMigAndSeldomMissesTheBest) {
  std::mt19937_64 random(kSeed);
  Ratios to_best, of_automig;
  for (std::uint32_t n = 0; n < 300; ++n) {
    const Shape shape{.ranks = 2 + n % 4, .processors = 2 + n % 3, .sets = 2 + n % 2};
    const OneSuperstep job(random, shape, Heuristic::kBottleneck);
    const Plan plan = plan_with(job, Heuristic::kBottleneck, 1 + n % 5);
    const Plan automig = plan_with(job, Heuristic::kAutoMig, 1 + n % 5);
    const Judge judge{job, static_cast<double>(plan.now.alpha_next)};
    const double F = judge.F(judge.mapping(plan)), best = judge.least_F();
    SCOPED_TRACE(n);
    ASSERT_TRUE(judge.allowed(judge.mapping(plan)));
    EXPECT_NEAR(plan.objective.after, F, 1e-9 * F) << "the plan says what it does";
    EXPECT_LE(F, judge.F(judge.mapping(automig)) * (1 + 1e-12));
    EXPECT_GE(F, best * (1 - 1e-12));
    EXPECT_LE(lower_bound_of(job, judge.alpha), best * (1 + 1e-12));
    to_best.all.push_back(F / best);
    of_automig.all.push_back(judge.F(judge.mapping(automig)) / best);
  }
  to_best.print("Bottleneck to the best of all mappings");
  of_automig.print("AutoMig to the best of all mappings");
  EXPECT_GE(to_best.share_of_ones(), 0.95);
  EXPECT_LE(to_best.mean(), 1.005);
  EXPECT_GE(of_automig.mean(), 1.05) << "or these jobs would ask for nothing";
}

TEST(Bottleneck, OfOneSuperstepIsNeverAboveAutoMigsPf) {
  std::mt19937_64 random(kSeed);
  int lower = 0;
  for (std::uint32_t n = 0; n < 150; ++n) {
    OneSuperstep job(random, {.ranks = 2 + n % 15, .processors = 2 + n % 11, .sets = 2 + n % 5},
                     Heuristic::kBottleneck);
    job.params.horizon = Horizon::kSuperstep;
    const double pf = plan_with(job, Heuristic::kAutoMig, 3).objective.after;
    const double F = plan_with(job, Heuristic::kBottleneck, 3).objective.after;
    EXPECT_LE(F, pf * (1 + 1e-12)) << "job " << n;
    lower += F < pf * (1 - 1e-9);
  }
  EXPECT_GE(lower, 50) << "of 150";
}

TEST(Bottleneck, LeavesOutEveryMoveThatGainsNothing) {
  std::mt19937_64 random(kSeed);
  for (std::uint32_t n = 0; n < 60; ++n) {
    const OneSuperstep job(random, {.ranks = 2 + n % 20, .processors = 2 + n % 11, .sets = 2 + n % 4},
                           Heuristic::kBottleneck);
    const Plan plan = plan_with(job, Heuristic::kBottleneck, 4);
    const Judge judge{job, static_cast<double>(plan.now.alpha_next)};
    for (const Move& move : plan.moves) {
      std::vector<std::uint32_t> without = judge.mapping(plan);
      without[move.rank.value] = move.from.value;
      EXPECT_GT(judge.F(without), plan.objective.after * (1 - 1e-9)) << "job " << n << ", rank " << move.rank.value;
    }
  }
}

TEST(Bottleneck, RanksOfThePmListThatStayWouldNotGain) {
  std::mt19937_64 random(kSeed);
  int found = 0;
  for (std::uint32_t n = 0; n < 60; ++n) {
    const OneSuperstep job(random, {.ranks = 2 + n % 20, .processors = 2 + n % 11, .sets = 2 + n % 4},
                           Heuristic::kBottleneck);
    const Plan plan = plan_with(job, Heuristic::kBottleneck, 4);
    for (const Stay& stay : plan.stays) {
      if (stay.reason == Reason::kNotCandidate) {
        EXPECT_LE(stay.value, stay.limit * (1 + 1e-9)) << "job " << n;
      }
      if (stay.reason != Reason::kGainBelowCost) continue;
      EXPECT_GE(stay.value, stay.limit * (1 - 1e-9)) << "job " << n << ", rank " << stay.rank.value;
      EXPECT_NEAR(stay.limit, plan.objective.after, 1e-9 * stay.limit);
      ++found;
    }
  }
  EXPECT_GT(found, 10);
}

TEST(Bottleneck, StaysNearTheLowerBoundWhereThereAreTooManyMappingsToTry) {
  std::mt19937_64 random(kSeed);
  Ratios to_bound, of_automig;
  for (int n = 0; n < 5; ++n) {
    const OneSuperstep job(random, {.ranks = 200, .processors = 300, .sets = 8}, Heuristic::kBottleneck);
    const Plan plan = plan_with(job, Heuristic::kBottleneck, 10), automig = plan_with(job, Heuristic::kAutoMig, 10);
    const Judge judge{job, static_cast<double>(plan.now.alpha_next)};
    const double bound = lower_bound_of(job, judge.alpha);
    EXPECT_GE(plan.objective.after, bound * (1 - 1e-12));
    to_bound.all.push_back(plan.objective.after / bound);
    of_automig.all.push_back(judge.F(judge.mapping(automig)) / bound);
  }
  to_bound.print("Bottleneck, 200 ranks, to the lower bound");
  of_automig.print("AutoMig, 200 ranks, to the lower bound");
  EXPECT_LT(to_bound.mean(), of_automig.mean());
  EXPECT_LE(to_bound.mean(), 1.5);
}

TEST(Bottleneck, PermutingTheRanksPermutesThePlan) {
  std::mt19937_64 random(kSeed);
  for (std::uint32_t n = 0; n < 60; ++n) {
    OneSuperstep job(random, {.ranks = 2 + n % 20, .processors = 2 + n % 11, .sets = 2 + n % 4},
                     Heuristic::kBottleneck);
    for (double& I : job.superstep.instructions)
      I += std::uniform_int_distribution(0, 1'000'000)(random);  // none alike
    std::vector<std::uint32_t> old_rank(job.snapshot.ranks.size());
    std::iota(old_rank.begin(), old_rank.end(), 0u);
    std::ranges::shuffle(old_rank, random);
    OneSuperstep other = job;
    for (std::uint32_t i = 0; i < old_rank.size(); ++i) {
      other.snapshot.ranks[i] = job.snapshot.ranks[old_rank[i]];
      other.superstep.instructions[i] = job.superstep.instructions[old_rank[i]];
      other.superstep.compute_seconds[i] = job.superstep.compute_seconds[old_rank[i]];
    }
    other.superstep.recv_bytes = permuted(job.superstep.recv_bytes, old_rank);
    other.superstep.recv_seconds = permuted(job.superstep.recv_seconds, old_rank);
    const Plan plan = plan_with(job, Heuristic::kBottleneck, 4), permuted = plan_with(other, Heuristic::kBottleneck, 4);
    SCOPED_TRACE(n);
    ASSERT_EQ(plan.moves.size(), permuted.moves.size());
    for (std::size_t m = 0; m < plan.moves.size(); ++m) {
      EXPECT_EQ(plan.moves[m].rank.value, old_rank[permuted.moves[m].rank.value]);
      EXPECT_EQ(plan.moves[m].to, permuted.moves[m].to);
    }
    for (const Stay& stay : permuted.stays) EXPECT_EQ(stay.reason, stay_of(plan, old_rank[stay.rank.value]).reason);
  }
}

// --- What it is for ---------------------------------------------------------------------------------

constexpr Params kParams{.heuristic = Heuristic::kBottleneck, .alpha0 = 1, .horizon = Horizon::kSuperstep};

TEST(Bottleneck, RelievesAProcessorThatThePmListDoesNotSee) {
  // Two ranks share a-0 while a-1 is empty: to the PM both Sets offer the same, so that its list is empty.
  const World world({{"a", 2, 1e9}, {"b", 1, 1e9}}, {0, 0, 2});
  const auto automig = world.plan({.heuristic = Heuristic::kAutoMig, .alpha0 = 1});
  EXPECT_THAT(automig->moves, IsEmpty());
  const auto plan = world.plan(kParams);
  ASSERT_EQ(plan->moves.size(), 1u);
  EXPECT_EQ(plan->moves[0].to, ProcessorId{1});
  EXPECT_EQ(plan->moves[0].to_set, SetId{0}) << "its own Set";
  EXPECT_DOUBLE_EQ(plan->objective.before, 2);
  EXPECT_DOUBLE_EQ(plan->objective.after, 1.001);
  EXPECT_DOUBLE_EQ(plan->forecast.after, 1);
}

TEST(Bottleneck, PicksTheSlowestWhereAutoMigFollowsThePmList) {
  // Rank 1 has the higher PM, for what it receives from fast, and takes the only fast slot; but rank 0 is what all
  // wait for, and rank 2, which can't move, receives even more.
  World world({{"slow", 3, 5e8, 1}, {"fast", 1, 1e9, 1}}, {0, 1, 2});
  world.instructions = {1e9, 9e8, 1e8};
  world.recv_bytes[1, 1] = 5e7;
  world.recv_bytes[2, 1] = 6e7;
  world.snapshot.ranks[2].not_migratable = "an open RMA window";
  const auto plan = world.plan(kParams);
  EXPECT_THAT(moved_ranks(*plan), ElementsAre(0));
  EXPECT_DOUBLE_EQ(plan->objective.before, 2.6);
  EXPECT_DOUBLE_EQ(plan->objective.after, 2.401);
  const auto automig = world.plan({.heuristic = Heuristic::kAutoMig, .alpha0 = 1});
  EXPECT_THAT(automig->moves, IsEmpty());
  EXPECT_EQ(automig->pm_list[0].rank, RankId{1});
}

TEST(Bottleneck, PaysOverAllSuperstepsUpToTheNextCall) {
  // 1 s saved per superstep for 5 s: too dear for one, cheap for twenty.
  World world({{"slow", 1, 5e8}, {"fast", 1, 1e9}}, {0});
  world.snapshot.platform.Mig = Grid<double>(1, 2, 5);
  const auto once = world.plan({.heuristic = Heuristic::kBottleneck, .alpha0 = 10, .horizon = Horizon::kSuperstep});
  EXPECT_THAT(once->moves, IsEmpty());
  EXPECT_EQ(stay_of(*once, 0).reason, Reason::kGainBelowCost);
  EXPECT_DOUBLE_EQ(stay_of(*once, 0).value, 6);
  EXPECT_DOUBLE_EQ(stay_of(*once, 0).limit, 2);
  const auto often = world.plan({.heuristic = Heuristic::kBottleneck, .alpha0 = 10});
  EXPECT_EQ(often->now.alpha_next, 20u);
  EXPECT_THAT(moved_ranks(*often), ElementsAre(0));
  EXPECT_DOUBLE_EQ(often->objective.before, 40);
  EXPECT_DOUBLE_EQ(often->objective.after, 25);
}

TEST(Bottleneck, MovesTogetherWhatGainsOnlyTogether) {
  const World world({{"slow", 3, 5e8, 1}, {"fast", 3, 1e9, 1}}, {0, 1, 2});
  EXPECT_THAT(moved_ranks(*world.plan(kParams)), ElementsAre(0, 1, 2));
}

TEST(Bottleneck, SaysOfARankThatHoldsUpNothingWhatItTakes) {
  World world({{"slow", 2, 5e8, 1}, {"fast", 2, 1e9, 1}}, {0, 1});
  world.instructions = {1e9, 1e8};
  const auto plan = world.plan(kParams);
  EXPECT_THAT(moved_ranks(*plan), ElementsAre(0));
  EXPECT_EQ(stay_of(*plan, 1).reason, Reason::kNotCandidate);
  EXPECT_DOUBLE_EQ(stay_of(*plan, 1).value, 0.2);
  EXPECT_DOUBLE_EQ(stay_of(*plan, 1).limit, 1);
}

// More ranks are at home on a-0 than it has slots, and vacated ones may be taken. Rank 2 takes a-0's only slot; then
// rank 0 comes home, which it always may, so that a-0 is fuller than full. Where rank 2 leaves now, taking that back
// must work.
TEST(Bottleneck, UndoesAMoveFromAProcessorThatHasNoFreeSlotAnyMore) {
  const World world({{"a", 1, 1e9, 1}, {"b", 3, 1e9, 1}}, {0, 0, 1});
  const Params params{.alpha0 = 1, .reuse_vacated_slots = true};
  const Window window = world.window(params);
  const Columns columns = *columns_of(world.snapshot);
  const Case c{world.snapshot, columns, window.metrics(), params, 1, 1};
  const CommOf comm_of(c);
  const std::vector<double> here = comm_here(c, comm_of);
  Processors processors(columns, world.instructions, world.instructions, true);
  Trial trial(c, processors, here, comm_of, 16);
  const auto mapping = [&] {
    std::vector<std::uint32_t> on;
    for (std::uint32_t i = 0; i < 3; ++i) on.push_back(trial.on({i}).value);
    return on;
  };
  trial.relocate({0}, {2});
  trial.relocate({1}, {3});
  trial.relocate({2}, {0});
  trial.relocate({0}, {0});
  ASSERT_FALSE(processors.has_free_slot({0}));
  ASSERT_THAT(mapping(), ElementsAre(0, 3, 0));
  const std::size_t mark = trial.mark();
  const double time = trial.time();

  trial.relocate({2}, {1});
  ASSERT_FALSE(processors.has_free_slot({0})) << "or an ordinary move would be possible";
  EXPECT_LT(trial.time(), time);
  trial.back_to(mark);
  EXPECT_THAT(mapping(), ElementsAre(0, 3, 0));
  EXPECT_EQ(trial.time(), time);
  EXPECT_FALSE(processors.may_return({1}));
  trial.back_to(0);
  EXPECT_THAT(mapping(), ElementsAre(0, 0, 1));
  EXPECT_EQ(trial.moves(), 0u);
}

TEST(Bottleneck, KeepsTheMoveLimit) {
  World world({{"a", 1, 1e9}, {"b", 3, 1e9}}, {0, 0, 0, 0});
  Params params = kParams;
  params.max_moves = 2;
  const auto plan = world.plan(params);
  EXPECT_EQ(plan->moves.size(), 2u);
  EXPECT_DOUBLE_EQ(plan->forecast.after, 2);
}

}  // namespace
}  // namespace bsp::decide
