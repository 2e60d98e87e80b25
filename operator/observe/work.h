// What "instructions" are worth. Where the CPU counts them, they are work. Where it doesn't (most virtual machines), the
// shim reports nanoseconds of CPU time: of the same work a newer CPU needs fewer, so that they can't be compared from one
// Set to another. This makes work of them:
//
//   work of rank i = its CPU time · f(Set)        f = 1 where it began
//
//   f(b) / f(a)    confirmed: a rank moved from a to b, and its CPU time before ÷ after, less what changed meanwhile for
//                  those that stayed (their median)
//                  else calibrated: the ratio of the nodes' speeds in the benchmark (benchmarks.h), which is off by some kMix,
//                  as no program does the three kinds of work in equal parts. Equal means (below) correct it, weighted by their
//                  precision, if the two differ by less than kBoth standard errors of both; else the ranks of these
//                  Sets do unequal work, and the means say nothing. A ratio within kApart of the last one, or of 1, is that
//                  else guessed: ranks of all Sets do equal work in the mean, if the means differ by more than chance
//                  (kSure standard errors and kApart)
//                  else 1
//
// A guess is wrong where ranks of one Set have more to do than those of another. So while one is in use only one rank
// moves at a time; where it arrives, the guess is confirmed or corrected. A calibrated ratio is off by a part only, and its first
// wave confirms it: holding that up costs more than it saves (docs/decisions.md).
//
// Counted instructions of some ranks and CPU time of others have no common unit: kMixed, and no decision is made on them.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "operator/observe/benchmarks.h"
#include "operator/observe/calibration.h"
#include "operator/observe/collector.h"

namespace bsp::observe {

enum class WorkUnit : std::uint8_t { kUnknown, kInstructions, kCpuTime, kMixed };

// Of the ranks that have said so.
WorkUnit unit_of(std::size_t counted, std::size_t ranks);

// What a rank's own CPU limit takes from it, it takes on every node; but its periods and supersteps may keep in step for long, so that some
// nodes look slower than others. So of a rank that is held back by it (by rank: not 0) CPU time counts as computing time, where it is
// known (kCpuTime). `times`: as reported.
void leave_out_limits(SuperstepTimes& times, std::span<const std::uint8_t> held_back, WorkUnit unit);

class Work {
 public:
  static constexpr double kSure = 3;             // standard errors
  static constexpr double kApart = 0.1;          // ratio
  static constexpr std::uint32_t kCompared = 2;  // supersteps after a move
  static constexpr double kBoth = 2;             // standard errors
  static constexpr double kMix = 0.12;           // standard deviation of a benchmark's ratio
  static constexpr double kUnequal = 0.05;       // of that of the mean work of two Sets with ranks of one kind

  static Work from_json(const nlohmann::json& j);
  [[nodiscard]] nlohmann::json to_json() const;

  void set_unit(WorkUnit unit) { unit_ = unit; }
  [[nodiscard]] WorkUnit unit() const { return unit_; }

  // After each superstep, as it was reported. All by rank. Of those that are `doubtful` (not 0) a move shows nothing: it is not known
  // whether they have as much to do as before.
  void add(std::span<const double> reported, const std::vector<std::string>& set_of_rank,
           std::span<const std::uint8_t> doubtful = {});
  // Takes up what was learned: f is then the same until the next call of this. By Set, f now ÷ f before.
  std::map<std::string, double> settle(const std::vector<std::string>& set_of_rank, const Benchmarks& benchmarks = {});

  [[nodiscard]] double factor(const std::string& set) const;
  // f(set) rests on ranks that moved.
  [[nodiscard]] bool confirmed(const std::string& set) const { return confirmed_.contains(set); }
  // f(set) ÷ f of the Sets that hold most ranks rests on the benchmark; true of these, too, if it does for any.
  [[nodiscard]] bool calibrated(const std::string& set) const { return calibrated_.contains(set); }
  // Ranks run in a Set of which another f than that of the others is guessed.
  [[nodiscard]] bool guesses() const { return guesses_; }

 private:
  struct Recent {
    std::string set;
    Estimate time;                                         // CPU time of a superstep since the last move of any rank
    std::optional<std::pair<std::string, double>> before;  // the Set until then, and its mean there
  };
  void compare();
  using BySet = std::map<std::string, double>;
  [[nodiscard]] BySet best_known(const std::map<std::string, std::size_t>& ranks) const;
  [[nodiscard]] BySet confirmed_from(const std::string& first) const;
  [[nodiscard]] std::vector<BySet> calibrate(const BySet& sure, const Benchmarks& benchmarks) const;

  WorkUnit unit_ = WorkUnit::kUnknown;
  std::vector<Recent> ranks_;
  bool compared_ = true;
  std::map<std::pair<std::string, std::string>, Estimate> ratios_;  // f(second) / f(first)
  BySet factors_, confirmed_;
  std::set<std::string> calibrated_;
  bool guesses_ = false;
};

}  // namespace bsp::observe
