#include "operator/decide/waves.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "operator/decide/pf.h"

namespace bsp::decide {
namespace {

class Schedule {
 public:
  Schedule(const Case& c, std::span<const double> I, std::span<const ProcessorId> mapping)
      : c_(c), I_(I), to_(mapping), on_(c.columns.on), taken_(c.columns.held) {
    for (std::uint32_t i = 0; i < on_.size(); ++i)
      if (on_[i] != to_[i]) waiting_.push_back(i);
  }

  Waves make() {
    while (!waiting_.empty()) {
      std::vector<std::pair<std::uint32_t, ProcessorId>> wave = next_wave();
      if (wave.empty()) wave = break_ring();
      if (wave.empty() || waves_.after.size() == kMost) return {};
      double pause = 0;
      for (const auto& [i, p] : wave) {
        --taken_[on_[i].value];  // its slot is free for the wave after this
        pause = std::max(pause, Mem(i, p));
        on_[i] = p;
      }
      std::erase_if(waiting_, [this](std::uint32_t i) { return on_[i] == to_[i]; });
      waves_.after.push_back(on_);
      waves_.pause.push_back(pause);
    }
    return std::move(waves_);
  }

 private:
  static constexpr std::size_t kMost = 64;  // waves; a longer way is no way

  // Of the rank from where it is: a rank that waited moves twice.
  [[nodiscard]] double Mem(std::uint32_t i, ProcessorId to) const {
    const Platform& platform = c_.snapshot.platform;
    const std::uint32_t a = c_.columns.set[on_[i].value].value, j = c_.columns.set[to.value].value;
    return c_.columns.M[i] * platform.T[a, j] + platform.Mig_row({i})[j];
  }
  [[nodiscard]] bool has_slot(ProcessorId p) const { return taken_[p.value] < c_.columns.slots[p.value]; }

  // Takes the slots of those it returns.
  std::vector<std::pair<std::uint32_t, ProcessorId>> next_wave() {
    const std::size_t most = c_.params.max_moves == 0 ? waiting_.size() : c_.params.max_moves;
    if (most < waiting_.size()) {
      const std::vector<double> seconds = processor_seconds(c_.columns, I_, on_);
      std::ranges::sort(waiting_, {}, [&](std::uint32_t i) { return std::tuple(-seconds[on_[i].value], i); });
    }
    std::vector<std::pair<std::uint32_t, ProcessorId>> wave;
    for (const std::uint32_t i : waiting_) {
      if (wave.size() == most) break;
      if (!has_slot(to_[i])) continue;
      ++taken_[to_[i].value];
      wave.emplace_back(i, to_[i]);
    }
    return wave;
  }

  // A rank can't wait for a slot in its ring forever: one steps aside to a free slot, and makes no superstep longer than it
  // must. On any processor the smallest rank is done first, so only that one is tried on it: a call looks at ranks plus
  // processors, not at all pairs of them.
  std::vector<std::pair<std::uint32_t, ProcessorId>> break_ring() {
    const std::vector<double> seconds = processor_seconds(c_.columns, I_, on_);
    std::vector<std::uint32_t> by_size = waiting_;
    std::ranges::sort(by_size, {}, [&](std::uint32_t i) { return std::tuple(I_[i], c_.columns.M[i], i); });
    std::optional<std::tuple<double, double, std::uint32_t, std::uint32_t>> best;
    for (std::uint32_t p = 0; p < seconds.size(); ++p) {
      if (!has_slot({p})) continue;
      const auto rank = std::ranges::find_if(by_size, [&](std::uint32_t i) { return may_step_to(i, {p}); });
      if (rank == by_size.end()) continue;
      const double time = seconds[p] + I_[*rank] / c_.columns.available[p];
      const std::tuple option(time, Mem(*rank, {p}), *rank, p);
      if (!best || option < *best) best = option;
    }
    if (!best) return {};
    const auto [time, mem, i, p] = *best;
    ++taken_[p];
    return {{i, ProcessorId{p}}};
  }
  [[nodiscard]] bool may_step_to(std::uint32_t i, ProcessorId p) const {
    const Rank& rank = c_.snapshot.ranks[i];
    return p != on_[i] && p != c_.columns.on[i] && !std::ranges::contains(rank.left, p) &&
           !std::ranges::contains(rank.lacks_cpu_features_on, c_.columns.set[p.value]);
  }

  const Case& c_;
  std::span<const double> I_;
  std::span<const ProcessorId> to_;
  std::vector<ProcessorId> on_;
  std::vector<std::uint32_t> taken_;    // by processor
  std::vector<std::uint32_t> waiting_;  // ranks that are not where they should be
  Waves waves_;
};

}  // namespace

Waves waves_to(const Case& c, std::span<const double> I, std::span<const ProcessorId> mapping) {
  return Schedule(c, I, mapping).make();
}

}  // namespace bsp::decide
