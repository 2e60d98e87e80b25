// RefineLB (Charm++): changes the current placement as little as possible to bring every processor near the mean.
//
//   mean = Σ_i I(i) / Σ_p (1 − load(p))·cpu(p)        s, if all work could be spread evenly
//   refine to a limit: while a processor has time(p) > limit, take the one with the most:
//     its heaviest rank for which some processor stays within the limit moves to the one that then has the least;
//     if none fits, the limit can't be kept
//   the limit is the least of 1.01, 1.02, … times the mean that can be kept, found by bisection below the current time
#include <algorithm>
#include <optional>

#include "sim/yardsticks/yardsticks.h"

namespace bsp::sim {
namespace {

class Refinement {
 public:
  Refinement(const decide::Snapshot& snapshot, std::span<const double> I)
      : processors_(snapshot.platform.processors), I_(I), sum_(processors_.size(), 0), ranks_(processors_.size(), 0) {
    double work = 0, speed = 0;
    for (std::size_t i = 0; i < I.size(); ++i) {
      placed_.push_back(snapshot.ranks[i].processor);
      sum_[placed_[i].value] += I[i];
      ++ranks_[placed_[i].value];
      work += I[i];
    }
    for (const decide::Processor& p : processors_) speed += p.available();
    mean_ = work / speed;
  }

  [[nodiscard]] double mean() const { return mean_; }
  [[nodiscard]] double most() const { return time(most_loaded()); }
  [[nodiscard]] const std::vector<ProcessorId>& placed() const { return placed_; }

  // Whether every processor keeps the limit afterwards.
  bool refine(double limit) {
    limit_ = limit;
    while (time(most_loaded()) > limit)
      if (!relieve(most_loaded())) return false;
    return true;
  }

 private:
  [[nodiscard]] double time(std::uint32_t p, double more = 0) const {
    return (sum_[p] + more) / processors_[p].available();
  }

  [[nodiscard]] std::uint32_t most_loaded() const {
    std::uint32_t most = 0;
    for (std::uint32_t p = 1; p < processors_.size(); ++p)
      if (time(p) > time(most)) most = p;
    return most;
  }

  [[nodiscard]] std::optional<std::uint32_t> taker(double load) const {
    std::optional<std::uint32_t> least;
    for (std::uint32_t p = 0; p < processors_.size(); ++p) {
      const decide::Processor& at = processors_[p];
      const bool closed = at.cordoned || (at.slots > 0 && ranks_[p] + at.taken >= at.slots);
      if (!closed && time(p, load) <= limit_ && (!least || time(p, load) < time(*least, load))) least = p;
    }
    return least;
  }

  bool relieve(std::uint32_t donor) {
    std::vector<std::uint32_t> its;
    for (std::uint32_t i = 0; i < placed_.size(); ++i)
      if (placed_[i].value == donor && I_[i] > 0) its.push_back(i);
    std::ranges::stable_sort(its, std::ranges::greater{}, [&](std::uint32_t i) { return I_[i]; });
    for (const std::uint32_t i : its) {
      const auto to = taker(I_[i]);
      if (!to) continue;
      sum_[donor] -= I_[i];
      --ranks_[donor];
      sum_[*to] += I_[i];
      ++ranks_[*to];
      placed_[i] = ProcessorId{*to};
      return true;
    }
    return false;
  }

  const std::vector<decide::Processor>& processors_;
  std::span<const double> I_;
  std::vector<double> sum_;
  std::vector<std::uint32_t> ranks_;
  std::vector<ProcessorId> placed_;
  double mean_ = 0, limit_ = 0;  // s
};

}  // namespace

std::vector<ProcessorId> refine_lb(const decide::Snapshot& snapshot, std::span<const double> I) {
  const Refinement present(snapshot, I);
  std::vector<ProcessorId> best = present.placed();
  const double steps_up_to_now = (present.most() / present.mean() - 1) / 0.01;
  if (!(steps_up_to_now > 1)) return best;  // no rank computes, or the least limit is already kept
  auto kept = static_cast<std::uint64_t>(std::min(steps_up_to_now, 1e9)) + 1, broken = std::uint64_t{0};
  while (kept > broken + 1) {
    const std::uint64_t steps = broken + (kept - broken) / 2;
    Refinement refinement(snapshot, I);
    if (refinement.refine(present.mean() * (1 + 0.01 * static_cast<double>(steps)))) {
      kept = steps;
      best = refinement.placed();
    } else {
      broken = steps;
    }
  }
  return best;
}

}  // namespace bsp::sim
