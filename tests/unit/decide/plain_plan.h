// What a plan has to be, computed as the papers print it: every sum and maximum from scratch, over all ranks, Sets and
// processors, without any of the means by which operator/decide gets there sooner. Not Bottleneck, which is searched.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "operator/decide/model/plan.h"

namespace bsp::decide {

class PlainPlan {
 public:
  struct Entry {
    std::uint32_t rank, target;
    double comp, comm, mem, pm;
  };
  struct Placed {
    std::uint32_t rank, to;
    bool operator==(const Placed&) const = default;
  };

  PlainPlan(const Snapshot& snapshot, const Metrics& metrics, const Params& params)
      : s_(snapshot), m_(metrics), params_(params), n_(snapshot.ranks.size()), sets_(snapshot.platform.sets.size()) {
    const bool window = params.horizon != Horizon::kSuperstep;
    I_ = window ? metrics.I_window : metrics.last.instructions;
    B_ = (window ? metrics.B_window : metrics.last.recv_bytes).dense();
    for (const Rank& rank : snapshot.ranks) at_.push_back(rank.processor.value);
    taken_.assign(snapshot.platform.processors.size(), 0);
    for (std::uint32_t p = 0; p < taken_.size(); ++p)
      taken_[p] = processor(p).taken + static_cast<std::uint32_t>(std::ranges::count(at_, p));
    make_list();
    if (params.heuristic == Heuristic::kAutoMig)
      levels();
    else
      candidates();
  }

  std::vector<Entry> list;
  std::vector<double> pf;  // by level; AutoMig's
  std::vector<Placed> moves;

 private:
  [[nodiscard]] const Processor& processor(std::uint32_t p) const { return s_.platform.processors[p]; }
  [[nodiscard]] std::uint32_t set_of(std::uint32_t p) const { return processor(p).set.value; }
  [[nodiscard]] double T(std::uint32_t a, std::uint32_t b) const { return s_.platform.T[a, b]; }
  [[nodiscard]] std::uint32_t own(std::uint32_t i) const { return s_.set({i}).value; }

  [[nodiscard]] bool has_slot(std::uint32_t p) const {
    const Processor& it = processor(p);
    if (it.cordoned || s_.platform.sets[it.set.value].cordoned) return false;
    return it.slots == 0 || taken_[p] < it.slots;
  }
  [[nodiscard]] bool is_target(std::uint32_t j, std::uint32_t i) const {
    if (std::ranges::count(s_.ranks[i].no_moves_to, SetId{j}) > 0) return false;
    for (std::uint32_t p = 0; p < taken_.size(); ++p)
      if (set_of(p) == j && has_slot(p)) return true;
    return false;
  }
  [[nodiscard]] double mean_available(std::uint32_t j) const {
    double sum = 0, count = 0;
    for (const Processor& p : s_.platform.processors)
      if (p.set.value == j) sum += p.available(), ++count;
    return sum / count;
  }

  void make_list() {
    for (std::uint32_t i = 0; i < n_; ++i) {
      std::optional<Entry> best;
      const auto consider = [&](std::uint32_t j) {
        Entry e{.rank = i,
                .target = j,
                .comp = m_.P_comp[i] * m_.CTP[i] * (mean_available(j) / mean_available(own(i))),
                .comm = m_.Comm[i, j],
                .mem = s_.ranks[i].memory_bytes * T(own(i), j) + s_.platform.Mig_row({i})[j],
                .pm = 0};
        e.pm = e.comp + e.comm - e.mem;
        if (!best || e.pm > best->pm) best = e;
      };
      consider(own(i));
      for (std::uint32_t j = 0; j < sets_; ++j)
        if (j != own(i) && is_target(j, i)) consider(j);
      if (best->target != own(i) && s_.ranks[i].not_migratable.empty()) list.push_back(*best);
    }
    std::ranges::stable_sort(list, {}, [](const Entry& e) { return -e.pm; });
  }

  // s, of what is on p.
  [[nodiscard]] double time(std::uint32_t p, const std::vector<double>& I) const {
    double sum = 0;
    for (std::uint32_t i = 0; i < n_; ++i)
      if (at_[i] == p) sum += I[i];
    return sum * (1 / processor(p).available());
  }
  // The manager's: where it is done first with the candidate; then the faster one, the smaller index.
  [[nodiscard]] std::optional<std::pair<std::uint32_t, double>> pick(std::uint32_t j, std::uint32_t i) const {
    std::optional<std::pair<std::uint32_t, double>> best;
    for (std::uint32_t p = 0; p < taken_.size(); ++p) {
      if (set_of(p) != j || !has_slot(p)) continue;
      const double with = time(p, I_) + I_[i] * (1 / processor(p).available());
      const bool better = !best || with < best->second ||
                          (with == best->second && processor(p).available() > processor(best->first).available());
      if (better) best = {p, with};
    }
    return best;
  }
  void move(std::uint32_t i, std::uint32_t p) {  // its slot at the call stays its own
    at_[i] = p;
    ++taken_[p];
    moves.push_back({i, p});
  }
  [[nodiscard]] bool limit_reached() const { return params_.max_moves > 0 && moves.size() >= params_.max_moves; }

