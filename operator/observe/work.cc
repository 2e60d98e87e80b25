#include "operator/observe/work.h"

#include <algorithm>
#include <cmath>

#include "operator/observe/median.h"

namespace bsp::observe {

using nlohmann::json;

namespace {

constexpr double kRounding = 1e-9;

struct Spread {
  double mean = 0, each = 0, error = 0;  // standard deviation: of a value, of the mean
};

Spread spread_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Spread s;
  for (const double v : values) s.mean += v / n;
  double squares = 0;
  for (const double v : values) squares += (v - s.mean) * (v - s.mean);
  // Of few values the spread may be small by chance.
  if (n > 1) s.each = (1 + 2 / std::sqrt(n)) * std::sqrt(squares / (n - 1));
  s.error = s.each / std::sqrt(n);
  return s;
}

}  // namespace

WorkUnit unit_of(std::size_t counted, std::size_t ranks) {
  if (ranks == 0) return WorkUnit::kUnknown;
  return counted == ranks ? WorkUnit::kInstructions : counted == 0 ? WorkUnit::kCpuTime : WorkUnit::kMixed;
}

void leave_out_limits(SuperstepTimes& times, std::span<const std::uint8_t> held_back, WorkUnit unit) {
  if (unit != WorkUnit::kCpuTime) return;
  for (std::size_t i = 0; i < std::min(held_back.size(), times.compute_seconds.size()); ++i)
    if (held_back[i] != 0) times.compute_seconds[i] = std::min(times.compute_seconds[i], times.instructions[i] * 1e-9);
}

// [from, to, f(to) / f(from), samples] of ranks that moved, and [Set, f] as it is in use, so that a restart changes no unit.
Work Work::from_json(const json& j) {
  Work work;
  if (!j.is_array()) return work;
  const auto positive = [](const json& x) {
    return x.is_number() && x.get<double>() > 0 && std::isfinite(x.get<double>());
  };
  for (const json& r : j) {
    if (!r.is_array()) continue;
    if (r.size() == 2 && r[0].is_string() && positive(r[1]))
      work.factors_[r[0].get<std::string>()] = r[1].get<double>();
    if (r.size() == 4 && r[0].is_string() && r[1].is_string() && positive(r[2]) && r[3].is_number_unsigned())
      work.ratios_[{r[0].get<std::string>(), r[1].get<std::string>()}] = {r[2].get<double>(),
                                                                          r[3].get<std::uint32_t>()};
  }
  return work;
}

json Work::to_json() const {
  json j = json::array();
  for (const auto& [sets, ratio] : ratios_) j.push_back({sets.first, sets.second, ratio.value, ratio.samples});
  for (const auto& [set, f] : factors_) j.push_back({set, f});
  return j;
}

void Work::add(std::span<const double> reported, const std::vector<std::string>& set_of_rank,
               std::span<const std::uint8_t> doubtful) {
  const std::size_t n = std::min(reported.size(), set_of_rank.size());
  ranks_.resize(n);
  bool moved = false;
  for (std::size_t i = 0; i < n; ++i) moved = moved || (!ranks_[i].set.empty() && ranks_[i].set != set_of_rank[i]);
  for (std::size_t i = 0; i < n; ++i) {
    Recent& rank = ranks_[i];
    if (moved) {
      rank.before.reset();
      const bool known = i >= doubtful.size() || doubtful[i] == 0;
      if (rank.time.samples > 0 && known) rank.before = {rank.set, rank.time.value};
      rank.time = {};
    }
    rank.set = set_of_rank[i];
    if (reported[i] > 0) rank.time.add(reported[i]);
  }
  if (moved) compared_ = false;
  if (!compared_ && n > 0 &&
      std::ranges::all_of(ranks_, [](const Recent& r) { return r.time.samples == 0 || r.time.samples >= kCompared; }))
    compare();
}

void Work::compare() {
  compared_ = true;
  std::vector<double> stayed;
  for (const Recent& r : ranks_)
    if (r.before && r.before->first == r.set && r.time.value > 0) stayed.push_back(r.before->second / r.time.value);
  const double meanwhile = stayed.empty() ? 1 : median(stayed);
  for (Recent& r : ranks_) {
    if (r.before && r.before->first != r.set && r.time.value > 0)
      ratios_[{r.before->first, r.set}].add(r.before->second / r.time.value / meanwhile);
    r.before.reset();
  }
}

// f of all Sets that ranks' moves lead to from `first`, whose own stays.
std::map<std::string, double> Work::confirmed_from(const std::string& first) const {
  std::map<std::string, double> f{{first, factor(first)}};
  for (bool more = true; more;) {
    more = false;
    for (const auto& [sets, ratio] : ratios_) {
      const auto a = f.find(sets.first), b = f.find(sets.second);
      if ((a == f.end()) == (b == f.end())) continue;
      if (a != f.end())
        f[sets.second] = a->second * ratio.value;
      else
        f[sets.first] = b->second / ratio.value;
      more = true;
    }
  }
  return f;
}

