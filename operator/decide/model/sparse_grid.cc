#include "operator/decide/model/sparse_grid.h"

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

bool Pattern::covers(const Pattern& other) const {
  if (this == &other) return true;
  for (std::size_t i = 0; i < rows_; ++i)
    if (!names_all(i) && !std::ranges::includes(columns(i), other.columns(i))) return false;
  return true;
}

SparseGrid::SparseGrid(std::shared_ptr<const Pattern> pattern, double unnamed, std::vector<double> values)
    : pattern_(std::move(pattern)), unnamed_(unnamed), values_(std::move(values)) {
  check(values_.size() == pattern_->size(), "a sparse grid has a value for each column that is named");
}

SparseGrid::SparseGrid(const Grid<double>& full, double unnamed) : unnamed_(unnamed) {
  auto pattern = std::make_shared<Pattern>(full.rows(), full.cols());
  for (std::size_t i = 0; i < full.rows(); ++i) {
    for (std::size_t j = 0; j < full.cols(); ++j) {
      if (full[i, j] == unnamed) continue;
      pattern->name(j);
      values_.push_back(full[i, j]);
    }
    pattern->end_row();
  }
  pattern_ = std::move(pattern);
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

bool SparseGrid::operator==(const SparseGrid& other) const {
  if (rows() != other.rows() || cols() != other.cols()) return false;
  for (std::size_t i = 0; i < rows(); ++i) {
    const std::span<const Pattern::Column> a = pattern_->columns(i), b = other.pattern_->columns(i);
    if (std::ranges::equal(a, b) ? !std::ranges::equal(row(i), other.row(i)) : !same_row(other, i)) return false;
  }
  return unnamed_ == other.unnamed_ || rows() == 0;
}

bool SparseGrid::same_row(const SparseGrid& other, std::size_t i) const {
  for (std::size_t j = 0; j < cols(); ++j)
    if ((*this)[i, j] != other[i, j]) return false;
  return true;
}

}  // namespace bsp::decide
