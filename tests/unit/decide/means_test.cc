// Plans that fast/ computes against those of the formulas as printed: the same to the last bit.
#include "operator/decide/model/means.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <tuple>

#include "operator/decide/make_plan.h"
#include "operator/decide/model/strategy.h"
#include "tests/unit/decide/random_job.h"

namespace bsp::decide {
namespace {

constexpr std::uint64_t kMeansSeed = 20261123;

auto fields(const PmEntry& e) { return std::tuple(e.rank, e.target, e.comp, e.comm, e.mem, e.pm); }
auto fields(const Level& l) { return std::tuple(l.level, l.rank, l.time, l.comm, l.mem, l.pf); }
auto fields(const Move& m) {
  return std::tuple(m.rank, m.from, m.to, m.from_set, m.to_set, m.gain_superstep, m.gain_window, m.cost, m.t_stay,
                    m.t_move, m.cost_assumed, m.cpu_assumed);
}
auto fields(const Stay& s) { return std::tuple(s.rank, s.reason, s.target, s.value, s.limit); }

template <class Entry>
void expect_same(const std::vector<Entry>& fast, const std::vector<Entry>& plain, const char* what) {
  ASSERT_EQ(fast.size(), plain.size()) << what;
  for (std::size_t k = 0; k < fast.size(); ++k) ASSERT_EQ(fields(fast[k]), fields(plain[k])) << what << " " << k;
}

// Rows that name all Sets, a few or none: each is read in a way of its own.
void hear_from_some(MeasuredSuperstep& superstep, std::mt19937_64& random) {
  Grid<double> bytes = superstep.recv_bytes.dense(), seconds = superstep.recv_seconds.dense();
  for (std::size_t i = 0; i < bytes.rows(); ++i) {
    const std::size_t one_in = 1 + random() % 3 * 8;
    for (std::size_t j = 0; j < bytes.cols(); ++j)
      if (random() % one_in != 0) bytes[i, j] = seconds[i, j] = 0;
  }
  superstep.recv_bytes = bytes, superstep.recv_seconds = seconds;
}

// Instructions are whole numbers, so that their sums are exact and have no order.
OneSuperstep any_job(std::mt19937_64& random, std::uint32_t n, Heuristic heuristic) {
  OneSuperstep job(random, {.ranks = 1 + n % 29, .processors = 2 + n % 31, .sets = 1 + n % 37}, heuristic);
  job.params.horizon = n % 2 == 0 ? Horizon::kWindow : Horizon::kSuperstep;
  job.params.reuse_vacated_slots = n % 5 == 0;
  if (n % 3 != 0) hear_from_some(job.superstep, random);
  if (n % 4 == 0)  // many equal PMs and times
    for (Processor& p : job.snapshot.platform.processors) p.cpu = 1e9, p.load = 0;
  return job;
}

class PlainAndFast : public testing::TestWithParam<Heuristic> {};

TEST_P(PlainAndFast, FastPlanIsPlainPlanBitForBit) {
  std::mt19937_64 random(kMeansSeed);
  std::size_t moved = 0;
  for (std::uint32_t n = 0; n < 400; ++n) {
    SCOPED_TRACE(n);
    const OneSuperstep job = any_job(random, n, GetParam());
    const Window window = job.window(1 + n % 4);
    const Plan fast = make_plan_with(fast_means(), job.snapshot, window, job.params).value();
    const Plan plain = make_plan_with(plain_means(), job.snapshot, window, job.params).value();
    expect_same(fast.pm_list, plain.pm_list, "PM list");
    expect_same(fast.levels, plain.levels, "levels");
    expect_same(fast.moves, plain.moves, "moves");
    expect_same(fast.stays, plain.stays, "stays");
    EXPECT_EQ(fast.chosen_level, plain.chosen_level);
    EXPECT_EQ(std::tuple(fast.objective.before, fast.objective.after, fast.forecast.before, fast.forecast.after),
              std::tuple(plain.objective.before, plain.objective.after, plain.forecast.before, plain.forecast.after));
    moved += fast.moves.size();
  }
  EXPECT_GT(moved, 100u);
}

INSTANTIATE_TEST_SUITE_P(Heuristics, PlainAndFast,
                         testing::Values(Heuristic::kTop, Heuristic::kPercentage, Heuristic::kAutoMig,
                                         Heuristic::kMigCube, Heuristic::kMigHull, Heuristic::kBottleneck,
                                         Heuristic::kAuto),
                         [](const auto& heuristic) { return std::string(strategy_for(heuristic.param).name); });

}  // namespace
}  // namespace bsp::decide
