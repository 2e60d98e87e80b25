// Whole plans against those that plain_plan.h computes the long way.
#include "tests/unit/decide/plain_plan.h"

#include <gtest/gtest.h>

#include <random>

#include "operator/decide/make_plan.h"
#include "operator/decide/model/strategy.h"
#include "tests/unit/decide/random_job.h"

namespace bsp::decide {
namespace {

constexpr std::uint64_t kPlainSeed = 20261122;

// Most ranks hear from all Sets, some from a few, some from none.
void thin_out(MeasuredSuperstep& superstep, std::mt19937_64& random) {
  Grid<double> bytes = superstep.recv_bytes.dense(), seconds = superstep.recv_seconds.dense();
  for (std::size_t i = 0; i < bytes.rows(); ++i) {
    if (random() % 4 != 0) continue;
    const std::size_t one_in = 1 + random() % 20;
    for (std::size_t j = 0; j < bytes.cols(); ++j)
      if (random() % one_in != 0) bytes[i, j] = seconds[i, j] = 0;
  }
  superstep.recv_bytes = bytes, superstep.recv_seconds = seconds;
}

class Plain : public testing::TestWithParam<Heuristic> {};

TEST_P(Plain, EveryPlanIsWhatThePapersCompute) {
  std::mt19937_64 random(kPlainSeed);
  std::size_t moved = 0, few_among_many = 0;
  for (std::uint32_t n = 0; n < 500; ++n) {
    const Shape shape{.ranks = 1 + n % 23, .processors = 3 + n % 37, .sets = 1 + n % 40};
    OneSuperstep job(random, shape, GetParam());
    job.params.horizon = n % 2 == 0 ? Horizon::kWindow : Horizon::kSuperstep;
    if (n % 3 != 0) thin_out(job.superstep, random);
    const Window window = job.window(1 + n % 4);
    const Plan plan = make_plan(job.snapshot, window, job.params).value();
    const PlainPlan plain(job.snapshot, window.metrics(), job.params);
    SCOPED_TRACE(n);
    ASSERT_EQ(plan.pm_list.size(), plain.list.size());
    for (std::size_t q = 0; q < plain.list.size(); ++q) {
      EXPECT_EQ(plan.pm_list[q].rank.value, plain.list[q].rank);
      EXPECT_EQ(plan.pm_list[q].target.value, plain.list[q].target);
      EXPECT_NEAR(plan.pm_list[q].pm, plain.list[q].pm, 1e-12);
    }
    ASSERT_EQ(plan.levels.size(), plain.pf.size());
    for (std::size_t l = 0; l < plain.pf.size(); ++l) EXPECT_NEAR(plan.levels[l].pf, plain.pf[l], 1e-9);
    std::vector<PlainPlan::Placed> moves;
    for (const Move& move : plan.moves) moves.push_back({move.rank.value, move.to.value});
    ASSERT_EQ(moves, plain.moves);
    moved += moves.size();
    for (std::size_t i = 0; i < window.metrics().Comm_peaks.size(); ++i) {
      const std::size_t hears_from = window.metrics().Comm.row(i).size();
      few_among_many += hears_from == 2 || hears_from == 3 ? 1 : 0;
    }
  }
  EXPECT_GT(moved, 100u);
  EXPECT_GT(few_among_many, 50u) << "where short rows are read as long ones are";
}

INSTANTIATE_TEST_SUITE_P(Heuristics, Plain,
                         testing::Values(Heuristic::kTop, Heuristic::kPercentage, Heuristic::kAutoMig,
                                         Heuristic::kMigCube, Heuristic::kMigHull),
                         [](const auto& heuristic) { return std::string(strategy_for(heuristic.param).name); });

}  // namespace
}  // namespace bsp::decide
