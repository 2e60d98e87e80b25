// Which ranks share a pod under a mapping: they talk through shared memory, others over the network, also on one node.
//
//   who stays                        has the pod that it has at the call (Rank::pod)
//   who goes to the seat of a pod    joins that pod: a free seat (Processor::pod), or one that a rank has left
//   who else of a wave goes there    shares a new pod with the others that go to that node, and none with who is there already
//
// A pod that all ranks have left is gone, with its seats. A mapping is taken for one wave, unless its waves are given: ranks that go to one
// node in different waves don't meet in a new pod.
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

  // By processor: its node, and the pod that a rank joins there at the call (kNone: none).
  static constexpr Number kNone = ~0u;
  [[nodiscard]] std::span<const std::uint32_t> node() const { return node_; }
  [[nodiscard]] std::span<const Number> seat() const { return seat_; }
  [[nodiscard]] std::size_t nodes() const { return nodes_; }

 private:
  void go(std::span<const ProcessorId> before, std::span<const ProcessorId> after, std::uint32_t wave,
          std::span<const Number> seat, std::vector<Number>& pods) const;

  std::span<const ProcessorId> on_;  // at the call, by rank
  std::vector<std::uint32_t> node_;  // by processor
  std::uint32_t nodes_ = 0;
  std::vector<std::uint8_t> is_slot_;  // by processor: of one rank
  std::vector<Number> now_;            // by rank
  std::vector<Number> seat_;           // by processor
  Number known_ = 0;                   // pods at the call: smaller numbers
};

}  // namespace bsp::decide
