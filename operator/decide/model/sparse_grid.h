// A grid in whose rows few columns are named: what ranks received, by the Sets that they hear from.
//
// A rank hears from its neighbours, and so from few of many Sets. Only these have values; all others have the same
// one, which the grid knows once. What is named is a pattern that grids may share (compressed sparse rows).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "operator/decide/model/grid.h"

namespace bsp::decide {

// Which columns each row names. Made row by row: name() in increasing order, then end_row().
class Pattern {
 public:
  using Column = std::uint16_t;
  static constexpr std::size_t kMostColumns = 1 << 16;

  Pattern(std::size_t rows, std::size_t cols);
  void name(std::size_t col) { columns_.push_back(static_cast<Column>(col)); }
  void end_row() { ends_.push_back(static_cast<std::uint32_t>(columns_.size())); }
  void shrink_to_fit() { columns_.shrink_to_fit(); }

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t cols() const { return cols_; }
  [[nodiscard]] std::size_t size() const { return columns_.size(); }  // named in all rows together
  [[nodiscard]] std::size_t first(std::size_t i) const { return ends_[i]; }
  [[nodiscard]] std::size_t end(std::size_t i) const { return ends_[i + 1]; }
  [[nodiscard]] bool names_all(std::size_t i) const { return end(i) - first(i) == cols_; }
  [[nodiscard]] std::span<const Column> columns(std::size_t i) const {
    return {columns_.data() + first(i), end(i) - first(i)};
  }
  // Where in columns(i), first(i) being 0, column j is or would be.
  [[nodiscard]] std::size_t place(std::size_t i, std::size_t j) const;
  // Whether it names, of the same rows, all that `other` does.
  [[nodiscard]] bool covers(const Pattern& other) const;

 private:
  std::size_t rows_, cols_;
  std::vector<std::uint32_t> ends_{0};  // of each row, after a 0
  std::vector<Column> columns_;
};

class SparseGrid {
 public:
  SparseGrid() = default;
  // `unnamed`: the value of all columns that the pattern does not name, and to begin with of the others too.
  SparseGrid(std::shared_ptr<const Pattern> pattern, double unnamed)
      : pattern_(std::move(pattern)), unnamed_(unnamed), values_(pattern_->size(), unnamed) {}
  // `values`: of what the pattern names, row after row.
  SparseGrid(std::shared_ptr<const Pattern> pattern, double unnamed, std::vector<double> values);
  // Names what is not `unnamed`.
  SparseGrid(const Grid<double>& full, double unnamed = 0);  // implicit: the same values

  [[nodiscard]] std::size_t rows() const { return pattern_ ? pattern_->rows() : 0; }
  [[nodiscard]] std::size_t cols() const { return pattern_ ? pattern_->cols() : 0; }
  [[nodiscard]] const Pattern& pattern() const { return *pattern_; }  // of a grid that has rows
  [[nodiscard]] double unnamed() const { return unnamed_; }
  double operator[](std::size_t row, std::size_t col) const;
  // [row, col] is going to be read, if the row names all.
  void prefetch(std::size_t row, std::size_t col) const {
    if (pattern_->names_all(row)) __builtin_prefetch(values_.data() + pattern_->first(row) + col);
  }
  // Of the columns that the pattern names, in its order.
  [[nodiscard]] std::span<double> row(std::size_t i) {
    return {values_.data() + pattern_->first(i), pattern_->end(i) - pattern_->first(i)};
  }
  [[nodiscard]] std::span<const double> row(std::size_t i) const {
    return {values_.data() + pattern_->first(i), pattern_->end(i) - pattern_->first(i)};
  }

  // The same values, under a pattern that names all that this one does.
  void widen(std::shared_ptr<const Pattern> pattern);
  [[nodiscard]] Grid<double> dense() const;
  // The same values in a grid of the same size, whatever is named.
  bool operator==(const SparseGrid& other) const;

 private:
  [[nodiscard]] bool same_row(const SparseGrid& other, std::size_t i) const;

  std::shared_ptr<const Pattern> pattern_;
  double unnamed_ = 0;
  std::vector<double> values_;
};

}  // namespace bsp::decide
