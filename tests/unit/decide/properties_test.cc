// What holds for every platform and every job, tried on random ones.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "operator/decide/make_plan.h"
#include "operator/decide/model/pm.h"
#include "operator/decide/model/strategy.h"
#include "tests/unit/decide/random_job.h"
#include "tests/unit/decide/superstep_time.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

void expect(bool holds) { EXPECT_TRUE(holds); }

double between(double low, double high) { return low + (high - low) * *rc::gen::inRange<int>(0, 1'000'001) * 1e-6; }

struct RandomJob {
  Snapshot snapshot;
  std::vector<MeasuredSuperstep> supersteps;
  Params params;

  [[nodiscard]] Window window() const {
    Window window({}, params, snapshot.ranks.size(), snapshot.platform.sets.size());
    for (const MeasuredSuperstep& t : supersteps) window.add(t);
    return window;
  }
};

// Instructions are whole numbers, so that sums do not depend on the order.
RandomJob random_job(Heuristic heuristic) {
  RandomJob job;
  const auto sets = *rc::gen::inRange<std::uint32_t>(1, 6);
  const auto processors = *rc::gen::inRange<std::uint32_t>(1, 20);
  const auto ranks = *rc::gen::inRange<std::uint32_t>(1, 30);
  const bool slots = *rc::gen::arbitrary<bool>();
  Platform& platform = job.snapshot.platform;
  platform.sets.resize(sets);
  for (std::uint32_t p = 0; p < processors; ++p)
    platform.processors.push_back({.set = SetId{*rc::gen::inRange<std::uint32_t>(0, sets)},
                                   .cpu = between(5e8, 3e9),
                                   .load = *rc::gen::arbitrary<bool>() ? between(0, 0.9) : 0,
                                   .slots = slots ? *rc::gen::inRange<std::uint32_t>(1, 6) : 0});
  platform.T = Grid<double>(sets, sets);
  platform.Mig = Grid<double>(1, sets);
  for (std::uint32_t a = 0; a < sets; ++a) {
    platform.Mig[0, a] = between(0, 0.3);
    for (std::uint32_t b = 0; b < sets; ++b) platform.T[a, b] = between(1e-9, 1e-7);
  }
  for (std::uint32_t i = 0; i < ranks; ++i)
    job.snapshot.ranks.push_back(
        {.processor = {*rc::gen::inRange<std::uint32_t>(0, processors)}, .memory_bytes = between(0, 1e7)});
  job.params = {.heuristic = heuristic,
                .alpha0 = *rc::gen::inRange<std::uint64_t>(1, 4),
                .x = 0.5,
                .horizon = *rc::gen::arbitrary<bool>() ? Horizon::kWindow : Horizon::kSuperstep};
  for (std::uint64_t t = 1; t <= job.params.alpha0; ++t) {
    MeasuredSuperstep s{.superstep = Superstep{t}};
    Grid<double> bytes(ranks, sets), seconds(ranks, sets);
    for (std::uint32_t i = 0; i < ranks; ++i) {
      s.instructions.push_back(std::floor(between(1e8, 2e9)));
      s.compute_seconds.push_back(between(0.1, 2));
      for (std::uint32_t j = 0; j < sets; ++j) {
        bytes[i, j] = std::floor(between(0, 1e6));
        seconds[i, j] = between(0, 0.1);
      }
    }
    s.recv_bytes = bytes, s.recv_seconds = seconds;
    job.supersteps.push_back(std::move(s));
  }
  return job;
}

// Bottleneck is the last: it breaks ties by more than the PM, and moves within a Set.
const Heuristic kHeuristics[] = {Heuristic::kTop,     Heuristic::kPercentage, Heuristic::kAutoMig,
                                 Heuristic::kMigCube, Heuristic::kMigHull,    Heuristic::kBottleneck};

RandomJob any_job() { return random_job(kHeuristics[*rc::gen::inRange(0, 6)]); }
RandomJob any_job_but_bottlenecks() { return random_job(kHeuristics[*rc::gen::inRange(0, 5)]); }

