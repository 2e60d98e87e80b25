// Placement (means.h) for many ranks and processors. The processors stand Set by Set, each Set's by decreasing
// capacity. pick_tree.h finds a pick among those of a Set, tournament.h the largest Time of all; both are made when they
// are first asked for, as no heuristic needs all of them. Besides, it takes moves back, for the searches.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "operator/decide/fast/pick_tree.h"
#include "operator/decide/fast/tournament.h"
#include "operator/decide/model/columns.h"
#include "operator/decide/model/means.h"

namespace bsp::decide {

class Processors final : public Placement {
 public:
  // The columns have to outlive this. Both lists of instructions are by rank; one may stand for both.
  Processors(const Columns& columns, std::span<const double> I_horizon, std::span<const double> I_last,
             bool reuse_vacated_slots);
  // The same processors with every rank where `placement` says, as if moved there from where the
  // snapshot has it, and other instructions. O(ranks + processors).
  void restart(std::span<const ProcessorId> placement, std::span<const double> I_horizon,
               std::span<const double> I_last);

  [[nodiscard]] std::optional<Pick> pick(SetId j, RankId i) const override {
    return pick(j, i, std::numeric_limits<double>::infinity());
  }
  // Nothing too if all would take as long as `below` or longer.
  [[nodiscard]] std::optional<Pick> pick(SetId j, RankId i, double below) const;
  // No pick of Set j for rank i has a shorter time; infinite if no slot is free there. O(1).
  [[nodiscard]] PickTree::Bounds least_time(SetId j, RankId i) const;
  [[nodiscard]] double time(ProcessorId p) const override;
  // time(p) of the processor that has rank i.
  [[nodiscard]] double time_of(RankId i) const;
  // time(p) with rank i, which is elsewhere, added.
  [[nodiscard]] double time_with(ProcessorId p, RankId i) const;
  // Where the largest Time(i) is (equal: the first Set, the faster processor); and what it is without processor p.
  [[nodiscard]] double slowest() const override { return Times().largest(); }
  [[nodiscard]] ProcessorId slowest_processor() const;
  [[nodiscard]] double slowest_but(ProcessorId p) const;

  // Prefetches a rank's own values first; then, these being there, its processor's.
  void expect(std::span<const PmEntry> next) const override {
    constexpr std::size_t kAhead = 8;
    if (next.size() > 2 * kAhead) __builtin_prefetch(&riders_[next[2 * kAhead].rank.value], 1);
    if (next.size() <= kAhead) return;
    const Rider& rider = riders_[next[kAhead].rank.value];
    __builtin_prefetch(&places_[rider.at], 1);
    if (Times_) Times_->prefetch(rider.at);
  }

  [[nodiscard]] ProcessorId on(RankId i) const { return riders_[i.value].on; }
  [[nodiscard]] bool moved(RankId i) const { return riders_[i.value].at != riders_[i.value].home; }
  // Whether a rank could be put on p; and back to where it is at the call.
  [[nodiscard]] bool has_free_slot(ProcessorId p) const;
  [[nodiscard]] bool may_return(RankId i) const;
  // To a processor with a free slot, or back.
  void move(RankId i, ProcessorId to);
  void move(RankId i, const Pick& pick, SetId j) override;
  // Takes the last move back that is not undone yet. There was a slot then; where more ranks are at home than there are
  // slots and vacated ones are reused, no slot need be free now.
  void undo(RankId i, ProcessorId from);

 private:
  // Each fills half a cache line, as moves go from anywhere to anywhere.
  struct alignas(32) Place {  // of a processor
    double I_horizon = 0;     // instructions of the ranks on it
    double I_last = 0;        // the same of the last superstep
    double unit = 0;          // s/instruction
    std::uint32_t ranks = 0;  // that are on it
    std::int32_t free = 0;    // slots for this job's ranks that are free; may be below 0 where none is taken in
  };
  struct alignas(32) Rider {  // a rank
    double I_horizon, I_last;
    std::uint32_t home, at;  // its place at the call, and now
    ProcessorId on;          // now
    SetId set;               // of that
  };

  void line_up();
  [[nodiscard]] const Place& place_of(ProcessorId p) const { return places_[at_[p.value]]; }
  [[nodiscard]] ProcessorId home(RankId i) const { return columns_.on[i.value]; }
  static void put(const Rider& rider, Place& place, double sign);
  void take(RankId i, std::uint32_t to, ProcessorId p, SetId j);
  void refresh(std::uint32_t n, SetId j);
  [[nodiscard]] const PickTree& free_in(SetId j) const;
  [[nodiscard]] const Tournament& Times() const;

  const Columns& columns_;
  bool reuse_vacated_slots_;
  PickTree::Range I_range_{};                // of I_horizon, over all ranks
  std::vector<Place> places_;                // Set by Set, the faster first
  std::vector<Rider> riders_;                // by rank
  std::vector<ProcessorId> processor_;       // by place
  std::vector<std::uint32_t> at_;            // by processor, its place
  std::vector<std::uint32_t> first_;         // by Set, its first place; and one more
  mutable std::vector<PickTree> trees_;      // by Set; empty before they are asked for, as this is:
  mutable std::optional<Tournament> Times_;  // by place: Time, s, of the last superstep
};

}  // namespace bsp::decide
