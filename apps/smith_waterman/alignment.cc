#include "apps/smith_waterman/alignment.h"

#include <algorithm>
#include <format>

namespace sw {
namespace {

// The letter in each column of the alignment for one sequence, '-' for a gap.
std::string letters(const Alignment& alignment, std::string_view sequence, std::size_t next, char gap) {
  std::string all;
  for (const char step : alignment.path) all += step == gap ? '-' : sequence[next++];
  return all;
}

std::string letters_of_a(const Alignment& al, std::string_view a) { return letters(al, a, al.row, '<'); }
std::string letters_of_b(const Alignment& al, std::string_view b) { return letters(al, b, al.column, '^'); }

std::size_t gaps(std::string_view path) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < path.size(); ++i) count += path[i] != '|' && (i == 0 || path[i - 1] != path[i]);
  return count;
}

std::size_t letters_in(std::string_view line) {
  return line.size() - static_cast<std::size_t>(std::ranges::count(line, '-'));
}

}  // namespace

std::string trace_back(const Strip& strip, std::string_view a, std::string_view b, const Scoring& scoring,
                       const Best& best) {
  std::string path;
  auto i = static_cast<std::size_t>(best.row), j = static_cast<std::size_t>(best.column);
  while (i > 0 && j > 0 && strip.at(i, j) > 0) {
    const std::int32_t score = strip.at(i, j);
    if (score == strip.at(i - 1, j - 1) + scoring.letters(a[i - 1], b[j - 1])) {
      path += '|';
      --i, --j;
      continue;
    }
    std::size_t k = 1, l = 1;
    while (k <= i && score != strip.at(i - k, j) - scoring.gap(k)) ++k;
    if (k <= i) {
      path.append(k, '^');
      i -= k;
      continue;
    }
    while (l <= j && score != strip.at(i, j - l) - scoring.gap(l)) ++l;
    path.append(l, '<');
    j -= std::min(l, j);
  }
  std::ranges::reverse(path);
  return path;
}

Alignment::Alignment(const Best& best, std::string way) : end(best), path(std::move(way)) {
  row = static_cast<std::size_t>(best.row) - (path.size() - static_cast<std::size_t>(std::ranges::count(path, '<')));
  column =
      static_cast<std::size_t>(best.column) - (path.size() - static_cast<std::size_t>(std::ranges::count(path, '^')));
}

std::int64_t score_of(const Alignment& alignment, std::string_view a, std::string_view b, const Scoring& scoring) {
  const std::string in_a = letters_of_a(alignment, a), in_b = letters_of_b(alignment, b);
  std::int64_t score = 0;
  for (std::size_t i = 0; i < alignment.path.size();) {
    if (alignment.path[i] == '|') {
      score += scoring.letters(in_a[i], in_b[i]);
      ++i;
      continue;
    }
    const std::size_t begin = i;
    while (i < alignment.path.size() && alignment.path[i] == alignment.path[begin]) ++i;
    score -= scoring.gap(i - begin);
  }
  return score;
}

std::string in_words(const Alignment& alignment, std::string_view a, std::string_view b) {
  const std::size_t columns = alignment.path.size();
  if (columns == 0) return "score 0: no letter of a occurs in b";
  const std::string in_a = letters_of_a(alignment, a), in_b = letters_of_b(alignment, b);
  std::size_t equal = 0;
  for (std::size_t i = 0; i < columns; ++i) equal += in_a[i] == in_b[i];
  return std::format("score {}: a[{}..{}] with b[{}..{}], {} columns, {:.1f} % equal, {} gaps", alignment.end.score,
                     alignment.row + 1, alignment.end.row, alignment.column + 1, alignment.end.column, columns,
                     100.0 * static_cast<double>(equal) / static_cast<double>(columns), gaps(alignment.path));
}

std::string picture(const Alignment& alignment, std::string_view a, std::string_view b, std::size_t blocks,
                    std::size_t width) {
  const std::string in_a = letters_of_a(alignment, a), in_b = letters_of_b(alignment, b);
  std::size_t row = alignment.row, column = alignment.column;
  std::string all;
  for (std::size_t i = 0; i < in_a.size() && blocks > 0; i += width, --blocks) {
    const std::string line_a = in_a.substr(i, width), line_b = in_b.substr(i, width);
    std::string between;
    for (std::size_t x = 0; x < line_a.size(); ++x) between += line_a[x] == line_b[x] ? '|' : ' ';
    all += std::format("  a {:>6} {}\n           {}\n  b {:>6} {}\n\n", row + 1, line_a, between, column + 1, line_b);
    row += letters_in(line_a);
    column += letters_in(line_b);
  }
  return all;
}

}  // namespace sw
