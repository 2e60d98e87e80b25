#include "apps/smith_waterman/strip.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>

namespace sw {
namespace {

// max of cells[x] - penalties[x]: the innermost loop, which takes nearly all the time.
std::int32_t best_gap(const std::int32_t* cells, const std::int32_t* penalties, std::size_t n) {
  std::int32_t best = std::numeric_limits<std::int32_t>::min() / 2;
  for (std::size_t x = 0; x < n; ++x) best = std::max(best, cells[x] - penalties[x]);
  return best;
}

}  // namespace

int Scoring::gap(std::size_t k) const {
  return gap_open + gap_extend * static_cast<int>(logarithmic ? std::bit_width(k) - 1u : k - 1);
}

bool Best::better_than(const Best& other) const {
  return std::tuple(-score, row, column) < std::tuple(-other.score, other.row, other.column);
}

Strip::Strip(std::string_view a, std::string_view b, const Scoring& scoring, std::size_t first, std::size_t count)
    : a_(a),
      b_(b),
      scoring_(scoring),
      first_(first),
      count_(count),
      last_(first + count),
      longest_(std::max(a.size(), b.size())),
      penalties_(longest_),
      rows_((a.size() + 1) * (last_ + 1)),
      columns_((a.size() + 1) * count) {
  for (std::size_t k = 1; k <= longest_; ++k) penalties_[longest_ - k] = scoring.gap(k);
}

void Strip::compute(std::size_t begin, std::size_t end) {
  const std::size_t height = a_.size() + 1, width = last_ + 1;
  for (std::size_t i = begin + 1; i <= end; ++i)
    for (std::size_t j = first_ + 1; j <= last_; ++j) {
      std::int32_t* row = &rows_[i * width];
      std::int32_t* column = &columns_[(j - first_ - 1) * height];
      const std::int32_t diagonal = row[j - 1 - width] + scoring_.letters(a_[i - 1], b_[j - 1]);
      const std::int32_t down = best_gap(column, &penalties_[longest_ - i], i);
      const std::int32_t right = best_gap(row, &penalties_[longest_ - j], j);
      row[j] = column[i] = std::max({0, diagonal, down, right});
      const Best here{row[j], static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)};
      if (here.score > 0 && here.better_than(best_)) best_ = here;
    }
}

std::vector<std::int32_t> Strip::pack(std::size_t begin, std::size_t end) const {
  std::vector<std::int32_t> cells;
  cells.reserve((end - begin) * last_);
  for (std::size_t i = begin + 1; i <= end; ++i) {
    const auto row = rows_.begin() + static_cast<std::ptrdiff_t>(i * (last_ + 1));
    cells.insert(cells.end(), row + 1, row + static_cast<std::ptrdiff_t>(last_) + 1);
  }
  return cells;
}

void Strip::unpack(std::size_t begin, std::size_t end, std::span<const std::int32_t> cells) {
  for (std::size_t i = begin + 1; i <= end; ++i) {
    std::copy_n(cells.begin(), first_, rows_.begin() + static_cast<std::ptrdiff_t>(i * (last_ + 1) + 1));
    cells = cells.subspan(first_);
  }
}

bool Strip::owns(std::int64_t column) const {
  return column > static_cast<std::int64_t>(first_) && column <= static_cast<std::int64_t>(last_);
}

std::span<const std::int32_t> Strip::column(std::size_t index) const {
  return std::span(columns_).subspan(index * (a_.size() + 1) + 1, a_.size());
}

}  // namespace sw
