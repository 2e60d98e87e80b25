// Each of the means by which a call avoids examining everything, against examining everything: to the last bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <random>

#include "operator/decide/fast/best_set.h"
#include "operator/decide/fast/comm_of.h"
#include "operator/decide/fast/decreasing.h"
#include "operator/decide/fast/peaks.h"
#include "operator/decide/fast/pick_tree.h"
#include "operator/decide/fast/tournament.h"
#include "operator/decide/model/pm.h"
#include "operator/decide/model/sparse_grid.h"
#include "tests/unit/decide/random_job.h"

namespace bsp::decide {
namespace {

constexpr std::uint64_t kRandomSeed = 20261121;

// A few different numbers, so that many are equal.
double one_of_few(std::mt19937_64& random) { return static_cast<double>(std::uniform_int_distribution(0, 5)(random)); }

TEST(Peaks, AreLargestAndNothingElseExceedsTheRest) {
  std::mt19937_64 random(kRandomSeed);
  for (std::size_t sets = 0; sets <= 70; ++sets) {
    std::vector<double> row(sets);
    for (double& v : row) v = sets % 2 == 0 ? one_of_few(random) : std::uniform_real_distribution(0.0, 1.0)(random);
    const Peaks peaks = peaks_of(row);
    std::vector<std::uint32_t> seen;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t q = 0; q < Peaks::kPeaks; ++q) {
      least = std::min(least, peaks.value[q]);
      EXPECT_LE(peaks.value[q], peaks.most);
      if (!(peaks.value[q] > 0)) continue;
      EXPECT_EQ(row.at(peaks.set[q]), peaks.value[q]) << sets << " Sets";
      EXPECT_EQ(std::ranges::count(seen, peaks.set[q]), 0) << "each Set once";
      seen.push_back(peaks.set[q]);
    }
    EXPECT_EQ(seen.size(), std::min<std::size_t>(4, sets - static_cast<std::size_t>(std::ranges::count(row, 0.0))));
    for (std::uint32_t j = 0; j < sets; ++j)
      if (std::ranges::count(seen, j) == 0) {
        EXPECT_LE(row[j], peaks.rest);
      }
    EXPECT_LE(peaks.rest, least * (1 + 1e-10) + 1e-300) << "a bound that is worth something";
    if (sets > 0) {
      EXPECT_LE(peaks.most, std::ranges::max(row) * (1 + 1e-10) + 1e-300);
    }
  }
}

TEST(Peaks, OfASparseRowAreOfTheSetsThatItNames) {
  std::mt19937_64 random(kRandomSeed);
  for (int n = 0; n < 400; ++n) {
    std::vector<double> full(40), row;
    std::vector<Pattern::Column> sets;
    for (Pattern::Column j = 0; j < full.size(); ++j) {
      if (random() % 40 >= static_cast<unsigned>(n) % 7) continue;
      sets.push_back(j);
      row.push_back(full[j] = std::uniform_real_distribution(0.0, 1.0)(random));
    }
    const Peaks peaks = peaks_of(row, sets);
    std::size_t found = 0;
    for (std::size_t q = 0; q < Peaks::kPeaks; ++q) {
      if (!(peaks.value[q] > 0)) continue;
      EXPECT_EQ(full.at(peaks.set[q]), peaks.value[q]) << "of " << row.size() << " Sets";
      ++found;
    }
    EXPECT_EQ(found, std::min<std::size_t>(4, row.size()));
  }
}

// Every second rank hears from one to three Sets only.
void let_some_hear_from_few(MeasuredSuperstep& superstep, std::mt19937_64& random) {
  Grid<double> bytes = superstep.recv_bytes.dense(), seconds = superstep.recv_seconds.dense();
  for (std::size_t i = 1; i < bytes.rows(); i += 2)
    for (std::size_t j = 0, left = 1 + random() % 3; j < bytes.cols(); ++j) {
      const bool hears = left > 0 && random() % (bytes.cols() - j) < left;
      if (hears)
        --left;
      else
        bytes[i, j] = seconds[i, j] = 0;
    }
  superstep.recv_bytes = bytes, superstep.recv_seconds = seconds;
}

TEST(ByDecreasing, IsTheStableOrder) {
  std::mt19937_64 random(kRandomSeed);
  for (std::size_t n : {0u, 1u, 2u, 100u, 1999u, 2000u, 20'000u}) {
    for (bool few : {true, false}) {
      std::vector<double> values(n);
      for (double& v : values)
        v = few ? one_of_few(random) - 3
                : std::ldexp(std::uniform_real_distribution(-1.0, 1.0)(random), static_cast<int>(random() % 40));
      if (n > 5) values[0] = -0.0, values[1] = 0.0, values[2] = -0.0, values[3] = 5e-324, values[4] = -1e300;
      std::vector<std::uint32_t> expected(n);
      std::iota(expected.begin(), expected.end(), 0u);
      std::ranges::stable_sort(expected, [&](std::uint32_t a, std::uint32_t b) { return values[a] > values[b]; });
      EXPECT_EQ(by_decreasing(values), expected) << n;
      std::vector<double> sorted = values;
      reorder(std::span(sorted), expected);
      for (std::size_t q = 0; q < n; ++q) EXPECT_EQ(sorted[q], values[expected[q]]);
    }
  }
}

TEST(ByDecreasing, TellsApartWhatDiffersInTheLastBitsOnly) {
  for (std::size_t n : {100u, 5000u}) {
    std::vector<double> values(n, 1);
    for (std::size_t q = 1; q < n; ++q) values[q] = std::nextafter(values[q - 1], 2);
    const std::vector<std::uint32_t> order = by_decreasing(values);
    for (std::size_t q = 0; q < n; ++q) EXPECT_EQ(order[q], n - 1 - q);
  }
}

TEST(Tournament, KnowsTheLargestAndWhoHasIt) {
  std::mt19937_64 random(kRandomSeed);
  for (std::size_t n : {0u, 1u, 7u, 8u, 9u, 64u, 65u, 600u}) {
    std::vector<double> values(n);
    for (double& v : values) v = one_of_few(random);
    Tournament tournament(n, [&](std::size_t k) { return values[k]; });
    for (int step = 0; step < 300; ++step) {
      const auto first_largest = std::ranges::max_element(values);
      EXPECT_EQ(tournament.largest(), n == 0 ? 0 : *first_largest);
      if (n == 0) continue;
      EXPECT_EQ(tournament.winner(), static_cast<std::size_t>(first_largest - values.begin()));
      const std::size_t k = random() % n;
      EXPECT_EQ(tournament[k], values[k]);
      double but = 0;
      for (std::size_t other = 0; other < n; ++other)
        if (other != k) but = std::max(but, values[other]);
      EXPECT_EQ(tournament.largest_but(k), but);
      tournament.set(k, values[k] = one_of_few(random) * (step % 50 == 0 ? 0 : 1));
    }
  }
}

TEST(SparseGrid, HasTheFiguresOfTheFullOne) {
  std::mt19937_64 random(kRandomSeed);
  for (std::size_t n = 0; n < 40; ++n) {
    const std::size_t rows = n % 6, cols = n % 9;
    Grid<double> full(rows, cols), other(rows, cols);
    for (Grid<double>* grid : {&full, &other})
      for (std::size_t i = 0; i < rows; ++i)
        for (double& v : grid->row(i)) v = std::max(0.0, one_of_few(random) - 3);
    SparseGrid sparse = full, both = full;
    const SparseGrid of_other = other;
    EXPECT_EQ(sparse.dense(), full);
    EXPECT_EQ(sparse == of_other, full == other);
    EXPECT_EQ(of_other, SparseGrid(other));
    EXPECT_EQ(sparse == SparseGrid(full, 1), rows == 0) << "what is not named is something else";
    if (rows == 0) continue;
    // Named together: still the same values.
    Grid<double> sum(rows, cols);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < cols; ++j) sum[i, j] = full[i, j] + other[i, j];
    const auto pattern = std::make_shared<const Pattern>(SparseGrid(sum).pattern());
    EXPECT_TRUE(pattern->covers(sparse.pattern()));
    EXPECT_EQ(sparse.pattern().covers(of_other.pattern()), sparse.pattern().size() == pattern->size());
    both.widen(pattern);
    EXPECT_EQ(both, sparse);
    EXPECT_EQ(sparse, both);
    EXPECT_EQ(both.dense(), full);
  }
}

// Ranks hear from few Sets, or from all, from others in each window, and the metrics are what plain sums over full
// grids give.
TEST(SparseMetrics, AreThoseOfFullGrids) {
  std::mt19937_64 random(kRandomSeed);
  const double beta = 0.3;
  for (std::uint32_t n = 0; n < 60; ++n) {
    const std::size_t ranks = 1 + n % 5, sets = 1 + n % 21, supersteps = 3;
    State state;
    Grid<double> P_comm(ranks, sets, 1);
    for (int window = 0; window < 3; ++window) {
      Metrics m = open_metrics({}, state.P_comm, ranks, sets);
      Grid<double> PB(ranks, sets), BTP(ranks, sets), sum(ranks, sets);
      for (std::uint64_t t = 1; t <= supersteps; ++t) {
        MeasuredSuperstep now{.superstep = {t},
                              .instructions = std::vector<double>(ranks),
                              .compute_seconds = std::vector<double>(ranks)};
        Grid<double> bytes(ranks, sets), seconds(ranks, sets);
        for (std::size_t i = 0; i < ranks; ++i)
          for (std::size_t j = 0; j < sets; ++j)
            if (n % 4 == 0 || random() % 8 == 0) bytes[i, j] = one_of_few(random), seconds[i, j] = 0.1;
        now.recv_bytes = bytes, now.recv_seconds = seconds;
        update(m, now, supersteps, {.beta = beta}, t == supersteps);
        for (std::size_t i = 0; i < ranks; ++i) {
          for (std::size_t j = 0; j < sets; ++j) {
            const double B = bytes[i, j];
            PB[i, j] = t == 1 ? B : PB[i, j] / 2 + B / 2;
            BTP[i, j] = t == 1 ? seconds[i, j] : BTP[i, j] / 2 + seconds[i, j] / 2;
            const bool as_predicted = B * (1 - beta) <= PB[i, j] && PB[i, j] <= B * (1 + beta);
            P_comm[i, j] = std::clamp(P_comm[i, j] + (as_predicted ? 1 : -1) * (1.0 / supersteps), 0.0, 1.0);
            sum[i, j] += B;
            ASSERT_EQ((m.PB[i, j]), (PB[i, j])) << n;
            ASSERT_EQ((m.P_comm[i, j]), (P_comm[i, j])) << n;
            if (t < supersteps)
              ASSERT_EQ((m.BTP[i, j]), (BTP[i, j])) << n;
            else
              ASSERT_EQ((m.Comm[i, j]), (P_comm[i, j] * BTP[i, j])) << n;
            ASSERT_EQ((m.B_window[i, j]), (sum[i, j])) << n;
            ASSERT_EQ((m.last.recv_bytes[i, j]), B) << n;
          }
        }
      }
      EXPECT_EQ(m.Comm_peaks.size(), n % 4 == 0 && sets > Peaks::kShortRow ? ranks : 0u);
      state.P_comm = m.P_comm;
      EXPECT_EQ(state.P_comm, SparseGrid(P_comm, 1));
    }
  }
}

TEST(PickTree, PicksWhatALookAtAllWouldPick) {
  std::mt19937_64 random(kRandomSeed);
  for (std::size_t leaves : {1u, 7u, 8u, 9u, 64u, 65u, 700u}) {
    // Units that differ, that are the same, and that are said to be the same.
    for (const auto& [alike, of_unit] : {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
      constexpr double kUnit = 1.0 / 3;
      std::vector<double> time(leaves, PickTree::kInfinite), unit(leaves, kUnit);
      PickTree tree(leaves, {.low = 0, .high = 5}, of_unit ? kUnit : 0);
      // Some times differ by less than the sums that they are part of can tell.
      const auto some_time = [&] { return one_of_few(random) + one_of_few(random) * 0x1p-53; };
      for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
        if (!alike) unit[leaf] = 1 + one_of_few(random);
        if (random() % 4 != 0) tree.plant(leaf, time[leaf] = some_time(), unit[leaf]);
      }
      tree.grow();
      for (int step = 0; step < 500; ++step) {
        const double I = one_of_few(random), below = random() % 3 == 0 ? one_of_few(random) * 3 : PickTree::kInfinite;
        std::optional<PickTree::Pick> expected;
        for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
          const double with = time[leaf] + I * unit[leaf];
          if (with < (expected ? expected->time : below)) expected = {leaf, with};
        }
        const auto pick = tree.pick(I, below);
        ASSERT_EQ(pick.has_value(), expected.has_value()) << leaves << " leaves, step " << step;
        if (pick) {
          EXPECT_EQ(pick->leaf, expected->leaf);
          EXPECT_EQ(pick->time, expected->time);
          EXPECT_LE(tree.bounds(I).loose, tree.bounds(I).tight);
          EXPECT_LE(tree.bounds(I).tight, pick->time);
        }
        const std::size_t leaf = random() % leaves;
        if (random() % 3 == 0) {
          tree.close(leaf);
          time[leaf] = PickTree::kInfinite;
        } else {
          tree.set(leaf, time[leaf] = some_time(), unit[leaf]);
        }
      }
    }
  }
}

