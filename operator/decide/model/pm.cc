#include "operator/decide/model/pm.h"

#include <algorithm>

#include "operator/decide/fast/decreasing.h"
#include "operator/decide/model/means.h"

namespace bsp::decide {
namespace {

// Why a Set takes no rank at all, if so.
std::vector<std::optional<Reason>> closed_sets(const Case& c) {
  const std::vector<Set>& sets = c.snapshot.platform.sets;
  std::vector<std::optional<Reason>> closed(sets.size(), Reason::kNoCapacity);
  for (std::size_t p = 0; p < c.columns.set.size(); ++p)
    if (c.columns.slots[p] > c.columns.held[p]) closed[c.columns.set[p].value].reset();
  for (std::size_t j = 0; j < sets.size(); ++j)
    if (sets[j].cordoned) closed[j] = Reason::kCordoned;
  return closed;
}

std::vector<std::uint8_t> sets_that_are_open(std::span<const std::optional<Reason>> closed) {
  std::vector<std::uint8_t> open;
  for (const std::optional<Reason>& reason : closed) open.push_back(reason ? 0 : 1);
  return open;
}

std::vector<std::uint8_t> sets_with_processors(const Columns& columns) {
  std::vector<std::uint8_t> has(columns.sets, 0);
  for (SetId j : columns.set) has[j.value] = 1;
  return has;
}

class Ranking {
 public:
  explicit Ranking(const Case& c)
      : c_(c),
        ISet_(iset(c.columns)),
        closed_(closed_sets(c)),
        among_open_(c.means->highest_PM(c, ISet_, sets_that_are_open(closed_))),
        among_all_(c.means->highest_PM(c, ISet_, sets_with_processors(c.columns))),
        all_open_(sets_that_are_open(closed_) == sets_with_processors(c.columns)) {}

  void add(RankId i, PmList& list) {
    const std::uint32_t own = c_.columns.own[i.value].value;
    const bool special = c_.columns.special[i.value] != 0;
    std::span<const SetId> lacking;
    if (special) lacking = c_.snapshot.ranks[i.value].no_moves_to;
    const HighestPM::Found best = among_open_->find(i, lacking);
    if (best.set.value == own) {
      list.stays.push_back(stay_in_own_set(i, best, lacking));
    } else if (const auto blocked = special ? why_blocked(c_, i, best.set) : std::nullopt) {
      list.stays.push_back(*blocked);
    } else {
      list.entries.push_back(entry(i, own, best));
    }
  }

 private:
  // Nothing that is open beats the own Set: did something that is closed?
  Stay stay_in_own_set(RankId i, const HighestPM::Found& own, std::span<const SetId> lacking) const {
    const HighestPM::Found best = all_open_ && lacking.empty() ? own : among_all_->find(i, {});
    Reason reason = Reason::kBestSetIsOwn;
    if (best.set != own.set) {
      // What lasts is said before what may pass.
      const bool by_cpu = !lacking.empty() && std::ranges::contains(c_.snapshot.ranks[i.value].cpu_differs, best.set);
      reason = by_cpu ? Reason::kCpuFeaturesDiffer : closed_[best.set.value].value_or(Reason::kTargetFailed);
    }
    return {.rank = i, .reason = reason, .target = best.set, .value = best.pm, .limit = own.pm};
  }

  [[nodiscard]] PmEntry entry(RankId i, std::uint32_t own, const HighestPM::Found& best) const {
    const std::uint32_t j = best.set.value;
    return {.rank = i,
            .target = best.set,
            .comp = c_.metrics.P_comp[i.value] * c_.metrics.CTP[i.value] * ISet_[own, j],
            .comm = best.comm,
            .mem = Mem(c_, i, best.set),
            .pm = best.pm};
  }

  const Case& c_;
  Grid<double> ISet_;
  std::vector<std::optional<Reason>> closed_;
  std::unique_ptr<HighestPM> among_open_, among_all_;
  bool all_open_;
};

void sort_by_decreasing_PM(const Means& means, std::vector<PmEntry>& entries) {
  std::vector<double> pms;
  pms.reserve(entries.size());
  for (const PmEntry& e : entries) pms.push_back(e.pm);
  reorder(std::span(entries), means.by_decreasing(pms));  // entries come by rank: so do equal ones
}

}  // namespace

Grid<double> iset(const Columns& columns) {
  std::vector<double> sum(columns.sets, 0.0), count(columns.sets, 0.0);
  for (std::size_t p = 0; p < columns.set.size(); ++p) {
    sum[columns.set[p].value] += columns.available[p];
    count[columns.set[p].value] += 1;
  }
  Grid<double> ISet(columns.sets, columns.sets, 0.0);
  for (std::size_t a = 0; a < columns.sets; ++a)
    for (std::size_t j = 0; j < columns.sets; ++j)
      if (count[a] > 0 && count[j] > 0) ISet[a, j] = (sum[j] / count[j]) / (sum[a] / count[a]);
  return ISet;
}

double Mem(const Case& c, RankId i, SetId j) {
  const Platform& platform = c.snapshot.platform;
  return c.columns.M[i.value] * platform.T[c.columns.own[i.value].value, j.value] + platform.Mig_row(i)[j.value];
}

std::optional<Stay> why_blocked(const Case& c, RankId i, SetId target) {
  if (c.columns.special[i.value] == 0) return std::nullopt;
  const Rank& rank = c.snapshot.ranks[i.value];
  if (!rank.not_migratable.empty()) return Stay{.rank = i, .reason = Reason::kNotMigratable, .target = target};
  const std::uint64_t now = c.metrics.last.superstep.value, moved = rank.last_move.value;
  const std::uint64_t since = now > moved ? now - moved : 0;
  if (moved > 0 && since < c.params.cooldown)
    return Stay{.rank = i,
                .reason = Reason::kCooldown,
                .target = target,
                .value = static_cast<double>(since),
                .limit = static_cast<double>(c.params.cooldown)};
  return std::nullopt;
}

PmList make_pm_list(const Case& c) {
  PmList list;
  list.entries.reserve(c.snapshot.ranks.size());
  list.stays.reserve(c.snapshot.ranks.size());  // the heuristic adds to them
  Ranking ranking(c);
  for (std::uint32_t i = 0; i < c.snapshot.ranks.size(); ++i) ranking.add(RankId{i}, list);
  sort_by_decreasing_PM(*c.means, list.entries);
  return list;
}

}  // namespace bsp::decide
