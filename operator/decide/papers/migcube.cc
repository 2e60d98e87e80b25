// MigCube (Righi et al., Scalable Computing: Practice and Experience 17(2), 2016): the ranks whose three terms of PM
// are like those of the highest.
//
//   point of i   (x, y, z) = (Comp, Comm, Mem) of its highest PM, s; p1 has the highest PM of all
//   Δ            mean Euclidean distance from p1 to the other points
//   candidates   all points inside the cube around p1 with edge 2Δ along the axes, its borders included
//
// p1 always is one, and no PM has to be positive: each candidate then has to pass the viability test of destination.h,
// in list order.
#include <algorithm>
#include <cmath>
#include <format>

#include "operator/decide/model/text.h"
#include "operator/decide/papers/destination.h"

namespace bsp::decide {

namespace {

struct Distance {
  double euclidean, along_an_axis;  // s; the latter along that axis on which it is the largest
};

Distance distance(const PmEntry& e, const PmEntry& p1) {
  const double x = std::abs(e.comp - p1.comp), y = std::abs(e.comm - p1.comm), z = std::abs(e.mem - p1.mem);
  return {std::sqrt(x * x + y * y + z * z), std::max({x, y, z})};
}

}  // namespace

template <>
void plan<Heuristic::kMigCube>(const Case& c, std::span<const PmEntry> list, Plan& plan) {
  double sum = 0;
  for (const PmEntry& e : list) sum += distance(e, list[0]).euclidean;
  const double delta = list.size() > 1 ? sum / static_cast<double>(list.size() - 1) : 0;
  const auto candidacy = [&](std::size_t q) -> Candidacy {
    const double d = distance(list[q], list[0]).along_an_axis;
    return {.wanted = d <= delta, .value = d, .limit = delta};
  };
  move_viable(c, list, candidacy, plan);
}

template <>
std::string why<Heuristic::kMigCube>(const Stay& stay, const std::string& set, const Plan&) {
  if (stay.reason != Reason::kNotCandidate) return longer_there(stay, set);
  return std::format("its terms lie {} from those of the highest PM, outside the cube of {} each way",
                     seconds(stay.value), seconds(stay.limit));
}

}  // namespace bsp::decide