// The levels as the definition reads: each from scratch, every processor tried.
std::vector<double> naive_pf(const RandomJob& job, const Metrics& m, const std::vector<PmEntry>& list) {
  const Platform& platform = job.snapshot.platform;
  const auto& I_pick = job.params.horizon != Horizon::kSuperstep ? m.I_window : m.last.instructions;
  std::vector<std::uint32_t> free;
  const auto held = columns_of(job.snapshot)->held;
  for (std::uint32_t p = 0; p < held.size(); ++p) free.push_back(free_slots(platform.processors[p], held[p]));

  std::vector<ProcessorId> placement = current_mapping(job.snapshot);
  std::vector<double> pf{superstep_seconds(job.snapshot, m, placement)};
  double mem = 0;
  for (const PmEntry& e : list) {
    const auto busy = time_by_processor(job.snapshot, I_pick, placement);
    std::optional<std::uint32_t> best;
    double best_time = 0;
    for (std::uint32_t p = 0; p < free.size(); ++p) {
      const Processor& processor = platform.processors[p];
      if (processor.set != e.target || free[p] == 0) continue;
      const double time = busy[p] + I_pick[e.rank.value] / processor.available();
      if (!best || time < best_time) best = p, best_time = time;
    }
    if (!best) continue;
    --free[*best];
    placement[e.rank.value] = ProcessorId{*best};
    mem = std::max(mem, e.mem);
    pf.push_back(superstep_seconds(job.snapshot, m, placement) + mem);
  }
  return pf;
}

TEST(Property, IncrementalLevelsAreTheNaiveOnes) {
  expect(rc::check([] {
    const RandomJob job = random_job(Heuristic::kAutoMig);
    const Window window = job.window();
    const Plan plan = *make_plan(job.snapshot, window, job.params);
    const std::vector<double> pf = naive_pf(job, window.metrics(), plan.pm_list);
    RC_ASSERT(pf.size() == plan.levels.size());
    for (std::size_t l = 0; l < pf.size(); ++l) RC_ASSERT(std::abs(pf[l] - plan.levels[l].pf) <= 1e-9 * pf[l]);
  }));
}

TEST(Property, APlanThatMovesLowersItsObjective) {
  expect(rc::check([] {
    const RandomJob job = any_job();
    const Plan plan = *make_plan(job.snapshot, job.window(), job.params);
    RC_CLASSIFY(!plan.moves.empty());
    if (!plan.moves.empty()) RC_ASSERT(plan.objective.after < plan.objective.before);
  }));
}

TEST(Property, EveryRankMovesOrSaysWhyNotAndSlotsAreKept) {
  expect(rc::check([] {
    const RandomJob job = any_job();
    const Plan plan = *make_plan(job.snapshot, job.window(), job.params);
    std::vector<int> named(job.snapshot.ranks.size(), 0);
    std::vector<std::uint32_t> held = columns_of(job.snapshot)->held;
    for (const Stay& stay : plan.stays) ++named[stay.rank.value];
    for (const Move& move : plan.moves) {
      ++named[move.rank.value];
      RC_ASSERT(job.snapshot.set(move.rank) == move.from_set);
      RC_ASSERT(job.snapshot.platform.processor(move.to).set == move.to_set);
      RC_ASSERT(move.to_set != move.from_set || job.params.heuristic == Heuristic::kBottleneck);
      RC_ASSERT(move.to != move.from);
      const Processor& to = job.snapshot.platform.processor(move.to);
      RC_ASSERT(to.slots == 0 || held[move.to.value] < to.slots);
      ++held[move.to.value];
    }
    RC_ASSERT(std::ranges::all_of(named, [](int times) { return times == 1; }));
  }));
}

