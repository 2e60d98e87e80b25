// What the authors of MigCube and MigHull simulated for the tables of their paper of 2016, as the program says that they published
// with it (GitHub's migcubemighull/heuristics): three sites of Grid'5000 as SimGrid describes them, one processor a machine, and the
// machine of each of the 60 processes. Nothing here is fitted.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "operator/decide/model/mapping.h"

namespace bsp::sim::grid5000 {

inline constexpr std::size_t kSites = 3;
inline constexpr std::uint32_t kProcesses = 60;

struct Site {
  std::string_view name;
  std::uint32_t machines;
  double speed;  // instructions/s of a machine, which its processes share evenly
};
inline constexpr std::array<Site, kSites> kSiteOf{
    {{"Capricorne", 15, 4.7233e9}, {"Suno", 15, 23.53e9}, {"Chicon", 10, 8.9618e9}}};

inline constexpr double kInstructions = 9e8, kBytes = 1e6;  // of a process in a superstep, to the next process

// SimGrid's model of TCP (LV08): a link carries 97 % of its 1 Gb/s and takes 13.01 times its 0.1 ms, and a message takes 5 % of its
// pace on the way back.
inline constexpr double kBandwidth = 0.97 * 125e6, kLatency = 13.01 * 1e-4, kWayBack = 0.05;

struct Machine {
  std::uint32_t site = 0, number = 0;  // both from 0

  auto operator<=>(const Machine&) const = default;
};

// s until a byte from one machine is at the other; also from a machine to itself.
double latency(Machine from, Machine to);

struct Deployment {
  std::vector<Machine> on{};                  // by process
  std::array<std::uint32_t, kSites> known{};  // machines of each site that a process may move to
};
// Of 60 processes: Ascending, Descending, CPU or RoundRobin; Contiguous is Ascending.
Deployment deployment(decide::Mapping mapping);

}  // namespace bsp::sim::grid5000
