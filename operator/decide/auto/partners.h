// What every rank receives under a mapping, where it is known of whom it hears from most; and mappings that bring
// those together who talk.
//
//   Comm(i) = Σ_k b(i,k)·T(Set of k, Set of i)  +  Σ_j r(i,j)·mean over the ranks m of Set j of T(Set of m, Set of i)      s
//
//   b(i,k)  bytes from partner k; together no more than B(i,j), what i received from the Set j that they are in at the call
//   r(i,j)  the rest: B(i,j) less what partners in j have sent
//
// Where ranks share pods (pods.h), a partner in the same pod counts b·byte + n·message of Platform::shared instead, one in another pod
// b·T + n·message of Platform::apart, and in the same Set, or where T is only assumed to be slower, its byte instead of T; n messages
// bring b. The rest counts as not in the pod. If no partner is known yet, what a rank hears from its own Set comes from all ranks of its
// pod alike.
//
// And what a link takes that was seen to be shared (links.h): from all ranks together.
//
// What was received from each Set is measured in the window; partners only say how it is divided among that Set's ranks.
// So whatever a rank claims of its partners, no more bytes are charged than it received. Of the rest only the Set is
// known: if part of that Set's ranks move, it may come from any of them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "operator/decide/auto/pods.h"
#include "operator/decide/model/links.h"
#include "operator/decide/model/strategy.h"

namespace bsp::decide {

class Heard {
 public:
  // Where it can be added up for every mapping that is tried.
  static constexpr bool is_for(std::size_t ranks, std::size_t sets) { return ranks * sets <= 20'000; }

  explicit Heard(const Case& c);

  [[nodiscard]] bool knows_partners() const { return !partners_.empty(); }
  // Comm(i) by rank, s, after one wave; or as `waves` lead there.
  void seconds(std::span<const ProcessorId> on, std::vector<double>& by_rank) const;
  void seconds(std::span<const std::vector<ProcessorId>> waves, std::vector<double>& by_rank) const;
  // The link between Sets that takes longest for what crosses it; 0 s if none was seen to be a limit.
  [[nodiscard]] Links::Busiest busiest_link(std::span<const ProcessorId> on) const;
  // b(i,·) of rank i; a partner that has sent nothing in the window is none.
  [[nodiscard]] std::span<const Partner> partners(std::uint32_t i) const {
    if (partners_.empty()) return {};
    return {partners_.data() + first_[i], first_[i + 1] - first_[i]};
  }
  [[nodiscard]] const Pods& pods() const { return pods_; }
  // What rank i hears from k takes in Set j if k is in Set a, s.
  [[nodiscard]] double seconds_of(const Partner& k, std::uint32_t a, std::uint32_t j, bool share_a_pod) const {
    const Platform& platform = c_.snapshot.platform;
    if (!pods_.matter()) return k.bytes * platform.T[a, j];
    const Price& price = share_a_pod ? platform.shared[j] : platform.apart[j];
    return k.bytes * (share_a_pod ? price.byte : across_[a, j]) + k.messages * price.message;
  }
  // Additions of one seconds() and busiest_link(), approximately.
  [[nodiscard]] std::int64_t work() const;

 private:
  [[nodiscard]] std::vector<Partner> of_its_pod(std::uint32_t i) const;
  [[nodiscard]] Grid<double> shares(std::span<const ProcessorId> on) const;
  void seconds(std::span<const ProcessorId> on, std::span<const Pods::Number> pods, std::vector<double>& by_rank) const;

  const Case& c_;
  Pods pods_;
  Grid<double> across_;             // [a, j], s/byte between pods, where they matter
  std::vector<std::size_t> first_;  // by rank, of its partners
  std::vector<Partner> partners_;
  SparseGrid rest_;  // r
};

// Steps down from a mapping. Each is the best of these:
//
//   the rank that receives longest, one of its heaviest partners in other Sets, or a rank of the slowest processor
//     goes to the soonest free slot of a Set, or changes places with any other rank
//   that rank and a partner go together to the soonest two free slots of a Set
//   where ranks share pods: one of the two goes where it shares a pod with the other; and ranks that share one, or a rank and those that
//     it hears from most, go together to the soonest node of a Set that has so many free slots
//
// by  J = H·(max Time + max Comm, and a little for all that are nearly as late) + the pause       s
//
// If a link takes longer than any rank, those whose messages cross it are tried instead of the rank that receives longest:
// each of them, and each with its partner. Ranks that talk and leave a Set one by one fill its link on the way; so where links are limits,
// one descent takes no notice of them, and another one that does begins where it ends.
//
// Slots that ranks leave count as free, as in Settling: waves.h says how such a mapping is reached.
class Together {
 public:
  static constexpr std::int64_t kWork = 4'000'000;  // an addition is one step

  enum class Limits : bool { kNone, kLinks };  // kNone: as if links carried anything

  Together(const Case& c, std::span<const double> I, const Heard& heard, double H, double mu,
           Limits limits = Limits::kLinks);

  // Calls found() with the mapping after every step, and returns the last one. No rank is moved whose Mem is above μ.
  std::vector<ProcessorId> descend(std::vector<ProcessorId> on,
                                   const std::function<void(std::span<const ProcessorId>)>& found);

 private:
  struct Change {
    std::uint32_t rank;
    ProcessorId to;
    std::uint32_t other;  // kNone: no other one
    ProcessorId other_to;
    std::vector<std::pair<std::uint32_t, ProcessorId>> group{};  // who goes where, instead, unless it is empty
  };
  static constexpr std::uint32_t kNone = ~0u;

  void put(std::uint32_t i, ProcessorId p);
  [[nodiscard]] double mem(std::uint32_t i, ProcessorId to) const;
  [[nodiscard]] bool may_be_on(std::uint32_t i, ProcessorId p) const;
  [[nodiscard]] bool has_slot(std::uint32_t i, ProcessorId p) const;
  // The free slot of Set j on which rank i is done soonest, other than `taken`.
  ProcessorId soonest(std::uint32_t i, std::uint32_t j, ProcessorId taken);
  double J();
  void consider(const Change& change);
  void consider(std::span<const std::uint32_t> ranks, std::span<const ProcessorId> to);
  void consider_changes();
  void go_together(std::uint32_t i, std::uint32_t k);
  void join_pod(std::uint32_t i, std::uint32_t k);
  void go_as_group(const std::vector<std::uint32_t>& ranks);
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> groups(std::span<const std::uint32_t> movers) const;
  [[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs_to_bring_together() const;

  const Case& c_;
  std::span<const double> I_;
  const Heard& heard_;
  double H_, mu_;
  Limits limits_;
  std::int64_t work_ = kWork, of_one_;
  std::vector<std::uint8_t> movable_;       // by rank
  std::vector<ProcessorId> on_;             // by rank
  std::vector<double> load_;                // by processor, instructions
  std::vector<std::uint32_t> held_, pods_;  // by processor, ranks; by rank, its pod, where pods matter
  std::vector<double> comm_;                // by rank, s
  Links::Busiest link_{};
  double least_ = 0;  // J
  Change best_{};
};

}  // namespace bsp::decide
