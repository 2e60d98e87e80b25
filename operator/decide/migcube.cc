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

#include "operator/decide/destination.h"

namespace bsp::decide {

void plan_migcube(const Case& c, std::span<const PmEntry> list, Plan& plan) {
  std::vector<Candidacy> candidates;
  candidates.reserve(list.size());
  double sum = 0;
  for (const PmEntry& e : list) {
    const PmEntry& p1 = list[0];
    const double x = std::abs(e.comp - p1.comp), y = std::abs(e.comm - p1.comm), z = std::abs(e.mem - p1.mem);
    sum += std::sqrt(x * x + y * y + z * z);
    candidates.push_back({.value = std::max({x, y, z})});
  }
  const double delta = list.size() > 1 ? sum / static_cast<double>(list.size() - 1) : 0;
  for (Candidacy& candidate : candidates) {
    candidate.limit = delta;
    candidate.wanted = candidate.value <= delta;
  }
  move_viable(c, list, candidates, plan);
}

}  // namespace bsp::decide
