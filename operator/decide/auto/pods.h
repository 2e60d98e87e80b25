// Which ranks share a pod under a mapping: they talk through shared memory, others over the network, also on one node.
//
//   who stays                 has the pod that it has at the call (Rank::pod)
//   who goes to a node        joins a pod there as long as the node has free seats (Processor::pod): whichever of its slots a mapping
//                             names, a move takes a free seat before a new pod, the ranks in their order
//   who else of a wave goes   shares a new pod with the others that go to that node, and none with who is there already
//
// A seat that a rank leaves is free in the next wave. A pod that all ranks have left is gone, with its seats. A mapping is taken for one
// wave, unless its waves are given: then who goes to a slot that another leaves joins the pod of that seat, and ranks that go to one node
// in different waves don't meet in a new pod.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "operator/decide/model/strategy.h"

namespace bsp::decide {

class Pods {
 public:
  using Number = std::uint32_t;  // equal: the same pod

  explicit Pods(const Case& c);

  // Whether prices depend on pods.
  [[nodiscard]] bool matter() const { return !node_.empty(); }
  // At the call, by rank.
  [[nodiscard]] std::span<const Number> now() const { return now_; }
  // By rank, where all are on `on` after one wave.
  [[nodiscard]] std::vector<Number> after(std::span<const ProcessorId> on) const;
  // By rank, after each of these waves in turn.
  [[nodiscard]] std::vector<Number> after(std::span<const std::vector<ProcessorId>> waves) const;

  // By processor: its node, and the pod of which it is a seat at the call, free or taken (kNone: of none).
  static constexpr Number kNone = ~0u;
  [[nodiscard]] std::span<const std::uint32_t> node() const { return node_; }
  [[nodiscard]] std::span<const Number> seat() const { return seat_; }
  [[nodiscard]] std::size_t nodes() const { return free_.size(); }

 private:
  // By processor of one rank, whether it has one.
  [[nodiscard]] std::vector<std::uint8_t> taken_slots(std::span<const ProcessorId> on) const;

  std::span<const ProcessorId> on_;        // at the call, by rank
  std::vector<std::uint32_t> node_;        // by processor
  std::vector<std::uint8_t> is_slot_;      // by processor: of one rank
  std::vector<Number> now_;                // by rank
  std::vector<Number> seat_;               // by processor
  std::vector<std::vector<Number>> free_;  // by node, the pods of its free seats, in the order in which ranks take them
  Number known_ = 0;                       // pods at the call: smaller numbers
};

}  // namespace bsp::decide
