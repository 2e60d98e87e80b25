#include "crds/nearest.h"

#include <algorithm>
#include <cctype>
#include <format>

namespace bsp::crds {
namespace {

std::size_t distance(std::string_view a, std::string_view b) {
  auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  };
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1)});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string_view>& known) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (std::string_view candidate : known) {
    const std::size_t d = distance(name, candidate);
    // A name of two letters is near to everything: at least half of it must be right.
    if (d < best_distance && d * 2 <= std::max(name.size(), candidate.size())) {
      best_distance = d;
      best = candidate;
    }
  }
  return std::string(best);
}

std::string suggestion(std::string_view name, const std::vector<std::string_view>& known) {
  if (const std::string near = nearest(name, known); !near.empty()) return std::format("; did you mean {}?", near);
  std::string list;
  for (std::string_view k : known) list += std::format("{}{}", list.empty() ? "" : ", ", k);
  return list.empty() ? "" : "; known: " + list;
}

}  // namespace bsp::crds
