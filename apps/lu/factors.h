// The factors on a grid of ranks: block-cyclic, as in the MigBSP papers (there with blocks of one cell).
//
//   Cell (i,j) belongs to rank (i/b mod R)·C + (j/b mod C).
//   superstep 1       first:  find the pivot of column 0 in its column of ranks
//   superstep 2k+2    second: the k-th panel of b columns: multipliers, pivots, row swaps; L is broadcast along its rows of
//                     ranks, U is computed in its row of ranks and broadcast along its columns
//   superstep 2k+3    third:  update the rest and find the next panel's first pivot
// 2⌈n/b⌉ + 1 supersteps, each ended by MPI_Barrier. The part to update shrinks with each of them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "apps/common/world.h"
#include "apps/lu/matrix.h"

namespace lu {

struct Pivot {  // layout of MPI_DOUBLE_INT
  double value = -1;
  int row = 0;
};

class Factors {
 public:
  Factors(const apps::World& world, const Matrix& matrix, std::size_t block, std::size_t process_rows);
  ~Factors();
  Factors(const Factors&) = delete;
  Factors& operator=(const Factors&) = delete;

  [[nodiscard]] std::size_t supersteps() const { return 2 * panels() + 1; }
  void superstep(std::size_t s);  // from 1

  // The column without a pivot if the matrix is singular, which ends the supersteps. Otherwise `order`.
  [[nodiscard]] std::size_t singular_at() const { return singular_at_; }
  [[nodiscard]] const std::vector<Pivot>& pivots() const { return pivots_; }  // of the columns so far
  [[nodiscard]] double computing() const { return computing_; }

  // After the last superstep, collective over all ranks.
  double residual();
  std::vector<double> solve();
  double backward_error(const std::vector<double>& x);
  // Rank 0 receives the factors row by row and calls take(i, row); the others send theirs.
  template <class Take>
  void collect(Take take) {
    std::vector<double> row(matrix_.order);
    for (std::size_t i = 0; i < matrix_.order; ++i) {
      collect_row(i, row);
      if (world_.first()) take(i, row);
    }
  }

 private:
  [[nodiscard]] std::size_t panels() const { return (matrix_.order + block_ - 1) / block_; }
  [[nodiscard]] double* row(std::size_t place) { return cells_.data() + place * width_; }
  [[nodiscard]] bool in_column_of(std::size_t column) const { return columns_.owns(column); }

  void find_pivot(std::size_t column);
  void factor_panel(std::size_t begin, std::size_t end);
  void second(std::size_t begin, std::size_t end);
  void third(std::size_t end);
  // Swaps columns `from` … `to`, by local index, of two rows.
  void exchange(std::size_t one, std::size_t other, std::size_t from, std::size_t to);
  // From the panel's column of ranks: the cells of its columns in this rank's rows from local index `first`, made by
  // cell(i, k, value).
  template <class Cell>
  void share_left(std::size_t begin, std::size_t end, std::size_t first, Cell cell);
  // From the panel's row of ranks: the cells of its rows in this rank's columns from local index `first`.
  template <class Cell>
  void share_upper(std::size_t begin, std::size_t end, std::size_t first, Cell cell);
  void collect_row(std::size_t i, std::vector<double>& row);
  void substitute(std::size_t begin, std::size_t end, bool forward, std::vector<double>& sums, std::vector<double>& x);

  const apps::World& world_;
  Matrix matrix_;
  std::size_t block_;
  Cyclic rows_, columns_;  // of the grid; this rank's parts
  MPI_Comm along_row_, along_column_;
  std::size_t width_;
  std::vector<double> cells_;  // row by row
  std::vector<Pivot> pivots_;
  Pivot next_;  // the next panel's first, in its column of ranks
  std::size_t singular_at_;
  std::vector<double> left_, upper_;  // L and U of the panel
  double computing_ = 0;
};

}  // namespace lu
