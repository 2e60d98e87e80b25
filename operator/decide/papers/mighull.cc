// MigHull (Righi et al., Scalable Computing: Practice and Experience 17(2), 2016): the ranks whose three terms of PM
// lie near the segment between those of the two highest.
//
//   point of i   (x, y, z) = (Comp, Comm, Mem) of its highest PM, s; p1 has the highest PM, p2 the second
//   for each of the planes (x,y), (x,z), (y,z), its axes called (a,b):
//     Δ          max(σ(a), σ(b)), population standard deviations over all points
//     distance   of a point to the segment p1 p2: to the nearer end where its a is outside [a1, a2], else
//                perpendicular to the line, |(a2 − a1)·(b1 − b) − (a1 − a)·(b2 − b1)| / √((a2 − a1)² + (b2 − b1)²)
//   candidates   p1, p2, and every point within Δ in all three planes
//
// The source assumes a1 ≤ a2 and prints the perpendicular distance with its sign; we order the ends and take the
// absolute value. Where p1 and p2 coincide in a plane, the distance is that to the point. No PM has to be positive:
// each candidate then has to pass the viability test of destination.h, in list order.
#include <algorithm>
#include <cmath>
#include <format>
#include <limits>

#include "operator/decide/model/text.h"
#include "operator/decide/papers/destination.h"

namespace bsp::decide {
namespace {

using Term = double PmEntry::*;

double deviation(std::span<const PmEntry> list, Term term) {
  double sum = 0, squares = 0;
  for (const PmEntry& e : list) sum += e.*term;
  const double n = static_cast<double>(list.size()), mean = sum / n;
  for (const PmEntry& e : list) squares += (e.*term - mean) * (e.*term - mean);
  return std::sqrt(squares / n);
}

struct Plane {
  Term a, b;
  double delta;

  [[nodiscard]] double distance(const PmEntry& e, const PmEntry& p1, const PmEntry& p2) const {
    const double a1 = p1.*a, b1 = p1.*b, a2 = p2.*a, b2 = p2.*b;
    const auto norm = [](double u, double v) { return std::sqrt(u * u + v * v); };
    const auto to = [&](double end_a, double end_b) { return norm(e.*a - end_a, e.*b - end_b); };
    const double length = norm(a2 - a1, b2 - b1);
    if (length == 0 || e.*a < std::min(a1, a2) || e.*a > std::max(a1, a2)) return std::min(to(a1, b1), to(a2, b2));
    return std::abs((a2 - a1) * (b1 - e.*b) - (a1 - e.*a) * (b2 - b1)) / length;
  }
};

// The distance and Δ of the plane in which the point is furthest outside.
Candidacy candidacy(const PmEntry& e, std::span<const PmEntry> list, std::span<const Plane> planes) {
  Candidacy result{.wanted = true};
  const bool is_an_end = e.rank == list[0].rank || e.rank == list[1].rank;
  double outside = -std::numeric_limits<double>::infinity();
  for (const Plane& plane : planes) {
    const double distance = plane.distance(e, list[0], list[1]);
    if (distance > plane.delta && !is_an_end) result.wanted = false;
    if (distance - plane.delta > outside) {
      outside = distance - plane.delta;
      result.value = distance;
      result.limit = plane.delta;
    }
  }
  return result;
}

}  // namespace

template <>
void plan<Heuristic::kMigHull>(const Case& c, std::span<const PmEntry> list, Plan& plan) {
  if (list.size() <= 2) return move_viable(c, list, [](std::size_t) { return Candidacy{.wanted = true}; }, plan);
  const Term x = &PmEntry::comp, y = &PmEntry::comm, z = &PmEntry::mem;
  const double dx = deviation(list, x), dy = deviation(list, y), dz = deviation(list, z);
  const Plane planes[] = {{x, y, std::max(dx, dy)}, {x, z, std::max(dx, dz)}, {y, z, std::max(dy, dz)}};
  move_viable(c, list, [&](std::size_t q) { return candidacy(list[q], list, planes); }, plan);
}

template <>
std::string why<Heuristic::kMigHull>(const Stay& stay, const std::string& set, const Plan&) {
  if (stay.reason != Reason::kNotCandidate) return longer_there(stay, set);
  return std::format("its terms lie {} from the line between the two highest PMs', more than {}", seconds(stay.value),
                     seconds(stay.limit));
}

}  // namespace bsp::decide
