#include "apps/lu/matrix.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <limits>
#include <numeric>

namespace lu {

double Matrix::at(std::uint64_t row, std::uint64_t column) const {
  if (column + 1 == zero_column) return 0;
  std::uint64_t z = seed * 0xD1342543DE82EF95u + row * 0x9E3779B97F4A7C15u + column * 0xC2B2AE3D27D4EB4Fu;
  for (const std::uint64_t factor : {0xBF58476D1CE4E5B9u, 0x94D049BB133111EBu}) z = (z ^ (z >> 31)) * factor;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-52 - 1.0;
}

std::vector<double> Matrix::cells() const {
  std::vector<double> all(order * order);
  for (std::size_t i = 0; i < order; ++i)
    for (std::size_t j = 0; j < order; ++j) all[i * order + j] = at(i, j);
  return all;
}

std::size_t Cyclic::before(std::size_t index) const {
  const std::size_t round = block * parts, rest = index % round, start = mine * block;
  return index / round * block + (rest > start ? std::min(rest - start, block) : 0);
}

std::size_t Cyclic::index(std::size_t place) const {
  return place / block * block * parts + mine * block + place % block;
}

void subtract(double* __restrict target, const double* l, const double* __restrict u, std::size_t stride,
              std::size_t terms, std::size_t n) {
  std::size_t k = 0;
  for (; k + 4 <= terms; k += 4) {  // load and store each cell once for four terms
    const double *u0 = u + k * stride, *u1 = u0 + stride, *u2 = u1 + stride, *u3 = u2 + stride;
    for (std::size_t j = 0; j < n; ++j)
      target[j] = target[j] - l[k] * u0[j] - l[k + 1] * u1[j] - l[k + 2] * u2[j] - l[k + 3] * u3[j];
  }
  for (; k < terms; ++k)
    for (std::size_t j = 0; j < n; ++j) target[j] -= l[k] * u[k * stride + j];
}

std::string singular(std::size_t column) {
  return std::format("the matrix is singular: column {} has no pivot", column + 1);
}

std::expected<std::vector<std::size_t>, std::string> factor(std::vector<double>& a, std::size_t n) {
  std::vector<std::size_t> pivots(n);
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t p = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::abs(a[i * n + k]) > std::abs(a[p * n + k])) p = i;
    if (a[p * n + k] == 0) return std::unexpected(singular(k));
    pivots[k] = p;
    if (p != k) std::swap_ranges(&a[k * n], &a[k * n] + n, &a[p * n]);
    for (std::size_t i = k + 1; i < n; ++i) {
      const double l = a[i * n + k] /= a[k * n + k];
      for (std::size_t j = k + 1; j < n; ++j) a[i * n + j] -= l * a[k * n + j];
    }
  }
  return pivots;
}

std::vector<std::size_t> permutation(const std::vector<std::size_t>& pivots) {
  std::vector<std::size_t> rows(pivots.size());
  std::iota(rows.begin(), rows.end(), 0u);
  for (std::size_t k = 0; k < pivots.size(); ++k) std::swap(rows[k], rows[pivots[k]]);
  return rows;
}

double residual(const Matrix& matrix, const std::vector<double>& factors, const std::vector<std::size_t>& pivots) {
  const std::size_t n = matrix.order;
  const auto rows = permutation(pivots);
  double difference = 0, whole = 0;
  std::vector<double> row(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) row[j] = matrix.at(rows[i], j), whole += row[j] * row[j];
    for (std::size_t k = 0; k <= i; ++k) {
      const double l = k < i ? factors[i * n + k] : 1.0;
      for (std::size_t j = k; j < n; ++j) row[j] -= l * factors[k * n + j];
    }
    for (const double value : row) difference += value * value;
  }
  return std::sqrt(difference / whole);
}

std::vector<double> solve(const Matrix& matrix, const std::vector<double>& factors,
                          const std::vector<std::size_t>& pivots) {
  const std::size_t n = matrix.order;
  const auto rows = permutation(pivots);
  std::vector<double> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = matrix.at(rows[i], n);
    for (std::size_t k = 0; k < i; ++k) x[i] -= factors[i * n + k] * x[k];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) x[i] -= factors[i * n + k] * x[k];
    x[i] /= factors[i * n + i];
  }
  return x;
}

void multiply(const Matrix& matrix, const Cyclic& rows, const Cyclic& columns, const std::vector<double>& x,
              std::vector<double>& product, std::vector<double>& row_sums) {
  for (std::size_t r = 0; r < rows.count(); ++r)
    for (std::size_t c = 0; c < columns.count(); ++c) {
      const std::size_t i = rows.index(r), j = columns.index(c);
      const double a = matrix.at(i, j);
      product[i] += a * x[j];
      row_sums[i] += std::abs(a);
    }
}

double backward_error(const Matrix& matrix, const std::vector<double>& x, const std::vector<double>& product,
                      const std::vector<double>& row_sums) {
  double difference = 0, largest_b = 0, largest_x = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double b = matrix.at(i, matrix.order);
    difference = std::max(difference, std::abs(product[i] - b));
    largest_b = std::max(largest_b, std::abs(b));
    largest_x = std::max(largest_x, std::abs(x[i]));
  }
  return difference / (*std::ranges::max_element(row_sums) * largest_x + largest_b);
}

double tolerance(std::size_t order) { return 16 * static_cast<double>(order) * std::numeric_limits<double>::epsilon(); }

}  // namespace lu
