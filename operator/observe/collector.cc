#include "operator/observe/collector.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "operator/decide/model/adaptation.h"

namespace bsp::observe {

void Collector::add(const wire::RankReport& report) {
  if (report.rank >= pending_.size()) return;
  std::uint64_t& completed = completed_[report.rank];
  // The first report of a rank says nothing about its pace.
  if (completed > 0 && report.completed > completed) sampling_.completed(report.completed - completed);
  completed = std::max(completed, report.completed);
  if (report.memory_bytes) memory_[report.rank] = report.memory_bytes;
  add_partners(report);
  for (const wire::SuperstepReport& s : report.supersteps) {
    if (s.superstep <= taken_) continue;
    wire::SuperstepReport& held = pending_[report.rank].insert_or_assign(s.superstep, s).first->second;
    for (auto* by_set : {&held.recv_bytes, &held.recv_ns})
      if (by_set->size() > sets_) {
        by_set->resize(sets_);
        by_set->shrink_to_fit();
      }
    completed = std::max(completed, s.superstep);
  }
  auto& held = pending_[report.rank];
  while (held.size() > held_) held.erase(held.begin());
}

// Ranks that there are not, the rank itself and doubled ones are left out: the program may have written anything.
void Collector::add_partners(const wire::RankReport& report) {
  if (report.partners.empty() || report.rank >= partners_.size()) return;
  std::vector<decide::Partner>& partners = partners_[report.rank];
  partners.clear();
  for (std::size_t k = 0; k < std::min(report.partners.size(), report.partner_bytes.size()); ++k) {
    const RankId from{report.partners[k]};
    if (from.value >= partners_.size() || from.value == report.rank || partners.size() == decide::kMostPartners ||
        std::ranges::contains(partners, from, &decide::Partner::rank))
      continue;
    partners.push_back({.rank = from, .bytes = static_cast<double>(report.partner_bytes[k])});
  }
}

double Collector::wait_for_senders(std::size_t i, const wire::SuperstepReport& of_i, std::span<const double> compute,
                                   double slowest, double least_edge) const {
  double latest = partners(i).empty() ? slowest : 0;
  for (const decide::Partner& partner : partners(i)) latest = std::max(latest, compute[partner.rank.value]);
  return latest - compute[i] - (static_cast<double>(of_i.edge_ns) * 1e-9 - least_edge);
}

void Collector::skip_to(std::uint64_t superstep) {
  taken_ = std::max(taken_, superstep);
  for (auto& rank : pending_) rank.erase(rank.begin(), rank.upper_bound(taken_));
}

std::optional<decide::MeasuredSuperstep> Collector::take() {
  // The smallest superstep that every rank has: of earlier ones, at least one report is lost.
  std::uint64_t t = 0;
  for (;;) {
    for (const auto& rank : pending_) {
      const auto it = rank.lower_bound(t);
      if (it == rank.end()) return std::nullopt;
      t = std::max(t, it->first);
    }
    if (std::ranges::all_of(pending_, [&](const auto& rank) { return rank.contains(t); })) break;
  }

  const std::size_t n = pending_.size();
  decide::MeasuredSuperstep out;
  SuperstepTimes times;
  out.superstep = {t};
  times.superstep = t;
  auto heard_from = std::make_shared<decide::Pattern>(n, sets_);
  std::vector<double> bytes, seconds, rest(n);
  double least_edge = std::numeric_limits<double>::infinity();
  for (const auto& rank : pending_) {
    const wire::SuperstepReport& s = rank.at(t);
    out.instructions.push_back(static_cast<double>(s.instructions));
    out.compute_seconds.push_back(static_cast<double>(s.compute_ns) * 1e-9);
    least_edge = std::min(least_edge, static_cast<double>(s.edge_ns) * 1e-9);
  }
  const double slowest = out.compute_seconds.empty() ? 0 : std::ranges::max(out.compute_seconds);
  for (std::size_t i = 0; i < n; ++i) {
    const wire::SuperstepReport& s = pending_[i].at(t);
    rest[i] = static_cast<double>(s.comm_ns + s.edge_ns) * 1e-9;
    times.seconds += (out.compute_seconds[i] + rest[i]) / static_cast<double>(n);
    const std::size_t row = seconds.size();
    for (std::size_t j = 0; j < sets_; ++j) {
      const std::uint64_t from = j < s.recv_bytes.size() ? s.recv_bytes[j] : 0,
                          ns = j < s.recv_ns.size() ? s.recv_ns[j] : 0;
      if (from == 0 && ns == 0) continue;
      heard_from->name(j);
      bytes.push_back(static_cast<double>(from));
      seconds.push_back(static_cast<double>(ns) * 1e-9);
    }
    heard_from->end_row();
    const double wait = wait_for_senders(i, s, out.compute_seconds, slowest, least_edge);
    const double most = std::max(0.0, static_cast<double>(s.comm_ns) * 1e-9 - wait);
    const double received = std::accumulate(seconds.begin() + static_cast<std::ptrdiff_t>(row), seconds.end(), 0.0);
    if (wait > 0 && received > most)
      for (double& of_set : std::span(seconds).subspan(row)) of_set *= most / received;
  }
  out.recv_bytes = decide::SparseGrid(heard_from, 0, std::move(bytes));
  out.recv_seconds = decide::SparseGrid(heard_from, 0, std::move(seconds));
  out.communication_seconds = decide::shared_phase_seconds(rest);
  times.compute_seconds = out.compute_seconds;
  times.instructions = out.instructions;
  times.imbalance = decide::balance_of(out).imbalance();
  history_.push_back(std::move(times));
  if (history_.size() > kHistory) history_.pop_front();
  skip_to(t);
  return out;
}

std::uint64_t Collector::since(std::size_t rank) const {
  return pending_[rank].empty() ? taken_ : std::max(taken_, pending_[rank].rbegin()->first);
}

std::uint64_t Collector::memory_bytes(std::size_t rank) const {
  const auto it = memory_.find(rank);
  return it == memory_.end() ? 0 : it->second;
}

std::optional<MeanTimes> mean_times(const std::deque<SuperstepTimes>& history, std::uint64_t first,
                                    std::uint64_t last) {
  MeanTimes mean;
  std::vector<const SuperstepTimes*> of;
  for (const SuperstepTimes& t : history)
    if (t.superstep >= first && t.superstep <= last) of.push_back(&t);
  if (of.empty()) return std::nullopt;
  const auto n = static_cast<double>(of.size());
  const auto add = [&](std::vector<double>& sums, const std::vector<double>& values) {
    sums.resize(std::max(sums.size(), values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
  };
  double squares = 0;
  for (std::size_t t = 0; t < of.size(); ++t) {
    mean.seconds += of[t]->seconds;
    add(mean.compute_seconds, of[t]->compute_seconds);
    add(mean.instructions, of[t]->instructions);
    const double step = t > 0 ? of[t]->seconds - of[t - 1]->seconds : 0;
    squares += step * step / 2;
  }
  mean.supersteps = of.size();
  mean.seconds /= n;
  for (std::vector<double>* sums : {&mean.compute_seconds, &mean.instructions})
    for (double& sum : *sums) sum /= n;
  if (n > 1) mean.error = std::sqrt(squares / (n - 1) / n);
  return mean;
}

}  // namespace bsp::observe