// (Bottleneck: bottleneck_test.cc)
TEST(Property, PermutingTheRanksPermutesThePlan) {
  expect(rc::check([] {
    const RandomJob job = any_job_but_bottlenecks();
    const std::size_t n = job.snapshot.ranks.size();
    std::vector<std::uint32_t> old_rank(n);  // old_rank[new] = old
    std::iota(old_rank.begin(), old_rank.end(), 0u);
    for (std::size_t i = n; i > 1; --i) std::swap(old_rank[i - 1], old_rank[*rc::gen::inRange<std::size_t>(0, i)]);

    RandomJob other = job;
    for (std::size_t i = 0; i < n; ++i) {
      other.snapshot.ranks[i] = job.snapshot.ranks[old_rank[i]];
      for (std::size_t t = 0; t < job.supersteps.size(); ++t) {
        MeasuredSuperstep& to = other.supersteps[t];
        const MeasuredSuperstep& from = job.supersteps[t];
        to.instructions[i] = from.instructions[old_rank[i]];
        to.compute_seconds[i] = from.compute_seconds[old_rank[i]];
      }
    }
    for (std::size_t t = 0; t < job.supersteps.size(); ++t) {
      other.supersteps[t].recv_bytes = permuted(job.supersteps[t].recv_bytes, old_rank);
      other.supersteps[t].recv_seconds = permuted(job.supersteps[t].recv_seconds, old_rank);
    }
    const Plan plan = *make_plan(job.snapshot, job.window(), job.params);
    const Plan permuted = *make_plan(other.snapshot, other.window(), other.params);
    for (std::size_t q = 1; q < plan.pm_list.size(); ++q)
      RC_PRE(plan.pm_list[q - 1].pm != plan.pm_list[q].pm);  // else the rank decides, as documented
    RC_ASSERT(plan.moves.size() == permuted.moves.size());
    for (std::size_t m = 0; m < plan.moves.size(); ++m) {
      RC_ASSERT(plan.moves[m].rank.value == old_rank[permuted.moves[m].rank.value]);
      RC_ASSERT(plan.moves[m].to == permuted.moves[m].to);
    }
    for (const Stay& stay : permuted.stays) RC_ASSERT(stay.reason == stay_of(plan, old_rank[stay.rank.value]).reason);
  }));
}

// In a unit of time twice or a quarter as long (a power of two, so that no rounding differs) all is as before.
TEST(Property, ScalingAllTimesChangesNothing) {
  expect(rc::check([] {
    const RandomJob job = any_job();
    const double scale = *rc::gen::element(0.25, 2.0, 1024.0);
    RandomJob other = job;
    Platform& platform = other.snapshot.platform;
    const auto scale_all = [scale](auto& grid) {
      for (std::size_t a = 0; a < grid.rows(); ++a)
        for (double& seconds : grid.row(a)) seconds *= scale;
    };
    for (Processor& p : platform.processors) p.cpu /= scale;
    scale_all(platform.T);
    scale_all(platform.Mig);
    for (MeasuredSuperstep& t : other.supersteps) {
      for (double& seconds : t.compute_seconds) seconds *= scale;
      t.communication_seconds *= scale;
      scale_all(t.recv_seconds);
    }
    const Plan plan = *make_plan(job.snapshot, job.window(), job.params);
    const Plan scaled = *make_plan(other.snapshot, other.window(), other.params);
    RC_CLASSIFY(!plan.moves.empty());
    RC_ASSERT(scaled.moves.size() == plan.moves.size());
    for (std::size_t m = 0; m < plan.moves.size(); ++m) {
      RC_ASSERT(scaled.moves[m].rank == plan.moves[m].rank);
      RC_ASSERT(scaled.moves[m].to == plan.moves[m].to);
      RC_ASSERT(scaled.moves[m].gain_window == plan.moves[m].gain_window * scale);
    }
    for (std::size_t s = 0; s < plan.stays.size(); ++s) RC_ASSERT(scaled.stays[s].reason == plan.stays[s].reason);
    RC_ASSERT(scaled.objective.after == plan.objective.after * scale);
    RC_ASSERT(scaled.forecast.after == plan.forecast.after * scale);
    Cadence next = plan.next;
    next.elapsed *= scale, next.owed *= scale;
    RC_ASSERT(scaled.next == next);
  }));
}

