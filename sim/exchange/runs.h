// All runs of the study, in several threads; means over the workloads of each size.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>

#include "sim/exchange/study.h"

namespace bsp::sim::exchange {

// One side of the comparison.
struct Variant {
  std::optional<bsp::exchange::Mechanism> mechanism;  // none: the best possible result
  bool threaded = false;
  auto operator<=>(const Variant&) const = default;
  [[nodiscard]] std::string name() const;
};

inline constexpr Variant kBest{};
inline constexpr Variant kNaive{bsp::exchange::Mechanism::kNaive};
inline constexpr Variant kIncrements{bsp::exchange::Mechanism::kIncrements};
inline constexpr Variant kSnapshot{bsp::exchange::Mechanism::kSnapshot};
inline constexpr Variant kNaiveThreaded{bsp::exchange::Mechanism::kNaive, true};
inline constexpr Variant kIncrementsThreaded{bsp::exchange::Mechanism::kIncrements, true};
inline constexpr Variant kSnapshotThreaded{bsp::exchange::Mechanism::kSnapshot, true};

struct RunKey {
  Variant variant;
  std::uint32_t processes = 0;
  bool close = false;    // decisions close in time
  double threshold = 0;  // s
  auto operator<=>(const RunKey&) const = default;
};

// The means of Outcome's values over the repeats, and the makespan as a multiple of the best one on the same workload.
struct RunMean {
  Outcome outcome;
  double messages = 0;
  double decisions = 0;
  double slowdown = 0;
};

class Runs {
 public:
  explicit Runs(const StudyParams& params) : params_(params) {}
  void plan(const RunKey& key) { means_[key]; }
  void run();  // all planned runs; progress on stderr
  [[nodiscard]] const RunMean& operator[](const RunKey& key) const { return means_.at(key); }
  [[nodiscard]] WorkloadParams workload(std::uint32_t processes, bool close, std::uint32_t repeat) const;

 private:
  StudyParams params_;
  std::map<RunKey, RunMean> means_;
};

}  // namespace bsp::sim::exchange
