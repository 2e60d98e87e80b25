// How steady the nodes' speeds are, and so what a measured speed says of the supersteps to come. Noise of each superstep averages out; what
// lasts for several (another pod's bursts, a CPU limit's periods) does not, and makes nodes look faster or slower than others for a while.
//
//   s(n,b)   = mean ln(I / CT) of node n's ranks over block b of kBlock supersteps
//   d(n,b)   = s(n,b) − s(n,b−1), less its median over the nodes: what all have in common is no noise
//   between  = kOfAll · mean d² / 2 over the nodes, less the quarter that changed most, as a speed may really have changed
//              (kOfAll: for what that leaves out of normal noise)
//   within   = mean (x(t) − x(t−1))² / 2 / kBlock, x = ln(I / CT) of a superstep: what noise of each superstep has between explain
//   noise²   = max(0, between − kChance · within), smoothed over blocks: w = max(1/blocks, kWeight)
//
// Nothing is known before the second block, and of fewer than kFewest nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace bsp::observe {

class Steadiness {
 public:
  static constexpr std::uint32_t kBlock = 8;  // supersteps
  static constexpr std::size_t kFewest = 3;   // nodes
  static constexpr double kWeight = 0.2;      // of a block
  static constexpr double kOfAll = 2.5;       // times
  static constexpr double kChance = 3;        // times

  // Of each node that ranks compute on, before end_superstep(). `ranks` is another number if other ranks are there: what changes
  // with them is no noise. `speed` > 0, in any unit.
  void add(std::string_view node, std::size_t ranks, double speed);
  void end_superstep();
  // Speeds have another unit from now on.
  void restart() { nodes_.clear(), supersteps_ = 0; }

  void forget(const std::string& node) { nodes_.erase(node); }

  // Standard deviation of a node's mean speed in a block, relative; 0: not known, or none that lasts.
  [[nodiscard]] double noise() const;

 private:
  struct Node {
    explicit Node(std::size_t who = 0, std::optional<double> before = {}) : ranks(who), last(before) {}
    std::size_t ranks;
    double sum = 0, x = 0, steps = 0;  // Σ x, the last x, Σ (x(t) − x(t−1))², x = ln speed
    std::uint32_t samples = 0;
    std::optional<double> last;  // s(n,b−1)
  };
  void end_block();

  std::unordered_map<std::string, Node> nodes_;
  std::uint32_t supersteps_ = 0;  // of the block
  double square_ = 0;
  std::uint32_t blocks_ = 0;
};

}  // namespace bsp::observe