// Carries out every plan of a job whose work wanders from one half of the ranks to the other: how many moves, and how
// many of ranks that had moved less than `soon` supersteps ago?
struct Moved {
  int all = 0, soon = 0;
};
Moved moved_in(OneSuperstep job, std::uint64_t cooldown, std::uint64_t soon) {
  job.params.cooldown = cooldown;
  Moved moved;
  State state;
  for (int call = 0; call < 8; ++call) {
    Window window(state, job.params, job.snapshot.ranks.size(), job.snapshot.platform.sets.size());
    for (std::uint64_t t = window.cadence().k.value; !window.call_due(); ++t) {
      MeasuredSuperstep next = job.superstep;
      next.superstep = Superstep{t};
      for (std::uint32_t i = static_cast<std::uint32_t>(call) % 2; i < next.instructions.size(); i += 2) {
        next.instructions[i] = std::floor(next.instructions[i] / 8);
        next.compute_seconds[i] /= 8;
      }
      window.add(std::move(next));
    }
    const Plan plan = *make_plan(job.snapshot, window, job.params);
    for (const Move& move : plan.moves) {
      Rank& rank = job.snapshot.ranks[move.rank.value];
      ++moved.all;
      if (rank.last_move.value > 0 && plan.superstep.value - rank.last_move.value < soon) ++moved.soon;
      rank.processor = move.to;
      rank.last_move = plan.superstep;
    }
    state = std::move(window).close(plan.next);
  }
  return moved;
}

TEST(Property, NoRankMovesWithinTheCooldown) {
  constexpr std::uint64_t kCooldown = 6;
  Moved without, with;
  for (Heuristic heuristic : kHeuristics) {
    std::mt19937_64 random(20261121);
    for (int n = 0; n < 20; ++n) {
      const OneSuperstep job(random, {.ranks = 8, .processors = 6, .sets = 3}, heuristic);
      const Moved kept = moved_in(job, kCooldown, kCooldown), free = moved_in(job, 0, kCooldown);
      with.all += kept.all, with.soon += kept.soon, without.all += free.all, without.soon += free.soon;
    }
    SCOPED_TRACE(static_cast<int>(heuristic));
    EXPECT_EQ(with.soon, 0);
  }
  EXPECT_GT(with.all, 100);
  EXPECT_GT(without.soon, 40) << "or no rank was kept from moving back";
}

TEST(Property, NoPlanOfAnyHeuristicRaisesItsObjective) {
  for (Heuristic heuristic : kHeuristics) {
    std::mt19937_64 random(20261121);
    int moving = 0;
    for (std::uint32_t n = 0; n < 150; ++n) {
      const OneSuperstep job(random, {.ranks = 2 + n % 11, .processors = 2 + n % 7, .sets = 2 + n % 3}, heuristic);
      const Window window = job.window(1 + n % 4);
      const Plan plan = *make_plan(job.snapshot, window, job.params);
      SCOPED_TRACE(n);
      std::vector<ProcessorId> placement = current_mapping(job.snapshot);
      EXPECT_DOUBLE_EQ(plan.forecast.before, superstep_seconds(job.snapshot, window.metrics(), placement));
      for (const Move& move : plan.moves) placement[move.rank.value] = move.to;
      EXPECT_DOUBLE_EQ(plan.forecast.after, superstep_seconds(job.snapshot, window.metrics(), placement));
      EXPECT_EQ(plan.moves.size() + plan.stays.size(), job.snapshot.ranks.size());
      if (plan.moves.empty()) {
        EXPECT_EQ(plan.objective.after, plan.objective.before);
      } else {
        EXPECT_LT(plan.objective.after, plan.objective.before);
        ++moving;
      }
    }
    EXPECT_GT(moving, 30) << "of 150, heuristic " << static_cast<int>(heuristic);
  }
}

TEST(Property, MovingCarriedOutAndDecidedAgainEndsWithNothingToGain) {
  // With a regular job and measured = predicted times, applying AutoMig's plans comes to rest: each
  // lowers pf by more than it costs, and there are finitely many placements.
  expect(rc::check([] {
    RandomJob job = random_job(Heuristic::kAutoMig);
    double last = superstep_seconds(job.snapshot, job.window().metrics(), current_mapping(job.snapshot));
    for (int call = 0; call < 100; ++call) {
      const Window window = job.window();
      const Plan plan = *make_plan(job.snapshot, window, job.params);
      if (plan.moves.empty()) return;
      for (const Move& move : plan.moves) job.snapshot.ranks[move.rank.value].processor = move.to;
      RC_ASSERT(plan.forecast.after < last);
      last = plan.forecast.after;
    }
    RC_FAIL("100 calls and still moving");
  }));
}

}  // namespace
}  // namespace bsp::decide
