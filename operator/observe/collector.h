// Assembles the ranks' superstep reports (crds/wire.h): one MeasuredSuperstep for each superstep that
// all ranks have completed, in order, exactly once.
//
// Supersteps that only some ranks have reported are held, but no more of them than the other ranks' rings can still
// deliver: a rank that is silent, or claims to be far ahead, doesn't make the others' reports pile up.
//
// Reports may be duplicated, late or out of order. A lost one (a record that was overwritten in the ring
// before it was read) is skipped; the window tolerates that.
//
// BT_t(i,j) is what rank i's messages took. The shim estimates it without the wait for a sender that is late now and
// then (sidecar/shim/measure/measure.h), but can't tell a sender that is always late from a slow link. Here all ranks' computation is
// known, so the rest of the wait is left out:
//
//   wait(i)    = max CT(k) − CT(i) − (edge(i) − min edge),  over the k that i hears from (its partners if they are known, else all):
//                what a rank waits at the edge, it hasn't waited in a receive
//   Σ_j BT(i,j) ≤ comm(i) − wait(i)
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "crds/wire.h"
#include "operator/decide/auto/partners.h"
#include "operator/decide/model/model.h"
#include "operator/observe/sampling.h"

namespace bsp::observe {

// How long one superstep took and what each rank computed in it: for gains, calibration and the view.
struct SuperstepTimes {
  std::uint64_t superstep = 0;
  double seconds = 0;                   // mean over the ranks of computation + communication + edge
  double imbalance = 0;                 // decide::Balance's
  std::vector<double> compute_seconds;  // CT_t(i)
  std::vector<double> instructions;     // I_t(i)
};

class Collector {
 public:
  Collector(std::size_t ranks, std::size_t sets)
      : sets_(sets),
        held_(std::clamp<std::size_t>(kHeld / std::max<std::size_t>(ranks, 1), kHeldLeast, wire::kMostRecords)),
        pending_(ranks),
        completed_(ranks, 0),
        partners_(decide::Heard::is_for(ranks, sets) ? ranks : 0),
        sampling_(ranks) {}

  void add(const wire::RankReport& report);
  // Ignores supersteps up to this one (they were measured under another mapping).
  void skip_to(std::uint64_t superstep);
  // The next complete superstep, if there is one.
  std::optional<decide::MeasuredSuperstep> take();

  // The next request to rank i is for reports after this superstep.
  [[nodiscard]] std::uint64_t since(std::size_t rank) const;
  // Before each round of requests to all ranks: it is for one superstep in so many (wire::sampled).
  std::uint64_t begin_round() {
    sampling_.begin_round();
    return sampling_.every();
  }
  [[nodiscard]] std::uint64_t completed(std::size_t rank) const { return completed_[rank]; }
  [[nodiscard]] std::uint64_t memory_bytes(std::size_t rank) const;
  // As last reported, until the next report. Empty where no decision uses them.
  [[nodiscard]] std::span<const decide::Partner> partners(std::size_t rank) const {
    if (rank >= partners_.size()) return {};
    return partners_[rank];
  }
  // The last supersteps taken, oldest first, at most kHistory.
  [[nodiscard]] const std::deque<SuperstepTimes>& history() const { return history_; }
  static constexpr std::size_t kHistory = 256;

 private:
  // Supersteps of all ranks together, some 250 bytes each; each rank has an equal share.
  static constexpr std::size_t kHeld = 131'072, kHeldLeast = 64;

  void add_partners(const wire::RankReport& report);
  // wait(i) in a superstep of which all ranks have reported, s. `compute`: CT by rank, `slowest`: the largest of them,
  // `least_edge`: s.
  [[nodiscard]] double wait_for_senders(std::size_t i, const wire::SuperstepReport& of_i,
                                        std::span<const double> compute, double slowest, double least_edge) const;

  std::size_t sets_;
  std::size_t held_;                                                     // of one rank
  std::vector<std::map<std::uint64_t, wire::SuperstepReport>> pending_;  // by rank, not yet taken
  std::vector<std::uint64_t> completed_;
  std::vector<std::vector<decide::Partner>> partners_;  // by rank
  Sampling sampling_;
  std::map<std::size_t, std::uint64_t> memory_;
  std::uint64_t taken_ = 0;
  std::deque<SuperstepTimes> history_;
};

// Means over the supersteps of `history` in [first, last]; nullopt if there is none.
struct MeanTimes {
  std::size_t supersteps = 0;
  double seconds = 0;
  double error = 0;  // standard, of that: by what each superstep differs from the one before, as work may grow
  std::vector<double> compute_seconds, instructions;
};
std::optional<MeanTimes> mean_times(const std::deque<SuperstepTimes>& history, std::uint64_t first, std::uint64_t last);

}  // namespace bsp::observe