  [[nodiscard]] std::vector<bool> wanted() const {
    std::vector<bool> out(list.size(), false);
    const auto of = [&](double Entry::* term) {
      std::vector<double> values;
      for (const Entry& e : list) values.push_back(e.*term);
      return values;
    };
    const std::vector<double> x = of(&Entry::comp), y = of(&Entry::comm), z = of(&Entry::mem);
    switch (params_.heuristic) {
      case Heuristic::kTop:
        out[0] = list[0].pm > 0;
        break;
      case Heuristic::kPercentage:
        for (std::size_t q = 0; q < out.size(); ++q) out[q] = list[q].pm > 0 && list[q].pm >= params_.x * list[0].pm;
        break;
      case Heuristic::kMigCube: {
        double delta = 0;
        for (std::size_t q = 1; q < out.size(); ++q) delta += std::hypot(x[q] - x[0], y[q] - y[0], z[q] - z[0]);
        delta /= std::max<double>(1, static_cast<double>(out.size()) - 1);
        for (std::size_t q = 0; q < out.size(); ++q)
          out[q] = std::abs(x[q] - x[0]) <= delta && std::abs(y[q] - y[0]) <= delta && std::abs(z[q] - z[0]) <= delta;
        break;
      }
      case Heuristic::kMigHull:
        for (std::size_t q = 0; q < out.size(); ++q)
          out[q] = q < 2 || (near_segment(x, y, q) && near_segment(x, z, q) && near_segment(y, z, q));
        break;
      default:
        check(false, "the others have no candidates");
    }
    return out;
  }
  static double sigma(const std::vector<double>& v) {
    const double n = static_cast<double>(v.size()), mean = std::accumulate(v.begin(), v.end(), 0.0) / n;
    double sum = 0;
    for (const double value : v) sum += (value - mean) * (value - mean);
    return std::sqrt(sum / n);
  }
  static bool near_segment(const std::vector<double>& a, const std::vector<double>& b, std::size_t q) {
    const auto to_end = [&](std::size_t end) { return std::hypot(a[q] - a[end], b[q] - b[end]); };
    double distance = std::min(to_end(0), to_end(1));
    const double length = std::hypot(a[1] - a[0], b[1] - b[0]);
    if (length > 0 && a[q] >= std::min(a[0], a[1]) && a[q] <= std::max(a[0], a[1]))
      distance = std::abs((a[1] - a[0]) * (b[0] - b[q]) - (a[0] - a[q]) * (b[1] - b[0])) / length;
    return distance <= std::max(sigma(a), sigma(b));
  }

  // Each in the list's order, with the moves before it made.
  void candidates() {
    if (list.empty()) return;
    const std::vector<bool> are = wanted();
    for (std::size_t q = 0; q < list.size(); ++q) {
      const Entry& e = list[q];
      const auto to = are[q] && !limit_reached() ? pick(e.target, e.rank) : std::nullopt;
      if (!to) continue;
      const double t_move = to->second + B_[e.rank, e.target] * T(e.target, e.target) + e.mem;
      const double t_stay = time(at_[e.rank], I_) + B_[e.rank, e.target] * T(own(e.rank), e.target);
      if (t_move < t_stay) move(e.rank, to->first);
    }
  }

  [[nodiscard]] double pf_now(double mem) const {
    double slowest = 0, comm = 0;
    for (std::uint32_t p = 0; p < taken_.size(); ++p) slowest = std::max(slowest, time(p, m_.last.instructions));
    for (std::uint32_t i = 0; i < n_; ++i)
      for (std::uint32_t k = 0; k < sets_; ++k) comm = std::max(comm, m_.last.recv_bytes[i, k] * T(k, set_of(at_[i])));
    return slowest + comm + mem;
  }
  void levels() {
    double mem = 0;
    pf.push_back(pf_now(mem));
    for (const Entry& e : list) {
      const auto to = limit_reached() ? std::nullopt : pick(e.target, e.rank);
      if (!to) continue;
      move(e.rank, to->first);
      mem = std::max(mem, e.mem);
      pf.push_back(pf_now(mem));
    }
    moves.resize(static_cast<std::size_t>(std::ranges::min_element(pf) - pf.begin()));
  }

  const Snapshot& s_;
  const Metrics& m_;
  const Params& params_;
  std::size_t n_, sets_;
  std::vector<double> I_;
  Grid<double> B_;
  std::vector<std::uint32_t> at_, taken_;
};

}  // namespace bsp::decide
