// The formulas as the papers print them: nothing is remembered, and everything is read.
#include <algorithm>
#include <limits>
#include <numeric>

#include "operator/decide/model/means.h"
#include "operator/decide/model/pm.h"
#include "operator/decide/model/strategy.h"

namespace bsp::decide {
namespace {

class PlainPM final : public HighestPM {
 public:
  PlainPM(const Case& c, const Grid<double>& ISet, std::vector<std::uint8_t> open)
      : c_(c), ISet_(ISet), open_(std::move(open)) {}

  [[nodiscard]] Found find(RankId i, std::span<const SetId> lacking) const override {
    const SetId own = c_.columns.own[i.value];
    Found best{own, Comm(i, own), PM_of(i, own)};
    for (std::uint32_t j = 0; j < open_.size(); ++j) {
      const bool target = open_[j] != 0 && std::ranges::find(lacking, SetId{j}) == lacking.end();
      if (target && PM_of(i, {j}) > best.pm) best = {{j}, Comm(i, {j}), PM_of(i, {j})};
    }
    return best;
  }

 private:
  [[nodiscard]] double Comm(RankId i, SetId j) const { return c_.metrics.Comm[i.value, j.value]; }
  [[nodiscard]] double PM_of(RankId i, SetId j) const {
    const Platform& platform = c_.snapshot.platform;
    const std::uint32_t own = c_.columns.own[i.value].value;
    const double Comp = c_.metrics.P_comp[i.value] * c_.metrics.CTP[i.value] * ISet_[own, j.value];
    const double Mem = c_.columns.M[i.value] * platform.T[own, j.value] + platform.Mig_row(i)[j.value];
    return Comp + Comm(i, j) - Mem;
  }

  const Case& c_;
  const Grid<double>& ISet_;
  std::vector<std::uint8_t> open_;
};

class PlainComm final : public CommTimes {
 public:
  explicit PlainComm(const Case& c) : Bytes_(c.metrics.last.recv_bytes), T_(c.snapshot.platform.T) {}

  double operator()(RankId i, SetId j) const override {
    double most = 0;
    for (std::uint32_t k = 0; k < T_.rows(); ++k) most = std::max(most, Bytes_[i.value, k] * T_[k, j.value]);
    return most;
  }

 private:
  const SparseGrid& Bytes_;
  const Grid<double>& T_;
};

class PlainPlacement final : public Placement {
 public:
  PlainPlacement(const Case& c, std::span<const double> I_horizon, std::span<const double> I_last)
      : columns_(c.columns), reuse_(c.params.reuse_vacated_slots), I_horizon_(I_horizon), I_last_(I_last) {}

  [[nodiscard]] std::optional<Pick> pick(SetId j, RankId i) const override {
    std::optional<Pick> best;
    for (std::uint32_t p = 0; p < columns_.set.size(); ++p) {
      if (columns_.set[p] != j || !has_free_slot(p)) continue;
      const double with = time({p}) + I_horizon_[i.value] * unit(p);
      if (best && (with > best->time || (with == best->time && unit(p) >= unit(best->processor.value)))) continue;
      best = Pick{{p}, p, with};
    }
    return best;
  }
  [[nodiscard]] double time(ProcessorId p) const override { return time_of(p.value, I_horizon_); }
  [[nodiscard]] double slowest() const override {
    double most = 0;
    for (std::uint32_t p = 0; p < columns_.set.size(); ++p) most = std::max(most, time_of(p, I_last_));
    return most;
  }
  void move(RankId i, const Pick& pick, SetId) override { on_[i.value] = pick.processor; }

 private:
  [[nodiscard]] double unit(std::uint32_t p) const { return 1 / columns_.available[p]; }  // s/instruction
  [[nodiscard]] double time_of(std::uint32_t p, std::span<const double> I) const {
    double sum = 0;
    for (std::size_t i = 0; i < on_.size(); ++i)
      if (on_[i].value == p) sum += I[i];
    return sum * unit(p);
  }
  [[nodiscard]] bool has_free_slot(std::uint32_t p) const {
    std::uint32_t taken = 0;
    for (std::size_t i = 0; i < on_.size(); ++i)
      if (on_[i].value == p || (!reuse_ && columns_.on[i].value == p)) ++taken;
    return taken < columns_.slots[p];
  }

  const Columns& columns_;
  bool reuse_;
  std::span<const double> I_horizon_, I_last_;
  std::vector<ProcessorId> on_ = columns_.on;  // by rank, now
};

std::vector<std::uint32_t> plain_by_decreasing(std::span<const double> values) {
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) { return values[a] > values[b]; });
  return order;
}

}  // namespace

const Means& plain_means() {
  static constexpr Means kPlain = {
      .highest_PM = [](const Case& c, const Grid<double>& ISet, std::vector<std::uint8_t> open)
          -> std::unique_ptr<HighestPM> { return std::make_unique<PlainPM>(c, ISet, std::move(open)); },
      .comm_times = [](const Case& c) -> std::unique_ptr<CommTimes> { return std::make_unique<PlainComm>(c); },
      .placement = [](const Case& c, std::span<const double> I_horizon, std::span<const double> I_last)
          -> std::unique_ptr<Placement> { return std::make_unique<PlainPlacement>(c, I_horizon, I_last); },
      .by_decreasing = plain_by_decreasing,
  };
  return kPlain;
}

}  // namespace bsp::decide
