// What messages between ranks of one Set cost in a pod and across (decide/auto/pods.h), learned from how long they took.
//
//   b, t      bytes that rank i received from its own Set in a superstep, and how long they took (BT)
//   in a pod  kOfPod or more of what its partners in the Set sent came from its own pod:
//             n(i) = max(0, t − b·byte) ÷ message of kShared       what is no byte is messages, in units of one through shared memory
//             μ(i) = n(i)/b                                         both smoothed, of kKnown supersteps or more
//   apart     none or next to none of it did. If μ(i) is known from when it was in a pod:
//             message(Set) = max(0, t − b·byte) ÷ (μ(i)·b)          smoothed; until then kApart's
//             else μ(i) = max(0, t − b·byte) ÷ (message(Set)·b)
//   mixed     says nothing
//   waiting   nor does a superstep in which a partner computed longer by kUneven: how long it took to receive includes the wait for what
//             that partner did in MPI, which isn't told apart from a transfer. Links don't count it either (at_most_per_byte)
//
// Reports have the bytes of partners, but not in how many messages they came. So μ makes up for that: what it takes for messages of that
// size is right where the ranks are, and where they have been; elsewhere it is what kApart assumes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "operator/decide/model/model.h"

namespace bsp::observe {

class MessagePrices {
 public:
  // Bytes at 2 and at 1 GB/s, messages of 8 bytes and less one way: below what a pod and a node's loopback take when nothing else runs
  // (docs/seats.md).
  static constexpr decide::Price kShared{.byte = 0.5e-9, .message = 0.4e-6}, kApart{.byte = 1e-9, .message = 8e-6};
  static constexpr double kOfPod = 0.9;         // of the bytes
  static constexpr double kUneven = 0.1;        // of what the rank computed itself
  static constexpr std::uint32_t kKnown = 3;    // supersteps
  static constexpr double kWeight = 0.1;        // of a new value, beside what was smoothed
  static constexpr double kLeastMessages = 16;  // a superstep, of which something is concluded
  static constexpr double kMost = 1e-3;         // s, a message across

  // As it was stored: message(Set), s.
  void restore(const std::string& set, double message) { apart_[set] = std::clamp(message, kShared.message, kMost); }
  [[nodiscard]] const std::map<std::string, double>& learned() const { return apart_; }

  // A superstep's. `sets`: names, in the order of the reports. By rank: the name of its Set and of its pod, and its partners.
  void add(const decide::MeasuredSuperstep& t, const std::vector<std::string>& sets,
           const std::vector<std::string>& set_of_rank, const std::vector<std::string>& pod_of_rank,
           const std::vector<std::span<const decide::Partner>>& partners);

  [[nodiscard]] decide::Price apart(const std::string& set) const;
  // μ(i); 0: not known.
  [[nodiscard]] double messages_per_byte(std::size_t rank) const {
    return rank < per_byte_.size() ? per_byte_[rank].known.value() : 0;
  }
  // The same, also by the supersteps in which it waited: the rest at least is a link's doing.
  [[nodiscard]] double at_most_per_byte(std::size_t rank) const {
    return rank < per_byte_.size() ? std::max(per_byte_[rank].known.value(), per_byte_[rank].waiting.value()) : 0;
  }

 private:
  // Each is smoothed, not their ratio: what a few bytes took says nothing of many.
  struct Ratio {
    double messages = 0, bytes = 0;
    std::uint32_t samples = 0;
    void add(double n, double b);
    [[nodiscard]] double value() const { return bytes > 0 ? messages / bytes : 0; }
  };
  struct PerByte {
    Ratio known{};        // μ(i)
    bool in_pod = false;  // measured there
    Ratio waiting{};      // of supersteps in which it waited, apart
  };
  // n, if what is no byte is messages across.
  [[nodiscard]] double messages_apart(const std::string& set, double bytes, double seconds) const;
  static void add_in_pod(PerByte& per_byte, double bytes, double seconds);
  void add_apart(PerByte& per_byte, const std::string& set, double bytes, double seconds);

  std::vector<PerByte> per_byte_;  // by rank
  std::map<std::string, double> apart_;
};

}  // namespace bsp::observe
