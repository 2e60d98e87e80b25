#include "operator/decide/sparse_grid.h"

#include <algorithm>

#include "base/core/error.h"

namespace bsp::decide {

Pattern::Pattern(std::size_t rows, std::size_t cols) : rows_(rows), cols_(cols) {
  check(cols <= kMostColumns, "there are at most 65536 Sets");
  ends_.reserve(rows + 1);
}

std::size_t Pattern::place(std::size_t i, std::size_t j) const {
  const std::span<const Column> named = columns(i);
  return static_cast<std::size_t>(std::ranges::lower_bound(named, j) - named.begin());
}

double SparseGrid::operator[](std::size_t row, std::size_t col) const {
  if (pattern_->names_all(row)) return values_[pattern_->first(row) + col];
  const std::span<const Pattern::Column> named = pattern_->columns(row);
  const std::size_t at = pattern_->place(row, col);
  return at < named.size() && named[at] == col ? values_[pattern_->first(row) + at] : unnamed_;
}

void SparseGrid::widen(std::shared_ptr<const Pattern> pattern) {
  std::vector<double> values(pattern->size(), unnamed_);
  for (std::size_t i = 0; i < rows(); ++i) {
    const std::span<const Pattern::Column> was = pattern_->columns(i), is = pattern->columns(i);
    for (std::size_t w = 0, k = 0; w < was.size(); ++w, ++k) {
      while (is[k] != was[w]) ++k;
      values[pattern->first(i) + k] = values_[pattern_->first(i) + w];
    }
  }
  values_ = std::move(values);
  pattern_ = std::move(pattern);
}

Grid<double> SparseGrid::dense() const {
  Grid<double> all(rows(), cols(), unnamed_);
  for (std::size_t i = 0; i < rows(); ++i) {
    const std::span<const Pattern::Column> named = pattern_->columns(i);
    for (std::size_t k = 0; k < named.size(); ++k) all[i, named[k]] = row(i)[k];
  }
  return all;
}

}  // namespace bsp::decide
