// The seam between what a decision computes and how soon it has it: three questions, asked for every rank.
//
// plain.cc answers them by the formulas as the papers print them, with every sum and maximum computed again; fast/ answers
// them without reading everything, and a call uses that. means_test.cc holds the two to the same plans, bit for bit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "operator/decide/model/columns.h"
#include "operator/decide/model/grid.h"
#include "operator/decide/model/plan.h"

namespace bsp::decide {

struct Case;

// In which Set a rank's PM is the highest (pm.h).
class HighestPM {
 public:
  struct Found {
    SetId set;        // the own one if it is among the highest, else the smallest
    double comm, pm;  // Comm(i,set), PM(i,set); s
  };
  virtual ~HighestPM() = default;
  // `lacking`: Sets that are no targets of this rank.
  [[nodiscard]] virtual Found find(RankId i, std::span<const SetId> lacking) const = 0;
};

// Comm(i,j) = max over Sets k of Bytes(i,k) · T(k,j), s, of the last superstep (pf.h).
class CommTimes {
 public:
  virtual ~CommTimes() = default;
  virtual double operator()(RankId i, SetId j) const = 0;
};

// Who computes where if the moves accepted so far were made, and which processor a Set's manager picks for the next one.
//
//   time(p) = Σ_{i on p} I(i) / ((1 − load(p)) · cpu(p))        s; ranks on one processor add up
//
// The manager of Set j picks the processor with a free slot whose time(p), the candidate included, is smallest (equal:
// the greater available capacity, then the smaller index). I(i) is summed over the horizon for this pick and for the
// viability test, while pf's Time(i) takes the last superstep only; both are kept here.
//
// Slots: all moves of a plan are one wave in which targets are made before sources go. So the slot that a rank has at
// the call stays its own while it is elsewhere, and no other rank's, unless reuse_vacated_slots.
class Placement {
 public:
  struct Pick {
    ProcessorId processor;
    std::uint32_t place;  // for move()
    double time;          // time(p) with the candidate, s over the horizon
  };
  virtual ~Placement() = default;
  // The manager's choice for rank i, as if it were not in Set j; nothing if no slot is free there.
  [[nodiscard]] virtual std::optional<Pick> pick(SetId j, RankId i) const = 0;
  // time(p) with its ranks so far, s over the horizon.
  [[nodiscard]] virtual double time(ProcessorId p) const = 0;
  // max_i Time(i), s, of the last superstep.
  [[nodiscard]] virtual double slowest() const = 0;
  virtual void move(RankId i, const Pick& pick, SetId j) = 0;  // that it was picked in
  // These entries come next: what they need can be fetched meanwhile.
  virtual void expect(std::span<const PmEntry> /*next*/) const {}
};

struct Means {
  // `open`: by Set, whether it is a target; a rank's own always is one. What is passed has to outlive the answer.
  std::unique_ptr<HighestPM> (*highest_PM)(const Case& c, const Grid<double>& ISet, std::vector<std::uint8_t> open);
  std::unique_ptr<CommTimes> (*comm_times)(const Case& c);
  // Every rank where the snapshot has it. Both lists of instructions are by rank; one may stand for both.
  std::unique_ptr<Placement> (*placement)(const Case& c, std::span<const double> I_horizon,
                                          std::span<const double> I_last);
  // The positions of the values, the largest value's first; equal ones by position. No value is NaN.
  std::vector<std::uint32_t> (*by_decreasing)(std::span<const double> values);
};

const Means& plain_means();
const Means& fast_means();

}  // namespace bsp::decide
