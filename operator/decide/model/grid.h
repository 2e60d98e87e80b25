// A rectangle of values, row after row in memory: [i, j] is rank i (or Set i) by Set j.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace bsp::decide {

template <class Value>
class Grid {
 public:
  Grid() = default;
  Grid(std::size_t rows, std::size_t cols, Value fill = {}) : rows_(rows), cols_(cols), values_(rows * cols, fill) {}

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t cols() const { return cols_; }
  [[nodiscard]] bool empty() const { return values_.empty(); }

  Value& operator[](std::size_t row, std::size_t col) { return values_[row * cols_ + col]; }
  const Value& operator[](std::size_t row, std::size_t col) const { return values_[row * cols_ + col]; }
  [[nodiscard]] std::span<Value> row(std::size_t i) { return {values_.data() + i * cols_, cols_}; }
  [[nodiscard]] std::span<const Value> row(std::size_t i) const { return {values_.data() + i * cols_, cols_}; }

  bool operator==(const Grid&) const = default;

 private:
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
  std::vector<Value> values_;
};

}  // namespace bsp::decide
