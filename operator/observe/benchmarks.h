// What CPU time is worth in each Set, by the benchmark that each sidecar's node runs once (sidecar/agent/benchmark.h):
//
//   speed of a node = 1 / geometric mean of the CPU times of a unit of integer, of floating point and of memory work, each
//                     the least that one of its pods measured (other programs only ever make it longer)
//   speed of a Set  = the median of its nodes'
//
// The three kinds count the same, because nothing says which of them a program's work resembles: for a program that does one
// of them only, a ratio of two speeds is wrong by what the CPUs differ in that kind more than on average.
//
// A Set keeps its speed when its last pod has gone, and over a restart of the operator (status.calibration). It gets another one
// by more nodes than that rests on, or if it has changed by kApart and at least half as many nodes say so.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "crds/bspjob.h"
#include "crds/wire.h"
#include "operator/observe/calibration.h"
#include "operator/observe/snapshot.h"

namespace bsp::observe {

struct PodBenchmark {
  std::string_view set, node;
  const wire::CpuBenchmark* cpu = nullptr;
};

// By the formula above.
double units_per_second(const wire::CpuBenchmark& cpu);

class Benchmarks {
 public:
  static Benchmarks from_status(const std::vector<crds::CalibrationEntry>& values);
  [[nodiscard]] std::vector<crds::CalibrationEntry> to_status() const;

  // `nodes`: what is known of them without their pods (NodeFacts::benchmark).
  void update(const std::vector<PodBenchmark>& pods, const std::vector<NodeFacts>& nodes = {});
  // Units of work per second of CPU time, and the number of nodes that this rests on.
  [[nodiscard]] const std::map<std::string, Estimate>& speeds() const { return speeds_; }
  // The speeds of all Sets that have one, relative to `set`; those within kApart count as equal, because a benchmark is no more
  // precise. Empty if `set` has none.
  [[nodiscard]] std::map<std::string, double> relative_to(const std::string& set) const;

 private:
  std::map<std::string, Estimate> speeds_;
};

}  // namespace bsp::observe