// PM of every Set as pm.h has it, and the best as it says.
TEST(BestSet, IsThatOfAllPMs) {
  std::mt19937_64 random(kRandomSeed);
  std::size_t own_best = 0, other_best = 0;
  for (std::uint32_t n = 0; n < 600; ++n) {
    OneSuperstep job(random, {.ranks = 5, .processors = 30, .sets = 1 + n % 40}, Heuristic::kAutoMig);
    const auto sets = static_cast<std::uint32_t>(job.snapshot.platform.sets.size());
    if (n % 3 == 0)  // many equal ones
      for (Processor& p : job.snapshot.platform.processors) p.cpu = 1e9, p.load = 0;
    if (n % 4 == 0)
      job.snapshot.platform.T = Grid<double>(sets, sets, 1e-9), job.snapshot.platform.Mig = Grid<double>(1, sets);
    if (n % 5 == 0) {
      job.snapshot.platform.Mig = Grid<double>(job.snapshot.ranks.size(), sets);
      for (std::uint32_t i = 0; i < job.snapshot.ranks.size(); ++i)
        for (double& mig : job.snapshot.platform.Mig.row(i)) mig = one_of_few(random) * 0.1;
    }
    if (n % 2 == 0)
      for (std::uint32_t i = 0; i < job.snapshot.ranks.size(); ++i)
        for (double& seconds : job.superstep.recv_seconds.row(i)) seconds = one_of_few(random) * 0.25;
    if (n % 3 == 0) let_some_hear_from_few(job.superstep, random);
    if (n % 7 == 0) job.superstep.compute_seconds.assign(job.snapshot.ranks.size(), 0);
    const Window window = job.window();
    const Metrics& m = window.metrics();
    const Columns columns = *columns_of(job.snapshot);
    const Case c{job.snapshot, columns, m, job.params, 1, 1};
    const Grid<double> ISet = iset(columns);
    std::vector<std::uint8_t> open;
    for (std::uint32_t j = 0; j < sets; ++j) open.push_back(n % 6 == 0 || random() % 5 != 0 ? 1 : 0);
    const BestSet best_set(c, ISet, open);
    for (std::uint32_t i = 0; i < job.snapshot.ranks.size(); ++i) {
      const std::vector<SetId>& lacking = job.snapshot.ranks[i].no_moves_to;
      const std::uint32_t own = columns.own[i].value;
      const auto PM_in = [&](std::uint32_t j) {
        return m.P_comp[i] * m.CTP[i] * ISet[own, j] + m.Comm[i, j] -
               (columns.M[i] * job.snapshot.platform.T[own, j] + job.snapshot.platform.Mig_row({i})[j]);
      };
      std::uint32_t best = own;
      for (std::uint32_t j = 0; j < sets; ++j)
        if (open[j] != 0 && std::ranges::count(lacking, SetId{j}) == 0 && PM_in(j) > PM_in(best)) best = j;
      const BestSet::Found found = best_set.find({i}, lacking);
      ASSERT_EQ(found.set.value, best) << "job " << n << ", rank " << i;
      EXPECT_EQ(found.pm, PM_in(best));
      EXPECT_EQ(found.comm, (m.Comm[i, best]));
      ++(best == own ? own_best : other_best);
    }
  }
  EXPECT_GT(own_best, 300u);
  EXPECT_GT(other_best, 300u);
}

TEST(CommOf, IsCommOfTheWholeRow) {
  std::mt19937_64 random(kRandomSeed);
  for (std::uint32_t n = 0; n < 100; ++n) {
    OneSuperstep job(random, {.ranks = 5, .processors = 8, .sets = 1 + n % 40}, Heuristic::kAutoMig);
    if (n % 2 == 0)
      for (std::uint32_t i = 0; i < 5; ++i)
        for (double& bytes : job.superstep.recv_bytes.row(i)) bytes *= one_of_few(random);
    if (n % 3 == 0) let_some_hear_from_few(job.superstep, random);
    const Grid<double> full = job.superstep.recv_bytes.dense();
    const Window window = job.window();
    const Columns columns = *columns_of(job.snapshot);
    const CommOf comm_of({job.snapshot, columns, window.metrics(), job.params, 1, 1});
    const Grid<double> T_to = transposed(job.snapshot.platform.T);
    for (std::uint32_t i = 0; i < 5; ++i)
      for (std::uint32_t j = 0; j < columns.sets; ++j)
        EXPECT_EQ(comm_of({i}, {j}), Comm(full.row(i), T_to.row(j))) << "job " << n;
  }
}

}  // namespace
}  // namespace bsp::decide
