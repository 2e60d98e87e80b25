// Whom each rank hears from, and how much, as the shim of a real rank reports it (sidecar/shim/measure/measure.cc, sample_partners).
//
//   a sample   after supersteps 1, 2, 4, 8, … of an epoch, and after any other if the last sample is kPeriod old
//   bytes      received from a rank ÷ supersteps; at each sample both are halved, so that old ones fade
//
// A sample has the decide::kMostPartners heaviest, the heaviest first, of equals the lower rank. An epoch begins where ranks have
// moved; what was received before still counts. Where no decision uses partners (decide::Heard) there are none.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "operator/decide/model/model.h"
#include "sim/workload.h"

namespace bsp::sim {

class HeardOf {
 public:
  static constexpr double kPeriod = 1;  // s

  HeardOf(std::size_t ranks, std::size_t sets);

  // A superstep has ended, `now` seconds after the start.
  void add(const Demand& demand, double now);
  void begin_epoch() { epoch_ = 0; }
  // As last sampled, by rank.
  void report(std::span<decide::Rank> ranks) const;

 private:
  void sample();

  std::vector<std::map<std::uint32_t, double>> bytes_;  // by receiver and sender, faded
  std::vector<std::vector<decide::Partner>> sampled_;   // by rank
  std::uint64_t epoch_ = 0;                             // its supersteps so far
  double supersteps_ = 0;                               // that bytes_ are of
  double sampled_at_ = 0;                               // s
};

}  // namespace bsp::sim
