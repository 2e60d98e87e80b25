// A mapping that is being tried out, and what a superstep takes under it.
//
//   time   max_i Time(i)                     s       (pf.h; of the last superstep)
//   comm   max_i Comm(i, Set of i)           s
//   mem    max over the moved i of Mem(i,·)  s       no rank moved: 0
//
// relocate() takes a rank elsewhere, or back to where it is at the call, in O(Sets + log n); everything that was
// relocated since a mark can be undone.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "operator/decide/fast/comm_of.h"
#include "operator/decide/fast/processors.h"
#include "operator/decide/fast/tournament.h"
#include "operator/decide/model/pf.h"
#include "operator/decide/model/strategy.h"

namespace bsp::decide {

class Trial {
 public:
  static constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();

  // Starts from the mapping that `processors` have; the last superstep's instructions are their horizon too.
  // comm_here: Comm(i, Set at the call) by rank. All of them have to outlive this. A processor's ranks are listed by
  // decreasing instructions if it has more than `unsorted` of them.
  Trial(const Case& c, Processors& processors, std::span<const double> comm_here, const CommOf& comm_of,
        std::uint32_t unsorted);

  [[nodiscard]] double time() const { return processors_.slowest(); }
  [[nodiscard]] double comm() const { return comm_.largest(); }
  [[nodiscard]] double mem() const { return mem_.largest(); }
  // Who has that comm, that mem; equal: the smaller rank.
  [[nodiscard]] RankId comm_rank() const { return {static_cast<std::uint32_t>(comm_.winner())}; }
  [[nodiscard]] RankId mem_rank() const { return {static_cast<std::uint32_t>(mem_.winner())}; }
  [[nodiscard]] double comm_without(RankId i) const { return comm_.largest_but(i.value); }

  [[nodiscard]] const Processors& processors() const { return processors_; }
  [[nodiscard]] ProcessorId on(RankId i) const { return processors_.on(i); }
  [[nodiscard]] ProcessorId home(RankId i) const { return c_.columns.on[i.value]; }
  [[nodiscard]] bool moved(RankId i) const { return processors_.moved(i); }
  [[nodiscard]] std::span<const std::uint32_t> moved_ranks() const { return moved_ranks_; }  // in no order
  [[nodiscard]] std::size_t moves() const { return moved_ranks_.size(); }
  // The ranks on p: first_on(p), next(that), … until kNoRank.
  [[nodiscard]] std::uint32_t first_on(ProcessorId p) const { return first_[p.value]; }
  [[nodiscard]] std::uint32_t next(std::uint32_t i) const { return next_[i]; }

  // Comm(i, j), Mem(i, j), s.
  [[nodiscard]] double Comm_in(RankId i, SetId j) const;
  [[nodiscard]] double Mem_to(RankId i, SetId j) const;
  [[nodiscard]] double comm_at(RankId i) const { return comm_[i.value]; }
  [[nodiscard]] double mem_at(RankId i) const { return mem_[i.value]; }
  [[nodiscard]] double comm_here(RankId i) const { return comm_here_[i.value]; }

  void relocate(RankId i, ProcessorId to);
  [[nodiscard]] std::size_t mark() const { return log_.size(); }
  void back_to(std::size_t earlier);

 private:
  struct Step {
    RankId rank;
    ProcessorId from;
  };

  [[nodiscard]] SetId set_of(ProcessorId p) const { return c_.columns.set[p.value]; }
  void put(RankId i, ProcessorId to, void (Processors::*how)(RankId, ProcessorId));
  void link(std::uint32_t i, ProcessorId p);
  void unlink(std::uint32_t i, ProcessorId p);
  void note(RankId i, bool was_moved);

  const Case& c_;
  Processors& processors_;
  std::span<const double> comm_here_;
  const CommOf& comm_of_;
  Tournament comm_, mem_;                     // by rank
  std::vector<std::uint32_t> first_;          // by processor
  std::vector<std::uint32_t> next_, before_;  // by rank
  std::vector<std::uint32_t> moved_ranks_;    // that are not at home
  std::vector<std::uint32_t> noted_;          // by rank, where it is among them
  std::vector<Step> log_;
};

}  // namespace bsp::decide
