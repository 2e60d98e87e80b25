#include "operator/decide/pm.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "operator/decide/lanes.h"

namespace bsp::decide {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Why a Set takes no rank at all, if so.
std::vector<std::optional<Reason>> closed_sets(const Snapshot& snapshot) {
  const Platform& platform = snapshot.platform;
  const std::vector<std::uint32_t> held = ranks_held(snapshot);
  std::vector<std::optional<Reason>> closed(platform.sets.size(), Reason::kNoCapacity);
  for (std::size_t p = 0; p < platform.processors.size(); ++p) {
    const Processor& processor = platform.processors[p];
    if (!processor.cordoned && free_slots(processor, held[p]) > 0)
      closed[processor.set.value].reset();
  }
  for (std::size_t j = 0; j < platform.sets.size(); ++j)
    if (platform.sets[j].cordoned) closed[j] = Reason::kCordoned;
  return closed;
}

std::vector<bool> sets_with_processors(const Platform& platform) {
  std::vector<bool> has(platform.sets.size(), false);
  for (const Processor& p : platform.processors) has[p.set.value] = true;
  return has;
}

// The first Set with the highest PM, which is `highest`; the own one, if it is one of those.
std::uint32_t best_of(std::span<const double> PM, double highest, std::uint32_t own) {
  if (!(PM[own] < highest)) return own;
  return static_cast<std::uint32_t>(std::ranges::find(PM, highest) - PM.begin());
}

class Ranking {
 public:
  Ranking(const Snapshot& snapshot, const Metrics& metrics, const Params& params)
      : snapshot_(snapshot),
        platform_(snapshot.platform),
        metrics_(metrics),
        params_(params),
        ISet_(iset(platform_)),
        closed_(closed_sets(snapshot)),
        absent_(closed_.size(), 0.0),
        shut_(closed_.size(), 0.0),
        PM_(closed_.size()) {
    const std::vector<bool> has_processors = sets_with_processors(platform_);
    for (std::size_t j = 0; j < closed_.size(); ++j) {
      if (!has_processors[j]) absent_[j] = kNever;
      if (closed_[j]) shut_[j] = kNever;
    }
  }

  void add(RankId i, PmList& list) {
    const std::uint32_t own = snapshot_.set(i).value;
    double highest = compute_PM(i, own, shut_);
    if (const std::vector<SetId>& lacking = snapshot_.ranks[i.value].lacks_cpu_features_on; !lacking.empty()) {
      for (SetId j : lacking)
        if (j.value != own) PM_[j.value] = kNever;
      highest = std::ranges::max(PM_);
    }
    const std::uint32_t best = best_of(PM_, highest, own);
    if (best == own) {
      list.stays.push_back(stay_in_own_set(i, own));
    } else if (const auto blocked = why_blocked(snapshot_, metrics_, params_, i, SetId{best})) {
      list.stays.push_back(*blocked);
    } else {
      list.entries.push_back(entry(i, own, best));
    }
  }

 private:
  // PM_[j] = Comp(i,j) + Comm(i,j) − Mem(i,j) for every Set j; −∞ where `shut` is, but for the own. Returns the highest.
  double compute_PM(RankId i, std::uint32_t own, const std::vector<double>& shut) {
    const double comp = metrics_.P_comp[i.value] * metrics_.CTP[i.value];
    const double M = snapshot_.ranks[i.value].memory_bytes;
    const double* ISet = ISet_.row(own).data();
    const double* P_BTP = metrics_.P_BTP.row(i.value).data();
    const double* T = platform_.T.row(own).data();
    const double* Mig = platform_.Mig_row(i).data();
    const double* no_target = shut.data();
    double* PM = PM_.data();
    const auto pm = [=](std::size_t j) { return comp * ISet[j] + P_BTP[j] - (M * T[j] + Mig[j]); };
    const double highest = largest(
        PM_.size(), kNever,
        [=](std::size_t j) {
          const Lanes lanes = comp * load(ISet + j) + load(P_BTP + j) - (M * load(T + j) + load(Mig + j)) + load(no_target + j);
          store(lanes, PM + j);
          return lanes;
        },
        [=](std::size_t j) { return PM[j] = pm(j) + no_target[j]; });
    PM[own] = pm(own);  // staying is always possible
    return std::max(highest, PM[own]);
  }

