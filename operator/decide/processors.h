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
// Each Set's processors are the leaves of a binary tree, sorted by capacity. A node knows the
// smallest time and the smallest s/instruction below it, so that smallest + I·smallest bounds every
// time(p) below from underneath: the search for the pick follows the better bound and cuts the
// rest. Where capacities are alike the bound is exact and a pick costs O(log processors). Nodes
// also know the largest Time.
//
// Slots: all moves of a plan are one wave in which targets are made before sources go. So the slot
// that a rank has at the call stays its own while it is elsewhere, and nobody else's, unless
// reuse_vacated_slots.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "operator/decide/model.h"

namespace bsp::decide {

class Processors {
 public:
  struct Pick {
    ProcessorId processor;
    double time;  // time(p) with the candidate, s over the horizon
  };

  // The snapshot and both lists of instructions, by rank, have to outlive this.
  Processors(const Snapshot& snapshot, std::span<const double> I_horizon,
             std::span<const double> I_last, bool reuse_vacated_slots);
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
  [[nodiscard]] double slowest() const { return slowest_of_all_; }
  [[nodiscard]] ProcessorId slowest_processor() const;
  [[nodiscard]] double slowest_but(ProcessorId p) const;

  [[nodiscard]] ProcessorId on(RankId i) const { return on_[i.value]; }
  // Whether a rank could be put on p; and back to where it is at the call.
  [[nodiscard]] bool has_free_slot(ProcessorId p) const { return free_slots_of(leaf_of(p)) > 0; }
  [[nodiscard]] bool may_return(RankId i) const;
  // To a processor with a free slot, or back.
  void move(RankId i, ProcessorId to);
  // Takes the last move back that is not undone yet. There was room then; where more ranks are at home than there are slots
  // and vacated ones are reused, no slot need be free now.
  void undo(RankId i, ProcessorId from);

 private:
  struct Node {
    double least_time;  // over the horizon; infinite if no slot is free below
    double least_unit;  // s/instruction
    double most_time;   // of the last superstep

    bool operator==(const Node&) const = default;
  };
  struct Leaf {
    double I_horizon = 0;
    double I_last = 0;
    double unit = 0;              // s/instruction
    std::uint32_t ranks = 0;      // that are on it
    std::uint32_t slots = 0;      // for this job's ranks; 0 if it takes no new one
    std::uint32_t booked = 0;     // slots that are not free
    std::uint32_t at_call = 0;    // ranks that the snapshot has on it
    ProcessorId processor{};
  };
  struct Tree {  // nodes 1..2·width−1 from `nodes` on: root 1, children of n are 2n and 2n+1
    std::size_t nodes = 0;
    std::size_t leaves = 0;
    std::size_t width = 0;  // power of two; 0 for a Set without processors
  };
  struct Place {
    std::uint32_t tree;
    std::uint32_t leaf;
  };
  struct Best;

  void plant_trees(const Platform& platform);
  void grow_nodes();
  Leaf& leaf_at(Place at) { return leaves_[trees_[at.tree].leaves + at.leaf]; }
  [[nodiscard]] const Leaf& leaf_of(ProcessorId p) const {
    return leaves_[trees_[at_[p.value].tree].leaves + at_[p.value].leaf];
  }
  static std::uint32_t free_slots_of(const Leaf& leaf) {
    return leaf.slots > leaf.booked ? leaf.slots - leaf.booked : 0;
  }
  [[nodiscard]] ProcessorId home(RankId i) const { return ranks_[i.value].processor; }
  void place(RankId i, Leaf& leaf, double sign) const;
  void take(RankId i, ProcessorId to);
  [[nodiscard]] Node node_of(const Leaf& leaf) const;
  static Node over(const Node& left, const Node& right);
  void refresh(Place at);
  void search(const Tree& tree, std::size_t n, double I, Best& best) const;

  std::span<const Rank> ranks_;                 // of the snapshot
  std::span<const double> I_horizon_, I_last_;  // by rank
  bool reuse_vacated_slots_;
  std::vector<Tree> trees_;      // by Set
  std::vector<Node> nodes_;      // of all trees
  std::vector<Leaf> leaves_;     // of all trees
  std::vector<Place> at_;        // by processor
  std::vector<ProcessorId> on_;  // by rank
  std::vector<double> slowest_;  // by Set; below 0 for one without processors
  double slowest_of_all_ = 0;
};

}  // namespace bsp::decide
