#include "operator/observe/work.h"

#include <algorithm>
#include <cmath>

namespace bsp::observe {

using nlohmann::json;

namespace {

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

Work Work::from_json(const json& j) {
  Work work;
  if (!j.is_array()) return work;
  for (const json& r : j) {
    if (!r.is_array() || r.size() != 4 || !r[0].is_string() || !r[1].is_string() || !r[2].is_number() ||
        !r[3].is_number_unsigned() || !(r[2].get<double>() > 0))
      continue;
    work.ratios_[{r[0].get<std::string>(), r[1].get<std::string>()}] = {r[2].get<double>(), r[3].get<std::uint32_t>()};
  }
  return work;
}

json Work::to_json() const {
  json j = json::array();
  for (const auto& [sets, ratio] : ratios_) j.push_back({sets.first, sets.second, ratio.value, ratio.samples});
  return j;
}

void Work::add(std::span<const double> reported, const std::vector<std::string>& set_of_rank) {
  const std::size_t n = std::min(reported.size(), set_of_rank.size());
  ranks_.resize(n);
  bool moved = false;
  for (std::size_t i = 0; i < n; ++i) moved = moved || (!ranks_[i].set.empty() && ranks_[i].set != set_of_rank[i]);
  for (std::size_t i = 0; i < n; ++i) {
    Recent& rank = ranks_[i];
    if (moved) {
      rank.before.reset();
      if (rank.time.samples > 0) rank.before = {rank.set, rank.time.value};
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
  double meanwhile = 1;
  if (!stayed.empty()) {
    const auto middle = stayed.begin() + static_cast<std::ptrdiff_t>(stayed.size() / 2);
    std::ranges::nth_element(stayed, middle);
    meanwhile = *middle;
  }
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
std::map<std::string, double> Work::best_known(const TimesBySet& times) const {
  std::map<std::string, double> best;
  std::size_t most = 0;
  for (const auto& [set, values] : times) {
    std::map<std::string, double> sure = confirmed_from(set);
    std::size_t ranks = 0;
    for (const auto& [other, f] : sure)
      if (const auto it = times.find(other); it != times.end()) ranks += it->second.size();
    if (ranks <= most) continue;
    most = ranks;
    best = std::move(sure);
  }
  return best;
}

std::map<std::string, double> Work::settle(const std::vector<std::string>& set_of_rank) {
  std::map<std::string, double> changed;
  if (unit_ != WorkUnit::kCpuTime) return changed;
  TimesBySet times;
  for (std::size_t i = 0; i < std::min(ranks_.size(), set_of_rank.size()); ++i)
    if (ranks_[i].time.samples > 0) times[ranks_[i].set].push_back(ranks_[i].time.value);
  const std::map<std::string, double> sure = best_known(times);
  std::map<std::string, double> now = sure;
  std::vector<double> work;  // of the ranks in Sets whose f is confirmed
  for (const auto& [set, values] : times)
    if (const auto f = sure.find(set); f != sure.end())
      for (const double v : values) work.push_back(v * f->second);
  guesses_ = false;
  for (const auto& [set, values] : times) {
    if (sure.contains(set)) continue;
    now[set] = factors_.contains(set) ? factors_.at(set) : sure.begin()->second;
    if (work.size() < 2) continue;
    const Spread there = spread_of(work);
    Spread here = spread_of(values);
    if (values.size() < 2) here.error = here.mean * there.each / there.mean;  // as uneven as the others
    const double ratio = there.mean / here.mean, error = std::hypot(there.error / there.mean, here.error / here.mean);
    if (std::abs(std::log(ratio / now[set])) > std::max(kApart, kSure * error)) now[set] = ratio;
    guesses_ = guesses_ || now[set] != sure.begin()->second;
  }
  for (const auto& [set, f] : now)
    if (const double was = factor(set); f != was) changed[set] = f / was;
  for (const auto& [set, f] : now) factors_[set] = f;
  confirmed_ = sure.size() > 1 ? sure : std::map<std::string, double>{};
  return changed;
}

double Work::factor(const std::string& set) const {
  if (unit_ != WorkUnit::kCpuTime) return 1;
  const auto it = factors_.find(set);
  return it == factors_.end() ? 1 : it->second;
}

}  // namespace bsp::observe
