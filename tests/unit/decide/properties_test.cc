// What holds for every platform and every job, tried on random ones.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>

#include "operator/decide/pm.h"
#include "operator/decide/strategy.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

void expect(bool holds) { EXPECT_TRUE(holds); }

double between(double low, double high) {
  return low + (high - low) * *rc::gen::inRange<int>(0, 1'000'001) * 1e-6;
}

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
    job.snapshot.ranks.push_back({.processor = {*rc::gen::inRange<std::uint32_t>(0, processors)},
                                  .memory_bytes = between(0, 1e7)});
  job.params = {.heuristic = heuristic,
                .alpha0 = *rc::gen::inRange<std::uint64_t>(1, 4),
                .x = 0.5,
                .horizon = *rc::gen::arbitrary<bool>() ? Horizon::kWindow : Horizon::kSuperstep};
  for (std::uint64_t t = 1; t <= job.params.alpha0; ++t) {
    MeasuredSuperstep s{.superstep = Superstep{t},
                        .recv_bytes = Grid<double>(ranks, sets),
                        .recv_seconds = Grid<double>(ranks, sets)};
    for (std::uint32_t i = 0; i < ranks; ++i) {
      s.instructions.push_back(std::floor(between(1e8, 2e9)));
      s.compute_seconds.push_back(between(0.1, 2));
      for (std::uint32_t j = 0; j < sets; ++j) {
        s.recv_bytes[i, j] = std::floor(between(0, 1e6));
        s.recv_seconds[i, j] = between(0, 0.1);
      }
    }
    job.supersteps.push_back(std::move(s));
  }
  return job;
}

const Heuristic kHeuristics[] = {Heuristic::kTop, Heuristic::kPercentage, Heuristic::kAutoMig};

RandomJob any_job() { return random_job(kHeuristics[*rc::gen::inRange(0, 3)]); }

// The levels as the definition reads: each from scratch, every processor tried.
std::vector<double> naive_pf(const RandomJob& job, const Metrics& m,
                             const std::vector<PmEntry>& list) {
  const Platform& platform = job.snapshot.platform;
  const auto& I_pick = job.params.horizon == Horizon::kWindow ? m.I_window : m.last.instructions;
  std::vector<std::uint32_t> free;
  const auto held = ranks_held(job.snapshot);
  for (std::uint32_t p = 0; p < held.size(); ++p)
    free.push_back(free_slots(platform.processors[p], held[p]));

  std::vector<ProcessorId> placement = current_placement(job.snapshot);
  std::vector<double> pf{superstep_seconds(job.snapshot, m, placement)};
  double mem = 0;
  for (const PmEntry& e : list) {
    const auto busy = processor_seconds(job.snapshot, I_pick, placement);
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
    for (std::size_t l = 0; l < pf.size(); ++l)
      RC_ASSERT(std::abs(pf[l] - plan.levels[l].pf) <= 1e-9 * pf[l]);
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
    std::vector<int> told(job.snapshot.ranks.size(), 0);
    std::vector<std::uint32_t> held = ranks_held(job.snapshot);
    for (const Stay& stay : plan.stays) ++told[stay.rank.value];
    for (const Move& move : plan.moves) {
      ++told[move.rank.value];
      RC_ASSERT(job.snapshot.set(move.rank) == move.from_set);
      RC_ASSERT(job.snapshot.platform.processor(move.to).set == move.to_set);
      RC_ASSERT(move.to_set != move.from_set);
      const Processor& to = job.snapshot.platform.processor(move.to);
      RC_ASSERT(to.slots == 0 || held[move.to.value] < to.slots);
      ++held[move.to.value];
    }
    RC_ASSERT(std::ranges::all_of(told, [](int times) { return times == 1; }));
  }));
}

TEST(Property, PermutingTheRanksPermutesThePlan) {
  expect(rc::check([] {
    const RandomJob job = any_job();
    const std::size_t n = job.snapshot.ranks.size();
    std::vector<std::uint32_t> old_rank(n);  // old_rank[new] = old
    std::iota(old_rank.begin(), old_rank.end(), 0u);
    for (std::size_t i = n; i > 1; --i)
      std::swap(old_rank[i - 1], old_rank[*rc::gen::inRange<std::size_t>(0, i)]);

    RandomJob other = job;
    for (std::size_t i = 0; i < n; ++i) {
      other.snapshot.ranks[i] = job.snapshot.ranks[old_rank[i]];
      for (std::size_t t = 0; t < job.supersteps.size(); ++t) {
        MeasuredSuperstep& to = other.supersteps[t];
        const MeasuredSuperstep& from = job.supersteps[t];
        to.instructions[i] = from.instructions[old_rank[i]];
        to.compute_seconds[i] = from.compute_seconds[old_rank[i]];
        std::ranges::copy(from.recv_bytes.row(old_rank[i]), to.recv_bytes.row(i).begin());
        std::ranges::copy(from.recv_seconds.row(old_rank[i]), to.recv_seconds.row(i).begin());
      }
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
    for (const Stay& stay : permuted.stays)
      RC_ASSERT(stay.reason == stay_of(plan, old_rank[stay.rank.value]).reason);
  }));
}

TEST(Property, MovingCarriedOutAndDecidedAgainEndsWithNothingToGain) {
  // With a regular job and measured = predicted times, applying AutoMig's plans comes to rest: each
  // lowers pf by more than it costs, and there are finitely many placements.
  expect(rc::check([] {
    RandomJob job = random_job(Heuristic::kAutoMig);
    double last =
        superstep_seconds(job.snapshot, job.window().metrics(), current_placement(job.snapshot));
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
