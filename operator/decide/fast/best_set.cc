#include "operator/decide/fast/best_set.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace bsp::decide {
namespace {

constexpr double kNoneYet = -std::numeric_limits<double>::infinity();

// PM = Comp + Comm − Mem, s.
double PM(double comp, double ISet, double Comm, double M, double T, double Mig) {
  return comp * ISet + Comm - (M * T + Mig);
}

}  // namespace

BestSet::BestSet(const Case& c, const Grid<double>& ISet, std::vector<std::uint8_t> open)
    : c_(c), ISet_(ISet), open_(std::move(open)) {
  for (std::uint32_t own = 0; own < open_.size(); ++own) steps_.push_back(steps_from(own));
}

std::vector<BestSet::Step> BestSet::steps_from(std::uint32_t own) const {
  const Platform& platform = c_.snapshot.platform;
  const bool all_alike = platform.Mig.rows() == 1;  // else Mig is only known not to be negative
  std::vector<Step> steps;
  for (std::uint32_t j = 0; j < open_.size(); ++j)
    if (open_[j] && j != own)
      steps.push_back({ISet_[own, j], platform.T[own, j], all_alike ? platform.Mig[0, j] : 0, j, j});
  std::ranges::sort(steps, {}, [](const Step& s) { return std::tuple(-s.ISet, s.least_T, s.j); });
  for (std::size_t s = steps.size(); s-- > 1;) {
    Step& before = steps[s - 1];
    before.least_T = std::min(before.least_T, steps[s].least_T);
    before.least_Mig = std::min(before.least_Mig, steps[s].least_Mig);
    before.least_j = std::min(before.least_j, steps[s].least_j);
  }
  return steps;
}

void BestSet::announce(RankId i) const {
  const std::uint32_t own = c_.columns.own[i.value].value;
  if (c_.metrics.Comm_peaks.empty() || steps_[own].empty()) return;
  const std::uint32_t first = steps_[own].front().j;
  c_.metrics.Comm.prefetch(i.value, first);
  const double comp = c_.metrics.P_comp[i.value] * c_.metrics.CTP[i.value], M = c_.columns.M[i.value];
  const auto without_comm = [&](std::uint32_t j) {
    return PM(comp, ISet_[own, j], 0, M, c_.snapshot.platform.T[own, j], c_.snapshot.platform.Mig_row(i)[j]);
  };
  if (without_comm(own) >= without_comm(first)) c_.metrics.Comm.prefetch(i.value, own);
}

HighestPM::Found BestSet::find(RankId i, std::span<const SetId> lacking) const {
  constexpr std::uint32_t kAhead = 8;  // ranks are asked for in order
  if (i.value + kAhead < c_.columns.own.size()) announce({i.value + kAhead});
  const std::uint32_t own = c_.columns.own[i.value].value;
  const double comp = c_.metrics.P_comp[i.value] * c_.metrics.CTP[i.value], M = c_.columns.M[i.value];
  const double* ISet = ISet_.row(own).data();
  const double* T = c_.snapshot.platform.T.row(own).data();
  const double* Mig = c_.snapshot.platform.Mig_row(i).data();

  double rest = 0, most = 0;  // bounds of Comm: of the Sets that are not considered at once, and of all
  Found best{.set = {std::numeric_limits<std::uint32_t>::max()}, .comm = 0, .pm = kNoneYet};
  const auto consider = [&](std::uint32_t j, double comm) {
    const double pm = PM(comp, ISet[j], comm, M, T[j], Mig[j]);
    if (pm < best.pm || (pm == best.pm && j > best.set.value)) return;
    if (!lacking.empty() && std::ranges::find(lacking, SetId{j}) != lacking.end()) return;
    best = {{j}, comm, pm};
  };
  const auto consider_at_once = [&](std::uint32_t j, double comm) {
    if (j != own && open_[j] != 0) consider(j, comm);
  };
  if (c_.metrics.Comm_peaks.empty()) {  // rows are short
    const auto sets = c_.metrics.Comm.pattern().columns(i.value);
    const auto comm = c_.metrics.Comm.row(i.value);
    for (std::size_t k = 0; k < sets.size(); ++k) {
      consider_at_once(sets[k], comm[k]);
      most = std::max(most, comm[k]);
    }
  } else {
    const Peaks& peaks = c_.metrics.Comm_peaks[i.value];
    for (std::size_t q = 0; q < Peaks::kPeaks; ++q)
      if (peaks.value[q] > 0) consider_at_once(peaks.set[q], peaks.value[q]);
    rest = peaks.rest, most = peaks.most;
  }
  for (const Step& s : steps_[own]) {
    const double bound = PM(comp, s.ISet, rest, M, s.least_T, s.least_Mig);
    const bool beaten = bound < best.pm || (bound == best.pm && best.set.value < s.least_j);
    if (beaten && comp >= 0) break;
    if (s.j == best.set.value || PM(comp, s.ISet, rest, M, T[s.j], Mig[s.j]) < best.pm) continue;
    consider(s.j, Comm(i, s.j));
  }
  // What it has in its own Set is read only if it could be as much.
  if (PM(comp, ISet[own], most, M, T[own], Mig[own]) < best.pm) return best;
  const double comm = Comm(i, own), pm = PM(comp, ISet[own], comm, M, T[own], Mig[own]);
  return pm < best.pm ? best : Found{{own}, comm, pm};
}

}  // namespace bsp::decide
