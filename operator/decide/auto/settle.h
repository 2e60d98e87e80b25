// A mapping in which no processor takes longer than a limit, with few moves: the search of Auto.
//
//   within(τ, κ, μ, order)   every time(p) ≤ τ, no moved rank's Comm(i,·) above κ and, of those that may move, none's;
//                            no moved rank's Mem(i,·) above μ
//
// Whoever sits on a processor above τ gives up its place, and the largest is placed first: on a free slot where it is
// done by τ, else on that of a smaller rank, which is then placed itself. So swaps, chains and rotations are found; the
// slots that ranks leave count as free. Who can stay after all stays. A rank gives way to a larger one only, so this
// ends. It is a search from the largest down, not an exact one: with one slot a processor and no κ it finds a mapping
// within τ whenever there is one, since what a larger rank leaves out is fast enough for all that follow.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "operator/decide/fast/comm_of.h"
#include "operator/decide/model/pf.h"
#include "operator/decide/model/strategy.h"

namespace bsp::decide {

class Settling {
 public:
  static constexpr std::int64_t kWork = 5'000'000;  // examining a processor or a rank is one step

  enum class Order : std::uint8_t { kSoonest, kCheapest };  // among the slots that are good enough
  struct Limits {
    double time;  // τ, s
    double comm;  // κ, s
    double mem;   // μ, s
    Order order = Order::kSoonest;
  };

  // `I` by rank, instructions of a superstep. All of them have to outlive this.
  Settling(const Case& c, std::span<const double> I, std::span<const double> comm_here, const CommOf& comm_of);

  // Where every rank is then; nothing if that can't be found, or the work is used up.
  std::optional<std::vector<ProcessorId>> within(const Limits& limits);

  // No mapping has a shorter max Time. s.
  [[nodiscard]] double least_time() const;

 private:
  struct Spot {
    ProcessorId to;
    std::uint32_t instead;  // of which rank; kNone: of none
  };
  static constexpr std::uint32_t kNone = ~0u;

  void all_home();
  [[nodiscard]] SetId set_of(ProcessorId p) const { return c_.columns.set[p.value]; }
  [[nodiscard]] double comm_in(std::uint32_t i, SetId j) const;
  [[nodiscard]] double mem(std::uint32_t i, ProcessorId to) const;
  [[nodiscard]] bool may_move(std::uint32_t i) const { return movable_[i] != 0; }
  [[nodiscard]] bool may_be_on(std::uint32_t i, ProcessorId p, const Limits& limits) const;
  [[nodiscard]] bool has_slot(ProcessorId p, bool home) const;
  void take_off(std::uint32_t i);
  void put(std::uint32_t i, ProcessorId p);
  bool give_up_places(const Limits& limits, std::vector<std::uint32_t>& homeless);
  std::optional<Spot> free_spot(std::uint32_t i, const Limits& limits);
  std::optional<Spot> taken_spot(std::uint32_t i, const Limits& limits);
  void send_home(const Limits& limits);

  const Case& c_;
  std::span<const double> I_, comm_here_;
  const CommOf& comm_of_;
  std::int64_t work_ = kWork;
  std::vector<std::uint8_t> movable_;             // by rank
  std::vector<ProcessorId> on_;                   // by rank
  std::vector<double> load_;                      // by processor, instructions
  std::vector<std::vector<std::uint32_t>> held_;  // by processor, its ranks
};

}  // namespace bsp::decide