// The Sets that moves connect and that hold most ranks: what the others are compared with.
Work::BySet Work::best_known(const std::map<std::string, std::size_t>& ranks) const {
  BySet best;
  std::size_t most = 0;
  for (const auto& [set, n] : ranks) {
    BySet sure = confirmed_from(set);
    std::size_t held = 0;
    for (const auto& [other, f] : sure)
      if (const auto it = ranks.find(other); it != ranks.end()) held += it->second;
    if (held <= most) continue;
    most = held;
    best = std::move(sure);
  }
  return best;
}

// f ∝ speed, for all other Sets that a benchmark is known of, and for those that moves connect with them: among these, what the
// moves have shown holds.
std::vector<Work::BySet> Work::calibrate(const BySet& sure, const Benchmarks& benchmarks) const {
  const auto offset = [&](const BySet& f) -> std::optional<double> {  // mean ln(f / speed)
    double sum = 0, n = 0;
    for (const auto& [set, value] : f)
      if (const auto it = benchmarks.speeds().find(set); it != benchmarks.speeds().end())
        sum += std::log(value / it->second.value), ++n;
    return n > 0 ? std::optional(sum / n) : std::nullopt;
  };
  std::vector<BySet> groups;
  const auto reference = offset(sure);
  if (!reference) return groups;
  for (const auto& [set, speed] : benchmarks.speeds()) {
    if (sure.contains(set) || std::ranges::any_of(groups, [&](const BySet& g) { return g.contains(set); })) continue;
    groups.push_back(confirmed_from(set));
    const double shift = std::exp(*reference - *offset(groups.back()));
    for (auto& [member, f] : groups.back()) f *= shift;
  }
  return groups;
}

Work::BySet Work::settle(const std::vector<std::string>& set_of_rank, const Benchmarks& benchmarks) {
  BySet changed;
  if (unit_ != WorkUnit::kCpuTime || set_of_rank.empty()) return changed;
  std::map<std::string, std::size_t> held;
  for (const std::string& set : set_of_rank) ++held[set];
  std::map<std::string, std::vector<double>> times;
  for (const Recent& rank : ranks_)
    if (rank.time.samples > 0) times[rank.set].push_back(rank.time.value);
  const auto work_in = [&times](const BySet& f) {
    std::vector<double> work;
    for (const auto& [set, factor] : f)
      if (const auto it = times.find(set); it != times.end())
        for (const double time : it->second) work.push_back(time * factor);
    return work;
  };
  const BySet sure = best_known(held);
  const double usual = sure.begin()->second;
  const std::vector<double> known = work_in(sure);
  const Spread there = spread_of(known);
  // By which ln f is too low there, if ranks do as much work in the mean as those of which f is confirmed; its standard error.
  const auto unequal = [&](const BySet& f) -> std::optional<Spread> {
    const std::vector<double> work = work_in(f);
    if (work.empty() || known.size() < 2) return std::nullopt;
    Spread here = spread_of(work);
    if (work.size() < 2) here.error = here.mean * there.each / there.mean;  // as uneven as the others
    return Spread{.mean = std::log(there.mean / here.mean),
                  .error = std::hypot(there.error / there.mean, here.error / here.mean)};
  };
  BySet now = sure;
  calibrated_.clear();
  for (const BySet& group : calibrate(sure, benchmarks)) {
    double shift = 0;
    if (const auto means = unequal(group)) {
      const double error = std::hypot(means->error, kUnequal);
      if (std::abs(means->mean) <= kBoth * std::hypot(error, kMix))
        shift = means->mean * kMix * kMix / (kMix * kMix + error * error);
    }
    const auto& [first, f] = *group.begin();
    for (const double settled : {factors_.contains(first) ? factors_.at(first) : usual, usual})
      if (const double to = std::log(settled / f); std::abs(to - shift) <= kApart) {
        shift = to;
        break;
      }
    for (const auto& [set, value] : group) {
      now[set] = value * std::exp(shift);
      calibrated_.insert(set);
    }
  }
  if (!calibrated_.empty())
    for (const auto& [set, f] : sure) calibrated_.insert(set);
  guesses_ = false;
  for (const auto& [set, values] : times) {
    if (now.contains(set)) continue;
    double& f = now[set] = factors_.contains(set) ? factors_.at(set) : usual;
    if (const auto means = unequal({{set, f}}))
      if (std::abs(means->mean) > std::max(kApart, kSure * means->error)) f *= std::exp(means->mean);
    guesses_ = guesses_ || f != usual;
  }
  for (const auto& [set, f] : now) {
    const double was = factors_.try_emplace(set, 1).first->second;
    if (std::abs(f / was - 1) < kRounding) continue;
    changed[set] = f / was;
    factors_[set] = f;
  }
  confirmed_ = sure.size() > 1 ? sure : BySet{};
  return changed;
}

double Work::factor(const std::string& set) const {
  if (unit_ != WorkUnit::kCpuTime) return 1;
  const auto it = factors_.find(set);
  return it == factors_.end() ? 1 : it->second;
}

}  // namespace bsp::observe
