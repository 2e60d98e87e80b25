// Who computes where if the moves accepted so far were made, and which processor a Set's manager
// picks for the next one.
//
//   time(p) = Σ_{i on p} I(i) / ((1 − load(p)) · cpu(p))        s; ranks on one processor add up
//
// The manager of Set j picks the processor with a free slot whose time(p), the candidate included,
// is smallest (equal: the greater available capacity, then the smaller index). I(i) is summed over
// the horizon for this pick and for the viability test, while pf's Time(i) takes the last superstep
// only; both are kept here.
//
// The processors stand Set by Set, each Set's by decreasing capacity. pick_tree.h finds a pick among
// those of a Set, tournament.h the largest Time of all; both are made when they are first asked for,
// as no heuristic needs all of them.
//
// Slots: all moves of a plan are one wave in which targets are made before sources go. So the slot
// that a rank has at the call stays its own while it is elsewhere, and nobody else's, unless
// reuse_vacated_slots.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "operator/decide/columns.h"
#include "operator/decide/fast/pick_tree.h"
#include "operator/decide/fast/tournament.h"

namespace bsp::decide {

class Processors {
 public:
  struct Pick {
    ProcessorId processor;
    std::uint32_t place;  // for move()
    double time;          // time(p) with the candidate, s over the horizon
  };

  // The columns have to outlive this. Both lists of instructions are by rank; one may stand for both.
  Processors(const Columns& columns, std::span<const double> I_horizon, std::span<const double> I_last,
             bool reuse_vacated_slots);
  // The same processors with every rank where `placement` says, as if moved there from where the
  // snapshot has it, and other instructions. O(ranks + processors).
  void restart(std::span<const ProcessorId> placement, std::span<const double> I_horizon,
               std::span<const double> I_last);

  // The manager's choice for rank i, as if it were not in Set j; nothing if no slot is free there,
  // or if all would take as long as `below` or longer.
  [[nodiscard]] std::optional<Pick> pick(SetId j, RankId i,
                                         double below = std::numeric_limits<double>::infinity()) const;
  // No pick of Set j for rank i has a shorter time; infinite if no slot is free there. O(1).
  [[nodiscard]] PickTree::Bounds least_time(SetId j, RankId i) const;
  // time(p) with its ranks so far, s over the horizon.
  [[nodiscard]] double time(ProcessorId p) const;
  // The same of the processor that has rank i.
  [[nodiscard]] double time_of(RankId i) const;
  // time(p) with rank i, which is elsewhere, added.
  [[nodiscard]] double time_with(ProcessorId p, RankId i) const;
  // max_i Time(i), s, of the last superstep; where that is (equal: the first Set, the faster
  // processor); and what it is without processor p.
  [[nodiscard]] double slowest() const { return Times().largest(); }
  [[nodiscard]] ProcessorId slowest_processor() const;
  [[nodiscard]] double slowest_but(ProcessorId p) const;

  // Rank i is going to be moved: has its own figures brought near meanwhile; then, these being there, its processor's.
  void announce(RankId i) const { __builtin_prefetch(&riders_[i.value], 1); }
  void announce_processor_of(RankId i) const {
    const Rider& rider = riders_[i.value];
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
  void move(RankId i, const Pick& pick, SetId j);  // that it was picked in
  // Takes the last move back that is not undone yet. There was room then; where more ranks are at home than there are
  // slots and vacated ones are reused, no slot need be free now.
  void undo(RankId i, ProcessorId from);

 private:
  // Each fills half a cache line, as moves go from anywhere to anywhere.
  struct alignas(32) Place {  // of a processor
    double I_horizon = 0;     // instructions of the ranks on it
    double I_last = 0;        // the same of the last superstep
    double unit = 0;          // s/instruction
    std::uint32_t ranks = 0;  // that are on it
    std::int32_t free = 0;    // slots for this job's ranks that nobody has; may be below 0 where none is taken in
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
