// How that program decides, which is not what the paper's text says:
//
//   * Memory costs nothing but on the own site, where it takes about as long as a superstep: so every candidate leaves its site.
//   * Whoever was a candidate once, is one at every call that follows.
//   * There is no test of viability. A candidate goes to the machine with the fewest processes, where those that this call has
//     already sent there count twice.
//   * MigHull takes a process's number for its place in the list, and compares an area with a distance.
//
// So the processes move to and fro between the sites, as the printed times of scenario iii show.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/grid5000/platform.h"

namespace bsp::sim::grid5000 {

enum class Heuristic : std::uint8_t { kMigCube, kMigHull };

// What a process has measured in each superstep since the last call, s.
struct Measured {
  std::vector<double> computing{};
  std::array<std::vector<double>, kSites> exchanging{};  // on a site where it is not: the last time there
};

class Rules {
 public:
  Rules(Heuristic heuristic, std::array<std::uint32_t, kSites> known) : heuristic_(heuristic), known_(known) {}

  // Who moves from where, and where to; `on`, by process, is where they are then. Process 0 hears from nobody.
  std::vector<std::pair<std::uint32_t, Machine>> call(std::span<const Measured> measured, std::vector<Machine>& on);

 private:
  struct Entry {  // of the list of PM
    std::uint32_t process;
    double pm;
    std::size_t site;             // kSites: none has a positive PM
    std::array<double, 3> point;  // computation, communication, memory
  };

  [[nodiscard]] std::array<double, kSites> shares(std::span<const Machine> on) const;
  [[nodiscard]] Entry entry(std::uint32_t process, const Measured& measured, const std::array<double, kSites>& shares,
                            std::size_t own) const;
  void choose_in_cube(std::span<const Entry> list);
  void choose_in_hull(std::span<const Entry> list);

  Heuristic heuristic_;
  std::array<std::uint32_t, kSites> known_;
  std::vector<bool> chosen_{};  // by process, for good
};

}  // namespace bsp::sim::grid5000
