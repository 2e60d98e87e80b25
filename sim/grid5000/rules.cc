#include "sim/grid5000/rules.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace bsp::sim::grid5000 {
namespace {

// Of the last value a half, of the one before a quarter, …
double aged(std::span<const double> values) {
  double sum = 0, weight = 0.5;
  for (std::size_t k = values.size(); k-- > 0; weight /= 2) sum += values[k] * weight;
  return sum;
}

// The program's own way of sorting; which of two equals comes first matters.
void sort_by_pm(auto& list) {
  for (auto& a : list)
    for (auto& b : list)
      if (a.pm > b.pm) std::swap(a, b);
}

using Point = std::array<double, 3>;

// Twice the area of the triangle of a, b and c in the plane of two axes.
double area(const Point& a, const Point& b, const Point& c, std::size_t x, std::size_t y) {
  return std::abs((c[y] - a[y]) * (b[x] - a[x]) - (c[x] - a[x]) * (b[y] - a[y]));
}

}  // namespace

// What a process would get on each site, relative to the best.
std::array<double, kSites> Rules::shares(std::span<const Machine> on) const {
  std::map<Machine, double> held;
  for (const Machine m : on) ++held[m];
  std::array<double, kSites> shares{};
  for (std::uint32_t s = 0; s < kSites; ++s)
    for (std::uint32_t m = 0; m < known_[s]; ++m) shares[s] += kSiteOf[s].speed / (held[{s, m}] + 1);
  const double largest = std::ranges::max(shares);
  for (double& share : shares) share /= largest;
  return shares;
}

Rules::Entry Rules::entry(std::uint32_t process, const Measured& measured, const std::array<double, kSites>& shares,
                          std::size_t own) const {
  constexpr double kSecondsOfByte = 1e-6;
  Entry e{.process = process, .pm = 0, .site = kSites, .point = {}};
  const double computing = aged(measured.computing);
  for (std::size_t s = 0; s < kSites; ++s) {
    Point at{computing * shares[s], aged(measured.exchanging[s]), 0};
    if (s == own && process > 0) at[2] = kSecondsOfByte * aged(std::vector<double>(measured.computing.size(), kBytes));
    if (const double pm = at[0] + at[1] - at[2]; pm > e.pm) e.pm = pm, e.site = s;
    for (std::size_t axis = 0; axis < at.size(); ++axis)
      e.point[axis] =
          heuristic_ == Heuristic::kMigHull ? std::max(e.point[axis], at[axis]) : at[axis];  // the last site's
  }
  return e;
}

void Rules::choose_in_cube(std::span<const Entry> list) {
  const Point& centre = list[0].point;
  double sum = 0;
  for (const Entry& e : list) sum += std::hypot(e.point[0] - centre[0], e.point[1] - centre[1], e.point[2] - centre[2]);
  const double half = sum / static_cast<double>(list.size() - 1);
  for (const Entry& e : list) {
    bool inside = true;
    for (std::size_t axis = 0; axis < centre.size(); ++axis)
      inside = inside && centre[axis] - half <= e.point[axis] && e.point[axis] <= centre[axis] + half;
    if (inside) chosen_[e.process] = true;
  }
}

void Rules::choose_in_hull(std::span<const Entry> list) {
  const double n = static_cast<double>(list.size());
  Point mean{}, deviation{};
  for (const Entry& e : list)
    for (std::size_t axis = 0; axis < mean.size(); ++axis) mean[axis] += e.point[axis] / n;
  for (const Entry& e : list)
    for (std::size_t axis = 0; axis < mean.size(); ++axis)
      deviation[axis] += (e.point[axis] - mean[axis]) * (e.point[axis] - mean[axis]) / n;
  for (double& d : deviation) d = std::sqrt(d);
  double widest = std::max(deviation[0], deviation[1]);  // of the first plane; the others have their first axis's
  if (deviation[2] > deviation[0] || deviation[2] > deviation[1]) widest = deviation[2];
  const Point &first = list[list[0].process].point, &second = list[list[1].process].point;  // not list[0] and list[1]
  for (const Entry& e : list)
    if (area(first, second, e.point, 0, 1) < widest && area(first, second, e.point, 0, 2) < deviation[0] &&
        area(first, second, e.point, 1, 2) < deviation[1])
      chosen_[e.process] = true;
}

std::vector<std::pair<std::uint32_t, Machine>> Rules::call(std::span<const Measured> measured,
                                                           std::vector<Machine>& on) {
  const std::array<double, kSites> share = shares(on);
  std::vector<Entry> list;
  for (std::uint32_t i = 0; i < on.size(); ++i) list.push_back(entry(i, measured[i], share, on[i].site));
  std::vector<Entry> sorted = list;
  sort_by_pm(sorted);
  chosen_.resize(on.size());
  heuristic_ == Heuristic::kMigCube ? choose_in_cube(sorted) : choose_in_hull(sorted);
  std::vector<std::pair<std::uint32_t, Machine>> moves;
  for (std::uint32_t s = 0; s < kSites; ++s) {
    std::vector<std::uint32_t> sent(known_[s], 0);
    for (std::uint32_t i = 0; i < on.size(); ++i) {
      if (!chosen_[i] || list[i].site != s || on[i].site == s) continue;
      std::vector<std::uint32_t> held = sent;
      for (const Machine m : on)
        if (m.site == s) ++held[m.number];
      const auto to = static_cast<std::uint32_t>(std::ranges::min_element(held) - held.begin());
      ++sent[to];
      moves.emplace_back(i, on[i]);
      on[i] = {s, to};
    }
  }
  return moves;
}

}  // namespace bsp::sim::grid5000