  // Nothing that is open beats the own Set: did something that is closed?
  Stay stay_in_own_set(RankId i, std::uint32_t own) {
    const bool all_open =
        shut_ == absent_ && snapshot_.ranks[i.value].lacks_cpu_features_on.empty();
    const double highest = all_open ? PM_[own] : compute_PM(i, own, absent_);
    const std::uint32_t best = best_of(PM_, highest, own);
    Reason reason = Reason::kBestSetIsOwn;
    if (best != own) reason = closed_[best].value_or(Reason::kCpuFeatures);
    return {
        .rank = i, .reason = reason, .target = SetId{best}, .value = PM_[best], .limit = PM_[own]};
  }

  PmEntry entry(RankId i, std::uint32_t own, std::uint32_t j) const {
    return {.rank = i,
            .target = SetId{j},
            .comp = metrics_.P_comp[i.value] * metrics_.CTP[i.value] * ISet_[own, j],
            .comm = metrics_.P_BTP[i.value, j],
            .mem = snapshot_.ranks[i.value].memory_bytes * platform_.T[own, j] +
                   platform_.Mig_row(i)[j],
            .pm = PM_[j]};
  }

  const Snapshot& snapshot_;
  const Platform& platform_;
  const Metrics& metrics_;
  const Params& params_;
  Grid<double> ISet_;
  std::vector<std::optional<Reason>> closed_;
  std::vector<double> absent_;  // by Set: −∞ for one without processors, else 0
  std::vector<double> shut_;    // by Set: −∞ for one that is closed, else 0
  std::vector<double> PM_;      // by Set, of the rank at hand
};

void sort_by_decreasing_PM(std::vector<PmEntry>& entries) {
  std::vector<std::pair<double, std::uint32_t>> keys;  // sorting these is cheaper than the entries
  keys.reserve(entries.size());
  for (std::uint32_t q = 0; q < entries.size(); ++q) keys.emplace_back(-entries[q].pm, q);
  std::ranges::sort(keys);  // entries come by rank, so equal PMs stay in rank order
  std::vector<PmEntry> sorted;
  sorted.reserve(entries.size());
  for (const auto& [pm, q] : keys) sorted.push_back(entries[q]);
  entries = std::move(sorted);
}

}  // namespace

Grid<double> iset(const Platform& platform) {
  const std::size_t sets = platform.sets.size();
  std::vector<double> sum(sets, 0.0), count(sets, 0.0);
  for (const Processor& p : platform.processors) {
    sum[p.set.value] += p.available();
    count[p.set.value] += 1;
  }
  Grid<double> ISet(sets, sets, 0.0);
  for (std::size_t a = 0; a < sets; ++a)
    for (std::size_t j = 0; j < sets; ++j)
      if (count[a] > 0 && count[j] > 0) ISet[a, j] = (sum[j] / count[j]) / (sum[a] / count[a]);
  return ISet;
}

std::uint32_t free_slots(const Processor& p, std::uint32_t held) {
  if (p.slots == 0) return 1u << 31;
  return p.slots > p.taken + held ? p.slots - p.taken - held : 0;
}

std::vector<std::uint32_t> ranks_held(const Snapshot& snapshot) {
  std::vector<std::uint32_t> held(snapshot.platform.processors.size(), 0);
  for (const Rank& rank : snapshot.ranks) ++held[rank.processor.value];
  return held;
}

std::optional<Stay> why_blocked(const Snapshot& snapshot, const Metrics& metrics, const Params& params, RankId i,
                                SetId target) {
  const Rank& rank = snapshot.ranks[i.value];
  if (!rank.not_migratable.empty()) return Stay{.rank = i, .reason = Reason::kNotMigratable, .target = target};
  const std::uint64_t now = metrics.last.superstep.value, moved = rank.last_move.value;
  const std::uint64_t since = now > moved ? now - moved : 0;
  if (moved > 0 && since < params.cooldown)
    return Stay{.rank = i,
                .reason = Reason::kCooldown,
                .target = target,
                .value = static_cast<double>(since),
                .limit = static_cast<double>(params.cooldown)};
  return std::nullopt;
}

PmList make_pm_list(const Snapshot& snapshot, const Metrics& metrics, const Params& params) {
  PmList list;
  list.entries.reserve(snapshot.ranks.size());
  list.stays.reserve(snapshot.ranks.size());  // the heuristic adds to them
  Ranking ranking(snapshot, metrics, params);
  for (std::uint32_t i = 0; i < snapshot.ranks.size(); ++i) ranking.add(RankId{i}, list);
  sort_by_decreasing_PM(list.entries);
  return list;
}

}  // namespace bsp::decide
