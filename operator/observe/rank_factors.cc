#include "operator/observe/rank_factors.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <unordered_map>

#include "operator/observe/negligible.h"

namespace bsp::observe {

using nlohmann::json;

namespace {

constexpr double kMost = 3;  // ln

bool is_settled(const Estimate& apart) { return apart.samples >= Calibration::kSettled; }

}  // namespace

// As if the rank had been on two nodes, so that it isn't like all others on the next one.
RankFactors RankFactors::from_json(const json& j, std::size_t ranks) {
  RankFactors factors;
  if (!j.is_array()) return factors;
  for (const json& stored : j) {
    if (!stored.is_array() || stored.size() != 2 || !stored[0].is_number_unsigned() || !stored[1].is_number()) continue;
    const auto rank = stored[0].get<std::size_t>();
    const double c = stored[1].get<double>();
    if (rank >= ranks || !(std::abs(c) <= kMost)) continue;
    factors.ranks_.resize(ranks);
    const Visit earlier{.node = "", .apart = {-c, Calibration::kSettled}, .first = -c};
    factors.ranks_[rank] = {.visits = {earlier, earlier}, .factor = std::exp(c)};
  }
  return factors;
}

json RankFactors::to_json() const {
  json j = json::array();
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    if (ranks_[i].factor != 1) j.push_back({i, std::round(1000 * std::log(ranks_[i].factor)) / 1000});
  return j;
}

void RankFactors::add(const SuperstepTimes& times, const std::vector<std::string>& set_of_rank,
                      const std::vector<std::string>& node_of_rank, const Calibration& calibration) {
  const std::size_t n = std::min({times.instructions.size(), set_of_rank.size(), node_of_rank.size()});
  ranks_.resize(n);
  if (!calibration.told()) return;
  const Negligible is_negligible(std::span(times.compute_seconds).first(n));
  std::unordered_map<std::string_view, Calibration::Value> speeds;  // by Set
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<Visit>& visits = ranks_[i].visits;
    if (visits.empty() || visits.back().node != node_of_rank[i]) {
      std::erase_if(visits, [&](const Visit& v) { return v.node == node_of_rank[i] || !is_settled(v.apart); });
      if (visits.size() == kVisits) visits.erase(visits.begin());
      visits.push_back({.node = node_of_rank[i]});
    }
    const double I = times.instructions[i], CT = times.compute_seconds[i];
    if (!(I > 0 && CT > 0) || is_negligible(CT)) continue;
    const auto [speed, is_new] = speeds.try_emplace(set_of_rank[i]);
    if (is_new) speed->second = calibration.cpu(set_of_rank[i], {});
    if (!speed->second.measured) continue;
    Visit& here = visits.back();
    here.apart.add(std::log(I / ranks_[i].factor / CT / speed->second.value));
    if (here.apart.samples <= Calibration::kSettled) here.first = here.apart.value;
  }
}

RankFactors::Own RankFactors::own_differences(const Calibration& calibration) const {
  double own = 0, of_nodes = 0;
  std::size_t moved = 0;
  for (const Rank& rank : ranks_) {
    const Visit *before = nullptr, *last = nullptr;
    for (const Visit& v : rank.visits)
      if (is_settled(v.apart)) before = last, last = &v;
    if (before == nullptr) continue;
    const double a = before->apart.value, b = last->apart.value;
    const double error = std::hypot(calibration.error_of(before->apart, 1), calibration.error_of(last->apart, 1));
    own += a * b, of_nodes += (a - b) * (a - b) / 2 + error * error;
    ++moved;
  }
  if (own <= kSome * of_nodes) return Own::kNone;
  return moved >= kMoved && own > kAll * of_nodes ? Own::kAll : Own::kSome;
}

double RankFactors::factor_of(const Rank& rank, Own own) {
  std::vector<double> apart;
  double first = 0;
  for (const Visit& v : rank.visits)
    if (is_settled(v.apart)) apart.push_back(v.apart.value), first = v.first;
  if (own == Own::kAll && apart.size() == 1)
    apart = {first};
  else
    apart.push_back(0);
  std::ranges::sort(apart);
  const double low = apart[(apart.size() - 1) / 2], high = apart[apart.size() / 2];
  const double middle = std::abs(low) < std::abs(high) ? low : high;
  return std::abs(middle) < kUnlike ? 1 : std::exp(-std::clamp(middle, -kMost, kMost));
}

std::vector<double> RankFactors::settle(Calibration& calibration) {
  std::vector<double> ratio;
  const Own own = own_differences(calibration);
  if (own == Own::kNone) return ratio;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    const double now = factor_of(rank, own);
    if (std::abs(std::log(now / rank.factor)) < kChange) continue;
    ratio.resize(ranks_.size(), 1.0);
    ratio[i] = now / rank.factor;
    rank.factor = now;
    for (const Visit& v : rank.visits) calibration.forget(v.node);
  }
  return ratio;
}

}  // namespace bsp::observe
