#include "apps/lu/factors.h"

#include <algorithm>
#include <climits>
#include <cmath>

namespace lu {
namespace {

enum Tag { kRow = 1, kExchange = 2 };

class Timed {  // adds its own lifetime to `sum`
 public:
  explicit Timed(double& sum) : sum_(sum), begin_(MPI_Wtime()) {}
  ~Timed() { sum_ += MPI_Wtime() - begin_; }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  double& sum_;
  double begin_;
};

int as_int(std::size_t n) { return static_cast<int>(n); }

void broadcast(std::vector<double>& values, std::size_t root, MPI_Comm comm) {
  MPI_Bcast(values.data(), as_int(values.size()), MPI_DOUBLE, as_int(root), comm);
}

std::vector<std::size_t> rows_of(const std::vector<Pivot>& pivots) {
  std::vector<std::size_t> rows;
  for (const Pivot& pivot : pivots) rows.push_back(static_cast<std::size_t>(pivot.row));
  return rows;
}

}  // namespace

Factors::Factors(const apps::World& world, const Matrix& matrix, std::size_t block, std::size_t process_rows)
    : world_(world), matrix_(matrix), block_(block), singular_at_(matrix.order) {
  const auto rank = static_cast<std::size_t>(world.rank),
             grid_columns = static_cast<std::size_t>(world.size) / process_rows;
  rows_ = {.n = matrix.order, .block = block, .parts = process_rows, .mine = rank / grid_columns};
  columns_ = {.n = matrix.order, .block = block, .parts = grid_columns, .mine = rank % grid_columns};
  MPI_Comm_split(MPI_COMM_WORLD, as_int(rows_.mine), as_int(columns_.mine), &along_row_);
  MPI_Comm_split(MPI_COMM_WORLD, as_int(columns_.mine), as_int(rows_.mine), &along_column_);
  width_ = columns_.count();
  cells_.resize(rows_.count() * width_);
  for (std::size_t r = 0; r < rows_.count(); ++r)
    for (std::size_t c = 0; c < width_; ++c) row(r)[c] = matrix.at(rows_.index(r), columns_.index(c));
}

Factors::~Factors() {
  MPI_Comm_free(&along_row_);
  MPI_Comm_free(&along_column_);
}

void Factors::superstep(std::size_t s) {
  const std::size_t panel = s / 2, begin = (panel - 1) * block_, end = std::min(panel * block_, matrix_.order);
  if (s == 1) {
    if (in_column_of(0)) find_pivot(0);
  } else if (s % 2 == 0) {
    second(begin, end);
  } else if (singular_at_ == matrix_.order) {
    third(end);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// In the column of ranks that owns the column: the largest cell on or below the diagonal, the topmost of equals.
void Factors::find_pivot(std::size_t column) {
  Pivot mine{.value = -1, .row = INT_MAX};
  const std::size_t c = columns_.before(column);
  for (std::size_t r = rows_.before(column); r < rows_.count(); ++r)
    if (const double value = std::abs(row(r)[c]); value > mine.value) mine = {value, as_int(rows_.index(r))};
  MPI_Allreduce(&mine, &next_, 1, MPI_DOUBLE_INT, MPI_MAXLOC, along_column_);
}

void Factors::exchange(std::size_t one, std::size_t other, std::size_t from, std::size_t to) {
  if (one == other || from == to) return;
  const bool first = rows_.owns(one), second = rows_.owns(other);
  const int n = as_int(to - from);
  if (first && second)
    std::swap_ranges(row(rows_.before(one)) + from, row(rows_.before(one)) + to, row(rows_.before(other)) + from);
  else if (first || second)
    MPI_Sendrecv_replace(row(rows_.before(first ? one : other)) + from, n, MPI_DOUBLE,
                         as_int(rows_.owner(first ? other : one)), kExchange, as_int(rows_.owner(first ? other : one)),
                         kExchange, along_column_, MPI_STATUS_IGNORE);
}

void Factors::factor_panel(std::size_t begin, std::size_t end) {
  const std::size_t from = columns_.before(begin), to = columns_.before(end);
  std::vector<double> top;
  for (std::size_t k = begin; k < end; ++k) {
    if (k > begin) find_pivot(k);
    pivots_[k] = next_;
    if (next_.value == 0) return;
    exchange(k, static_cast<std::size_t>(next_.row), from, to);
    top.resize(end - k);
    const std::size_t place = from + k - begin;
    if (rows_.owns(k)) std::copy_n(row(rows_.before(k)) + place, top.size(), top.begin());
    broadcast(top, rows_.owner(k), along_column_);
    const Timed timed(computing_);
    for (std::size_t r = rows_.before(k + 1); r < rows_.count(); ++r) {
      double* cells = row(r) + place;
      cells[0] /= top[0];
      subtract(cells + 1, cells, top.data() + 1, 0, 1, top.size() - 1);
    }
  }
}

template <class Cell>
void Factors::share_left(std::size_t begin, std::size_t end, std::size_t first, Cell cell) {
  const std::size_t n = end - begin, from = columns_.before(begin);
  left_.resize((rows_.count() - first) * n);
  if (columns_.owns(begin))
    for (std::size_t r = first; r < rows_.count(); ++r)
      for (std::size_t k = 0; k < n; ++k)
        left_[(r - first) * n + k] = cell(rows_.index(r), begin + k, row(r)[from + k]);
  broadcast(left_, columns_.owner(begin), along_row_);
}

template <class Cell>
void Factors::share_upper(std::size_t begin, std::size_t end, std::size_t first, Cell cell) {
  const std::size_t n = width_ - first, from = rows_.before(begin);
  upper_.resize((end - begin) * n);
  if (rows_.owns(begin))
    for (std::size_t k = 0; k < end - begin; ++k)
      for (std::size_t c = 0; c < n; ++c)
        upper_[k * n + c] = cell(begin + k, columns_.index(first + c), row(from + k)[first + c]);
  broadcast(upper_, rows_.owner(begin), along_column_);
}

void Factors::second(std::size_t begin, std::size_t end) {
  const std::size_t from = columns_.before(begin), to = columns_.before(end), n = end - begin;
  pivots_.resize(end);
  if (in_column_of(begin)) factor_panel(begin, end);
  MPI_Bcast(&pivots_[begin], as_int(n), MPI_DOUBLE_INT, as_int(columns_.owner(begin)), along_row_);
  const auto none = std::find_if(pivots_.begin() + static_cast<std::ptrdiff_t>(begin), pivots_.end(),
                                 [](const Pivot& pivot) { return pivot.value == 0; });
  if (none != pivots_.end()) {
    singular_at_ = static_cast<std::size_t>(none - pivots_.begin());
    return;
  }
  for (std::size_t k = begin; k < end; ++k) {  // in the other columns; the panel's own rows are already swapped
    const auto other = static_cast<std::size_t>(pivots_[k].row);
    exchange(k, other, 0, from);
    exchange(k, other, to, width_);
  }
  const auto as_it_is = [](std::size_t, std::size_t, double value) { return value; };
  share_left(begin, end, rows_.before(begin), as_it_is);
  if (rows_.owns(begin)) {
    const Timed timed(computing_);
    const std::size_t first = rows_.before(begin);
    for (std::size_t k = 1; k < n; ++k)
      subtract(row(first + k) + to, &left_[k * n], row(first) + to, width_, k, width_ - to);
  }
  share_upper(begin, end, to, as_it_is);
}

void Factors::third(std::size_t end) {
  const std::size_t begin = (end - 1) / block_ * block_, n = end - begin;
  const std::size_t first = rows_.before(begin), from = columns_.before(end);
  {
    const Timed timed(computing_);
    for (std::size_t r = rows_.before(end); r < rows_.count(); ++r)
      subtract(row(r) + from, &left_[(r - first) * n], upper_.data(), width_ - from, n, width_ - from);
  }
  if (end < matrix_.order && in_column_of(end)) find_pivot(end);
}

// Every rank subtracts L·U from its own cells of PA, panel by panel.
double Factors::residual() {
  const auto permuted = permutation(rows_of(pivots_));
  std::vector<double> rest(cells_.size());
  double sums[2] = {0, 0};
  for (std::size_t r = 0; r < rows_.count(); ++r)
    for (std::size_t c = 0; c < width_; ++c) {
      const double a = rest[r * width_ + c] = matrix_.at(permuted[rows_.index(r)], columns_.index(c));
      sums[1] += a * a;
    }
  for (std::size_t begin = 0; begin < matrix_.order; begin += block_) {
    const std::size_t end = std::min(begin + block_, matrix_.order), first = rows_.before(begin),
                      from = columns_.before(begin);
    share_left(begin, end, first, [](std::size_t i, std::size_t k, double l) {
      return i > k ? l : i == k ? 1.0 : 0.0;
    });
    share_upper(begin, end, from, [](std::size_t k, std::size_t j, double u) { return j >= k ? u : 0.0; });
    for (std::size_t r = first; r < rows_.count(); ++r)
      subtract(rest.data() + r * width_ + from, &left_[(r - first) * (end - begin)], upper_.data(), width_ - from,
               end - begin, width_ - from);
  }
  for (const double value : rest) sums[0] += value * value;
  MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return std::sqrt(sums[0] / sums[1]);
}

// One panel of a substitution. `sums`: the contribution of the unknowns found so far to this rank's rows, from its
// columns only.
void Factors::substitute(std::size_t begin, std::size_t end, bool forward, std::vector<double>& sums,
                         std::vector<double>& x) {
  const std::size_t n = end - begin, place = rows_.before(begin), from = columns_.before(begin);
  const std::size_t owner = rows_.owner(begin) * columns_.parts + columns_.owner(begin);
  if (rows_.owns(begin)) {
    std::vector<double> all(n);
    MPI_Reduce(&sums[place], all.data(), as_int(n), MPI_DOUBLE, MPI_SUM, as_int(columns_.owner(begin)), along_row_);
    if (columns_.owns(begin))
      for (std::size_t step = 0; step < n; ++step) {
        const std::size_t k = forward ? step : n - 1 - step;
        const double* cells = row(place + k) + from;
        double& value = x[begin + k];
        value -= all[k];
        for (std::size_t m = forward ? 0 : k + 1; m < (forward ? k : n); ++m) value -= cells[m] * x[begin + m];
        if (!forward) value /= cells[k];
      }
  }
  MPI_Bcast(&x[begin], as_int(n), MPI_DOUBLE, as_int(owner), MPI_COMM_WORLD);
  if (!columns_.owns(begin)) return;
  const std::size_t first = forward ? rows_.before(end) : 0, last = forward ? rows_.count() : place;
  for (std::size_t r = first; r < last; ++r)
    for (std::size_t k = 0; k < n; ++k) sums[r] += row(r)[from + k] * x[begin + k];
}

std::vector<double> Factors::solve() {
  const auto permuted = permutation(rows_of(pivots_));
  std::vector<double> x(matrix_.order), sums(rows_.count());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = matrix_.at(permuted[i], matrix_.order);
  for (std::size_t p = 0; p < panels(); ++p)
    substitute(p * block_, std::min((p + 1) * block_, matrix_.order), true, sums, x);
  std::ranges::fill(sums, 0.0);
  for (std::size_t p = panels(); p-- > 0;)
    substitute(p * block_, std::min((p + 1) * block_, matrix_.order), false, sums, x);
  return x;
}

double Factors::backward_error(const std::vector<double>& x) {
  std::vector<double> product(x.size()), row_sums(x.size());
  multiply(matrix_, rows_, columns_, x, product, row_sums);
  for (auto* values : {&product, &row_sums})
    MPI_Allreduce(MPI_IN_PLACE, values->data(), as_int(values->size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return lu::backward_error(matrix_, x, product, row_sums);
}

void Factors::collect_row(std::size_t i, std::vector<double>& whole) {
  const bool mine = rows_.owns(i);
  if (mine && !world_.first()) MPI_Send(row(rows_.before(i)), as_int(width_), MPI_DOUBLE, 0, kRow, MPI_COMM_WORLD);
  if (!world_.first()) return;
  for (std::size_t part = 0; part < columns_.parts; ++part) {
    Cyclic columns = columns_;
    columns.mine = part;
    std::vector<double> piece(columns.count());
    const std::size_t rank = rows_.owner(i) * columns_.parts + part;
    if (rank == 0)
      std::copy_n(row(rows_.before(i)), width_, piece.begin());
    else
      MPI_Recv(piece.data(), as_int(piece.size()), MPI_DOUBLE, as_int(rank), kRow, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (std::size_t c = 0; c < piece.size(); ++c) whole[columns.index(c)] = piece[c];
  }
}

}  // namespace lu
