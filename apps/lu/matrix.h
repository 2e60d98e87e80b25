// LU decomposition with partial pivoting, PA = LU, of a dense matrix, and the distribution of its cells among the
// ranks.
//
//   for k = 0 … n-1:   p = the row i >= k with the largest |a_ik|, the topmost of equals; swap rows k and p
//                      a_ik ← a_ik / a_kk                  for i > k
//                      a_ij ← a_ij − a_ik · a_kj           for i, j > k
//
// Each cell is computed by the same operations in the same order whatever the distribution and blocking, so the
// factors are identical bit for bit for any number of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <vector>

namespace lu {

// A random matrix: each cell, between -1 and 1, follows from the seed and its position. Column `order` is the
// right-hand side b.
struct Matrix {
  std::uint64_t order = 500;
  std::uint64_t seed = 1;
  std::uint64_t zero_column = 0;  // from 1; 0: none

  [[nodiscard]] double at(std::uint64_t row, std::uint64_t column) const;
  [[nodiscard]] std::vector<double> cells() const;  // row by row
};

// Indices 0 … n-1, dealt in blocks to `parts` in turn; describes the share of part `mine`.
struct Cyclic {
  std::size_t n = 0, block = 1, parts = 1, mine = 0;

  [[nodiscard]] std::size_t owner(std::size_t index) const { return index / block % parts; }
  [[nodiscard]] bool owns(std::size_t index) const { return owner(index) == mine; }
  // The number of own indices before `index`; for an own index, its local index.
  [[nodiscard]] std::size_t before(std::size_t index) const;
  [[nodiscard]] std::size_t count() const { return before(n); }
  [[nodiscard]] std::size_t index(std::size_t place) const;
};

// target[j] ← target[j] − l[0]·u[j] − l[1]·u[stride + j] − …, in this order, for j < n and `terms` terms.
void subtract(double* target, const double* l, const double* u, std::size_t stride, std::size_t terms, std::size_t n);

// The sequential program. Factors a in place and returns the row p for each k; the error says where the matrix is
// singular.
std::expected<std::vector<std::size_t>, std::string> factor(std::vector<double>& a, std::size_t n);
std::string singular(std::size_t column);

// Row i of PA is row permutation[i] of A.
std::vector<std::size_t> permutation(const std::vector<std::size_t>& pivots);

// ‖PA − LU‖ / ‖A‖, Frobenius.
double residual(const Matrix& matrix, const std::vector<double>& factors, const std::vector<std::size_t>& pivots);

// x of Ax = b.
std::vector<double> solve(const Matrix& matrix, const std::vector<double>& factors,
                          const std::vector<std::size_t>& pivots);

// ‖Ax − b‖ / (‖A‖ ‖x‖ + ‖b‖), largest norms, from A·x and the sums of |a| of each row.
double backward_error(const Matrix& matrix, const std::vector<double>& x, const std::vector<double>& product,
                      const std::vector<double>& row_sums);
// The contribution of a rank's rows and columns to A·x and the row sums.
void multiply(const Matrix& matrix, const Cyclic& rows, const Cyclic& columns, const std::vector<double>& x,
              std::vector<double>& product, std::vector<double>& row_sums);

// The bound that rounding explains for either.
double tolerance(std::size_t order);

}  // namespace lu
