// A vertical strip of the matrix: the columns one rank owns.
//
// Smith and Waterman 1981, with a penalty for gaps of every length, as they published it. a has m letters, b has n:
//   H(i,0) = H(0,j) = 0
//   H(i,j) = max(0, H(i-1,j-1) + s(a_i, b_j), max_k H(i-k,j) - W(k), max_l H(i,j-l) - W(l))      k = 1…i, l = 1…j
//   s = match or mismatch; W(k) = open + extend·(k-1) if affine, open + extend·⌊log2 k⌋ if logarithmic
// A cell depends on i + j others ("2D/1D"): the work is the same for all cells of an antidiagonal and grows from one
// to the next, as in the MigBSP papers.
//
// The strip has its own columns and, row by row, everything to the left of them, which the left neighbour sends.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sw {

struct Scoring {
  int match = 2, mismatch = -3, gap_open = 5, gap_extend = 2;
  bool logarithmic = false;

  [[nodiscard]] int letters(char a, char b) const { return a == b ? match : mismatch; }
  [[nodiscard]] int gap(std::size_t k) const;  // W(k), k >= 1
};

// A best-scoring cell: the highest score, of equals the topmost, of these the leftmost, on whichever rank.
struct Best {
  std::int64_t score = 0, row = 0, column = 0;  // rows and columns from 1; 0: no cell has a positive score
  [[nodiscard]] bool better_than(const Best& other) const;
};

class Strip {
 public:
  // Columns first + 1 … first + count of the matrix (b's letters from index `first`).
  Strip(std::string_view a, std::string_view b, const Scoring& scoring, std::size_t first, std::size_t count);

  // Computes rows begin + 1 … end. The rows above must be complete, and the columns to the left must have been put
  // in.
  void compute(std::size_t begin, std::size_t end);

  // Rows begin + 1 … end with all columns up to this strip's last, for the right neighbour to put in.
  [[nodiscard]] std::vector<std::int32_t> pack(std::size_t begin, std::size_t end) const;
  void unpack(std::size_t begin, std::size_t end, std::span<const std::int32_t> cells);
  [[nodiscard]] std::size_t left_cells(std::size_t begin, std::size_t end) const { return (end - begin) * first_; }

  [[nodiscard]] const Best& best() const { return best_; }
  [[nodiscard]] bool owns(std::int64_t column) const;  // columns from 1
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::span<const std::int32_t> column(std::size_t index) const;  // own, from 0; rows 1 … m
  // H(row, column) for any completed row and any column up to this strip's last.
  [[nodiscard]] std::int32_t at(std::size_t row, std::size_t column) const { return rows_[row * (last_ + 1) + column]; }

 private:
  std::string_view a_, b_;
  Scoring scoring_;
  std::size_t first_, count_, last_;
  std::size_t longest_;                  // gap
  std::vector<std::int32_t> penalties_;  // W(longest) … W(1)
  std::vector<std::int32_t> rows_;       // row-major, row 0 and column 0 too
  // The own columns again, column by column, so that both directions are contiguous.
  std::vector<std::int32_t> columns_;
  Best best_;
};

}  // namespace sw
