// What "instructions" are worth. Where the CPU counts them, they are work. Where it doesn't (most virtual machines), the
// shim reports nanoseconds of CPU time: of the same work a newer CPU needs fewer, so that they can't be compared from one
// Set to another. This makes work of them:
//
//   work of rank i = its CPU time · f(Set)        f = 1 where it began
//
//   f(b) / f(a)    confirmed: a rank moved from a to b, and its CPU time before ÷ after, less what changed meanwhile for
//                  those that stayed (their median)
//                  else guessed: ranks of all Sets do equal work in the mean, if the means differ by more than chance
//                  (kSure standard errors and kApart)
//                  else 1
//
// A guess is wrong where ranks of one Set have more to do than those of another. So while one is in use only one rank
// moves at a time; where it arrives, the guess is confirmed or corrected.
//
// Counted instructions of some ranks and CPU time of others have no common unit: kMixed, and no decision is made on them.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "operator/observe/calibration.h"

namespace bsp::observe {

enum class WorkUnit : std::uint8_t { kUnknown, kInstructions, kCpuTime, kMixed };

// Of the ranks that have said so.
WorkUnit unit_of(std::size_t counted, std::size_t ranks);

class Work {
 public:
  static constexpr double kSure = 3;             // standard errors
  static constexpr double kApart = 0.1;          // ratio
  static constexpr std::uint32_t kCompared = 2;  // supersteps after a move

  static Work from_json(const nlohmann::json& j);
  [[nodiscard]] nlohmann::json to_json() const;

  void set_unit(WorkUnit unit) { unit_ = unit; }
  [[nodiscard]] WorkUnit unit() const { return unit_; }

  // After each superstep, as it was reported. Both by rank.
  void add(std::span<const double> reported, const std::vector<std::string>& set_of_rank);
  // Takes up what was learned: f is then the same until the next call of this. By Set, f now ÷ f before.
  std::map<std::string, double> settle(const std::vector<std::string>& set_of_rank);

  [[nodiscard]] double factor(const std::string& set) const;
  // f(set) rests on ranks that moved.
  [[nodiscard]] bool confirmed(const std::string& set) const { return confirmed_.contains(set); }
  // Ranks run in a Set of which another f than that of the others is guessed.
  [[nodiscard]] bool guesses() const { return guesses_; }

 private:
  struct Recent {
    std::string set;
    Estimate time;                                         // CPU time of a superstep since the last move of any rank
    std::optional<std::pair<std::string, double>> before;  // the Set until then, and its mean there
  };
  void compare();
  using TimesBySet = std::map<std::string, std::vector<double>>;
  [[nodiscard]] std::map<std::string, double> best_known(const TimesBySet& times) const;
  [[nodiscard]] std::map<std::string, double> confirmed_from(const std::string& first) const;

  WorkUnit unit_ = WorkUnit::kUnknown;
  std::vector<Recent> ranks_;
  bool compared_ = true;
  std::map<std::pair<std::string, std::string>, Estimate> ratios_;  // f(second) / f(first)
  std::map<std::string, double> factors_, confirmed_;
  bool guesses_ = false;
};

}  // namespace bsp::observe
