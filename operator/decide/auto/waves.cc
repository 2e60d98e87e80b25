#include "operator/decide/auto/waves.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "operator/decide/model/links.h"
#include "operator/decide/model/pf.h"

namespace bsp::decide {
namespace {

class Schedule {
 public:
  Schedule(const Case& c, std::span<const double> I, std::span<const ProcessorId> mapping, const Alike& alike)
      : c_(c),
        I_(I),
        alike_(alike),
        to_(mapping.begin(), mapping.end()),
        on_(c.columns.on),
        taken_(c.columns.held),
        whose_(taken_.size(), kNone),
        free_(alike.kinds()) {
    for (std::uint32_t i = 0; i < to_.size(); ++i)
      if (alike_.kind(to_[i]) != Alike::kNone) whose_[to_[i].value] = i;
    for (std::uint32_t i = 0; i < on_.size(); ++i)
      if (on_[i] != to_[i] && alike_.kind(on_[i]) == alike_.kind(to_[i])) go_instead(i, on_[i]);
    for (std::uint32_t i = 0; i < on_.size(); ++i)
      if (on_[i] != to_[i]) waiting_.push_back(i);
    for (std::uint32_t p = 0; p < taken_.size(); ++p) note_free({p});
  }

  Waves make() {
    while (!waiting_.empty()) {
      std::vector<std::pair<std::uint32_t, ProcessorId>> wave = next_wave();
      if (wave.empty()) wave = break_ring();
      if (wave.empty() || waves_.after.size() == kMost) return {};
      const std::vector<ProcessorId> before = on_;
      std::vector<ProcessorId> left;
      for (const auto& [i, p] : wave) {
        --taken_[on_[i].value];  // its slot is free for the wave after this
        left.push_back(on_[i]);
        on_[i] = p;
      }
      for (const ProcessorId p : left) note_free(p);
      std::erase_if(waiting_, [this](std::uint32_t i) { return on_[i] == to_[i]; });
      waves_.after.push_back(on_);
      waves_.pause.push_back(pause_of(c_.snapshot, c_.columns, before, on_));
    }
    return std::move(waves_);
  }

 private:
  static constexpr std::size_t kMost = 64;  // waves; a longer way is no way

  // The cost of a rank's move from where it is now: a rank that waited moves twice.
  [[nodiscard]] double Mem(std::uint32_t i, ProcessorId to) const {
    const Platform& platform = c_.snapshot.platform;
    const std::uint32_t a = c_.columns.set[on_[i].value].value, j = c_.columns.set[to.value].value;
    return c_.columns.M[i] * platform.T[a, j] + platform.Mig_row({i})[j];
  }
  [[nodiscard]] bool has_slot(ProcessorId p) const { return taken_[p.value] < c_.columns.slots[p.value]; }

  static constexpr std::uint32_t kNone = ~0u;

  void note_free(ProcessorId p) {
    if (alike_.kind(p) != Alike::kNone && has_slot(p)) free_[alike_.kind(p)].push_back(p);
  }

  // Rank i goes to p, which is like its own target; who was to go there takes that. False if that may not be.
  bool go_instead(std::uint32_t i, ProcessorId p) {
    if (p == to_[i]) return true;
    if (alike_.kind(p) == Alike::kNone) return false;
    const std::uint32_t other = whose_[p.value];
    if (has_left(i, p) || (other != kNone && has_left(other, to_[i]))) return false;
    whose_[to_[i].value] = other;
    if (other != kNone) to_[other] = to_[i];
    whose_[p.value] = i;
    to_[i] = p;
    return true;
  }
  [[nodiscard]] bool has_left(std::uint32_t i, ProcessorId p) const {
    return c_.columns.special[i] != 0 && c_.snapshot.has_left({i}, p);
  }

  // Its target, or one like it, has a free slot; then that is its target.
  bool finds_slot(std::uint32_t i) {
    if (has_slot(to_[i])) return true;
    const std::uint32_t kind = alike_.kind(to_[i]);
    if (kind == Alike::kNone) return false;
    std::vector<ProcessorId>& free = free_[kind];
    std::erase_if(free, [this](ProcessorId p) { return !has_slot(p); });
    return std::ranges::any_of(free, [&](ProcessorId p) { return go_instead(i, p); });
  }

  // Takes the slots of those it returns.
  std::vector<std::pair<std::uint32_t, ProcessorId>> next_wave() {
    const std::size_t most = c_.params.max_moves == 0 ? waiting_.size() : c_.params.max_moves;
    const std::vector<double> seconds = processor_seconds(c_.columns, I_, on_);
    std::ranges::sort(waiting_, {}, [&](std::uint32_t i) { return std::tuple(-seconds[on_[i].value], i); });
    std::vector<std::pair<std::uint32_t, ProcessorId>> wave;
    for (const std::uint32_t i : waiting_) {
      if (wave.size() == most) break;
      if (!finds_slot(i)) continue;
      ++taken_[to_[i].value];
      wave.emplace_back(i, to_[i]);
    }
    return wave;
  }

  // A rank can't wait for a slot in its ring forever: one steps aside to a free slot, and makes no superstep longer than it
  // must. On any processor the smallest rank is done first, so only that one is tried on it: a call examines ranks plus
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
    return p != on_[i] && p != c_.columns.on[i] && c_.snapshot.may_go_to({i}, p, c_.columns.set[p.value]);
  }

  const Case& c_;
  std::span<const double> I_;
  const Alike& alike_;
  std::vector<ProcessorId> to_;
  std::vector<ProcessorId> on_;
  std::vector<std::uint32_t> taken_;            // by processor
  std::vector<std::uint32_t> whose_;            // by processor that has its like: who is to be there at the end
  std::vector<std::vector<ProcessorId>> free_;  // by kind
  std::vector<std::uint32_t> waiting_;          // ranks that are not where they should be
  Waves waves_;
};

}  // namespace

Alike::Alike(const Columns& columns, std::span<const std::uint32_t> node) : kind_(columns.set.size(), kNone) {
  // By Set, of speed and node: few, and no processor has to be sorted.
  std::vector<std::map<std::pair<double, std::uint32_t>, std::uint32_t>> of_speed(columns.sets);
  for (std::uint32_t p = 0; p < kind_.size(); ++p) {
    if (columns.slots[p] != 1 || columns.held[p] > 1) continue;
    const auto [kind, first] = of_speed[columns.set[p].value].try_emplace(
        {columns.available[p], node.empty() ? 0 : node[p]}, static_cast<std::uint32_t>(kinds_));
    kinds_ += first ? 1 : 0;
    kind_[p] = kind->second;
  }
}

Waves waves_to(const Case& c, std::span<const double> I, std::span<const ProcessorId> mapping, const Alike& alike) {
  return Schedule(c, I, mapping, alike).make();
}

}  // namespace bsp::decide
