// RefineLB (Charm++): the smallest changes to the present placement that bring every processor near the mean.
//
//   limit = 1.05 · mean, mean = Σ_i I(i) / Σ_p (1 − load(p))·cpu(p)        s, if all could be spread evenly
//   while a processor has time(p) > limit, the one with the most first:
//     of its ranks the heaviest for which some processor stays below the limit goes to the one with the least time;
//     if none fits, p is left as it is
#include <algorithm>
#include <optional>

#include "sim/yardsticks/yardsticks.h"

namespace bsp::sim {
namespace {

class Refinement {
 public:
  Refinement(const decide::Snapshot& snapshot, std::span<const double> I)
      : processors_(snapshot.platform.processors), I_(I), sum_(processors_.size(), 0), ranks_(processors_.size(), 0), stuck_(processors_.size()) {
    double work = 0, speed = 0;
    for (std::size_t i = 0; i < I.size(); ++i) {
      placed_.push_back(snapshot.ranks[i].processor);
      sum_[placed_[i].value] += I[i];
      ++ranks_[placed_[i].value];
      work += I[i];
    }
    for (const decide::Processor& p : processors_) speed += p.available();
    limit_ = 1.05 * work / speed;
  }

  std::vector<ProcessorId> done() {
    while (const auto donor = most_loaded())
      if (!relieve(*donor)) stuck_[*donor] = true;
    return std::move(placed_);
  }

 private:
  [[nodiscard]] double time(std::uint32_t p, double more = 0) const { return (sum_[p] + more) / processors_[p].available(); }

  [[nodiscard]] std::optional<std::uint32_t> most_loaded() const {
    std::optional<std::uint32_t> most;
    for (std::uint32_t p = 0; p < processors_.size(); ++p)
      if (!stuck_[p] && time(p) > limit_ && (!most || time(p) > time(*most))) most = p;
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
  std::vector<bool> stuck_;  // processors that cannot be relieved
  std::vector<ProcessorId> placed_;
  double limit_ = 0;  // s
};

}  // namespace

std::vector<ProcessorId> refine_lb(const decide::Snapshot& snapshot, std::span<const double> I) { return Refinement(snapshot, I).done(); }

}  // namespace bsp::sim
