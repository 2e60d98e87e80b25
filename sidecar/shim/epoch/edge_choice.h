// Which collective of all ranks ends a superstep, where the user has not said (spec.superstep.call: Auto).
//
// The ranks call their collectives in one order, so that every rank has counted the same calls and decides the same. Only time
// differs among them: before each decision they agree on it by a reduction of their own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace bsp::shim {

class EdgeChoice {
 public:
  static constexpr std::size_t kCalls = 17;  // BSP_RING_COLLECTIVES
  // A superstep that is shorter makes a rescheduling call of noise; in a longer one a rank waits too long for its move.
  static constexpr double kShortest = 0.05, kLongest = 2, kAimed = 0.1;

  struct Edge {
    std::size_t call = kCalls;  // index into names::kEdgeCalls; kCalls: none yet
    std::uint64_t stride = 1;
    friend bool operator==(const Edge&, const Edge&) = default;
  };

  // A collective of all ranks has completed. True if a decision is due: then the ranks agree on the time.
  bool count(std::size_t call) {
    ++calls_[call];
    return --until_decision_ == 0;
  }
  // `seconds` since the last decision, or since restart(): the same at every rank. True if the edge is another one now.
  bool decide(double seconds);
  // The time until now doesn't count: the ranks stood still.
  void restart();

  // 16 bits of all that the next decision depends on besides the time: the same at every rank that has counted the same calls.
  [[nodiscard]] std::uint16_t check_word() const;

  [[nodiscard]] const Edge& edge() const { return edge_; }

 private:
  [[nodiscard]] Edge best() const;
  [[nodiscard]] double period(std::size_t call) const;  // seconds between two calls; only of one that recurs
  [[nodiscard]] bool recurs(std::size_t call) const;
  void begin_window();

  Edge edge_;
  std::array<std::uint64_t, kCalls> calls_{};  // in the window
  double seconds_ = 0;                         // of the window
  std::uint64_t decided_at_ = 0;               // calls of the window at the last decision
  std::uint64_t until_decision_ = 8;
};

}  // namespace bsp::shim
