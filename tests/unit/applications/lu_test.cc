// LU decomposition, compared with its definition: PA = LU, Ax = b; and the distribution of indices, compared with
// dealing them one by one.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "apps/lu/matrix.h"
#include "apps/lu/options.h"

namespace lu {
namespace {

TEST(Cyclic, EqualsDealingOneByOne) {
  for (const std::size_t n : {0u, 1u, 7u, 12u, 33u})
    for (const std::size_t block : {1u, 2u, 5u, 40u})
      for (const std::size_t parts : {1u, 2u, 3u, 5u}) {
        std::vector<std::vector<std::size_t>> dealt(parts);
        for (std::size_t i = 0; i < n; ++i) dealt[i / block % parts].push_back(i);
        for (std::size_t mine = 0; mine < parts; ++mine) {
          const Cyclic cyclic{.n = n, .block = block, .parts = parts, .mine = mine};
          ASSERT_EQ(cyclic.count(), dealt[mine].size());
          for (std::size_t place = 0; place < dealt[mine].size(); ++place)
            EXPECT_EQ(cyclic.index(place), dealt[mine][place]);
          for (std::size_t i = 0; i <= n; ++i)
            EXPECT_EQ(cyclic.before(i), static_cast<std::size_t>(std::ranges::count_if(
                                            dealt[mine], [&](std::size_t own) { return own < i; })));
        }
      }
}

TEST(Lu, SubtractIsTheSumInOrder) {
  const Matrix values{.order = 23, .seed = 3};
  const auto u = values.cells();
  for (std::size_t terms = 0; terms <= 9; ++terms)
    for (const std::size_t n : {0u, 1u, 5u, 23u}) {
      std::vector<double> l(9), target(23), expected(23);
      for (std::size_t k = 0; k < 9; ++k) l[k] = values.at(k, 50);
      for (std::size_t j = 0; j < 23; ++j) target[j] = expected[j] = values.at(60, j);
      for (std::size_t k = 0; k < terms; ++k)
        for (std::size_t j = 0; j < n; ++j) expected[j] -= l[k] * u[k * 23 + j];
      subtract(target.data(), l.data(), u.data(), 23, terms, n);
      EXPECT_EQ(target, expected) << terms << " " << n;
    }
}

TEST(Lu, FactorsOfASmallMatrix) {
  std::vector<double> a{1, 2, 4, 2, 1, 3, 4, 2, 2};
  EXPECT_EQ(factor(a, 3).value(), (std::vector<std::size_t>{2, 2, 2}));  // its rows end in the order 3, 1, 2
  EXPECT_EQ(a, (std::vector<double>{4, 2, 2, 0.25, 1.5, 3.5, 0.5, 0, 2}));
}

// det A as the sum over all permutations, and as the product of the pivots.
TEST(Lu, ThePivotsMultiplyToTheDeterminant) {
  for (std::size_t n = 1; n <= 6; ++n) {
    const Matrix matrix{.order = n, .seed = n};
    auto a = matrix.cells();
    std::vector<std::size_t> p(n);
    std::iota(p.begin(), p.end(), 0u);
    double expected = 0;
    do {
      double product = 1;
      for (std::size_t i = 0; i < n; ++i) {
        product *= matrix.at(i, p[i]);
        for (std::size_t j = 0; j < i; ++j) product *= p[j] > p[i] ? -1 : 1;
      }
      expected += product;
    } while (std::ranges::next_permutation(p).found);
    const auto pivots = factor(a, n).value();
    double determinant = 1;
    for (std::size_t k = 0; k < n; ++k) determinant *= a[k * n + k] * (pivots[k] == k ? 1 : -1);
    EXPECT_NEAR(determinant, expected, 1e-12) << n;
  }
}

TEST(Lu, NoMultiplierIsAboveOne) {
  const Matrix matrix{.order = 61, .seed = 9};
  auto a = matrix.cells();
  ASSERT_TRUE(factor(a, 61));
  for (std::size_t i = 0; i < 61; ++i)
    for (std::size_t k = 0; k < i; ++k) EXPECT_LE(std::abs(a[i * 61 + k]), 1);
}

TEST(Lu, ResidualAndSolutionAreExactUpToRounding) {
  for (const std::uint64_t n : {1u, 2u, 17u, 64u, 130u}) {
    const Matrix matrix{.order = n, .seed = 2};
    auto a = matrix.cells();
    const auto pivots = factor(a, n).value();
    EXPECT_LT(residual(matrix, a, pivots), tolerance(n));
    const auto x = solve(matrix, a, pivots);
    std::vector<double> product(n), row_sums(n);
    multiply(matrix, {.n = n}, {.n = n}, x, product, row_sums);
    EXPECT_LT(backward_error(matrix, x, product, row_sums), tolerance(n));
    auto wrong = a;  // wrong factors don't pass the tolerance
    wrong[n * n / 2] += 1e-6;
    EXPECT_GT(residual(matrix, wrong, pivots), tolerance(n));
  }
}

TEST(Lu, PartsOfAProductAddUp) {
  const Matrix matrix{.order = 19, .seed = 4};
  std::vector<double> x(19), whole(19), sums(19), parts(19), part_sums(19);
  for (std::size_t i = 0; i < 19; ++i) x[i] = static_cast<double>(i) - 5;
  multiply(matrix, {.n = 19}, {.n = 19}, x, whole, sums);
  for (std::size_t r = 0; r < 2; ++r)
    for (std::size_t c = 0; c < 3; ++c)
      multiply(matrix, {.n = 19, .block = 4, .parts = 2, .mine = r}, {.n = 19, .block = 4, .parts = 3, .mine = c}, x,
               parts, part_sums);
  for (std::size_t i = 0; i < 19; ++i) {
    EXPECT_NEAR(parts[i], whole[i], 1e-12);
    EXPECT_NEAR(part_sums[i], sums[i], 1e-12);
  }
}

TEST(Lu, SingularMatrixReportsItsColumn) {
  for (const std::uint64_t column : {1u, 5u, 8u}) {
    auto a = Matrix{.order = 8, .zero_column = column}.cells();
    EXPECT_EQ(factor(a, 8).error(), "the matrix is singular: column " + std::to_string(column) + " has no pivot");
  }
}

TEST(Lu, CellsCoverTheInterval) {
  const Matrix matrix{.order = 100, .seed = 1};
  const auto cells = matrix.cells();
  const auto [least, most] = std::ranges::minmax(cells);
  EXPECT_TRUE(least >= -1 && least < -0.99 && most <= 1 && most > 0.99) << least << " " << most;
  EXPECT_NEAR(std::accumulate(cells.begin(), cells.end(), 0.0) / 1e4, 0, 0.03);
  EXPECT_NE(cells, (Matrix{.order = 100, .seed = 2}.cells()));
}

TEST(Lu, GridsMatchThePapers) {
  for (const auto& [ranks, rows] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {1, 1}, {2, 2}, {3, 3}, {4, 2}, {5, 5}, {6, 3}, {25, 5}, {50, 10}, {100, 10}, {200, 20}})
    EXPECT_EQ(default_rows(ranks), rows);
}

}  // namespace
}  // namespace lu
