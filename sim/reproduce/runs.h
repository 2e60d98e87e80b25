// One run of the sources' evaluations: its application, size, number of processes, heuristic and α₀, and its results in
// the three scenarios. All runs use the parameters of sim/applications/calibration.h, and all but those of held_out.h its choice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "sim/applications/calibration.h"

namespace bsp::sim {

struct RunKey {
  std::string application{};  // "lattice-boltzmann", "smith-waterman", "lu", "fractal"
  std::uint32_t processes = 0;
  double size = 0;            // supersteps, order (also of Smith-Waterman: = processes), or domain
  std::string heuristic{};    // of operator/decide, or of sim/yardsticks
  std::uint64_t alpha = 4;    // α₀
  std::string mapping{};      // on Grid'5000; "": Contiguous on the five Sets
  bool as_published = false;  // on Grid'5000: by the program that printed the tables, not by operator/decide
  calibration::Choice choice{};

  auto operator<=>(const RunKey&) const = default;
  [[nodiscard]] std::string case_name() const;  // "lattice-boltzmann 25 processes, 2000 supersteps"
  [[nodiscard]] std::string name() const;       // the same, "…, Top, α₀ = 4"
};

struct RunMove {
  std::uint32_t process = 0;  // 1-based, as the sources count
  std::string node{};         // its new node
  std::string from{}, to{};   // Sets
  std::uint64_t superstep = 0;

  bool operator==(const RunMove&) const = default;
};

struct RunCall {
  std::uint64_t superstep = 0;
  std::uint32_t moves = 0;

  bool operator==(const RunCall&) const = default;
};

struct RunResult {
  double alone = 0, deciding = 0, migrating = 0;  // s, scenarios i, ii and iii
  double rest_alone = 0, rest_migrating = 0;  // s of the last superstep of i and iii besides the slowest computation
  std::vector<RunCall> calls{};               // of iii
  std::vector<RunMove> moves{};               // of iii

  bool operator==(const RunResult&) const = default;
};

// The names that RunKey::heuristic may have besides operator/decide's.
inline constexpr const char* kYardsticks[] = {"GreedyLB", "RefineLB", "Nothing"};
Result<void> validate(const RunKey& key);

// kInvalid if the key is wrong; kFailed if SimGrid is.
Result<RunResult> run(const RunKey& key);

// Roughly how long run() takes, relative to other runs.
double expected_cost(const RunKey& key);

// Serialisation, to pass results between processes.
std::string to_json(const RunResult& result);
Result<RunResult> run_result_from_json(const std::string& text);

}  // namespace bsp::sim
