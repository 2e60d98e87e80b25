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
#include "operator/decide/pick_tree.h"
#include "operator/decide/tournament.h"

namespace bsp::decide {

class Processors {
 public:
  struct Pick {
    ProcessorId processor;
    double time;  // time(p) with the candidate, s over the horizon
  };

  // The columns and both lists of instructions, by rank, have to outlive this. One list may stand for both.
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
  [[nodiscard]] double least_time(SetId j, RankId i) const;
  // time(p) with its ranks so far, s over the horizon.
  [[nodiscard]] double time(ProcessorId p) const;
  // time(p) with rank i, which is elsewhere, added.
  [[nodiscard]] double time_with(ProcessorId p, RankId i) const;
  // max_i Time(i), s, of the last superstep; where that is (equal: the first Set, the faster
  // processor); and what it is without processor p.
  [[nodiscard]] double slowest() const { return Times().largest(); }
  [[nodiscard]] ProcessorId slowest_processor() const;
  [[nodiscard]] double slowest_but(ProcessorId p) const;

  // Rank i, which is where it is at the call, is going to be moved: has its processor's figures brought near meanwhile.
  void announce(RankId i) const {
    const std::uint32_t n = at_[home(i).value];
    __builtin_prefetch(&places_[n], 1);
    if (!one_list_) __builtin_prefetch(&I_last_on_[n], 1);
  }

  [[nodiscard]] ProcessorId on(RankId i) const { return on_[i.value]; }
  // Whether a rank could be put on p; and back to where it is at the call.
  [[nodiscard]] bool has_free_slot(ProcessorId p) const { return is_free(place_of(p)); }
  [[nodiscard]] bool may_return(RankId i) const;
  // To a processor with a free slot, or back.
  void move(RankId i, ProcessorId to);
  // Takes the last move back that is not undone yet. There was room then; where more ranks are at home than there are
  // slots and vacated ones are reused, no slot need be free now.
  void undo(RankId i, ProcessorId from);

 private:
  struct Place {               // of a processor
    double I_horizon = 0;      // instructions of the ranks on it
    double unit = 0;           // s/instruction
    std::uint32_t ranks = 0;   // that are on it
    std::uint32_t slots = 0;   // for this job's ranks; 0 if it takes no new one
    std::uint32_t booked = 0;  // slots that are not free
  };

  void line_up();
  [[nodiscard]] const Place& place_of(ProcessorId p) const { return places_[at_[p.value]]; }
  static bool is_free(const Place& place) { return place.slots > place.booked; }
  [[nodiscard]] ProcessorId home(RankId i) const { return columns_.on[i.value]; }
  void put(RankId i, std::uint32_t n, double sign);
  void take(RankId i, ProcessorId to);
  void refresh(ProcessorId p);
  [[nodiscard]] const PickTree& free_in(SetId j) const;
  [[nodiscard]] const Tournament& Times() const;
  // Of the ranks on place n.
  [[nodiscard]] double I_last_on(std::uint32_t n) const { return one_list_ ? places_[n].I_horizon : I_last_on_[n]; }

  const Columns& columns_;
  std::span<const double> I_horizon_, I_last_;  // by rank
  bool reuse_vacated_slots_;
  bool one_list_ = false;                    // I_horizon is I_last
  std::vector<Place> places_;                // Set by Set, the faster first
  std::vector<double> I_last_on_;            // by place, unless one_list_
  std::vector<ProcessorId> processor_;       // by place
  std::vector<std::uint32_t> at_;            // by processor, its place
  std::vector<std::uint32_t> first_;         // by Set, its first place; and one more
  std::vector<ProcessorId> on_;              // by rank
  mutable std::vector<PickTree> trees_;      // by Set; empty before they are asked for, as this is:
  mutable std::optional<Tournament> Times_;  // by place: Time, s, of the last superstep
};

}  // namespace bsp::decide
