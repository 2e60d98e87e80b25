// What the instructions of one rank are worth beside those of another. A rank that waits for memory computes fewer instructions a second
// than others, wherever it is; so does one that writes files, where CPU time counts. Its node would look slow, and the rank would be
// sent from one to the next. What a rank takes along when it moves is its own, what stays behind is the node's:
//
//   r(i,n)   = ln(I_t(i) / CT_t(i)) − ln cpu(Set of n), mean over the supersteps of rank i on node n; of its last kVisits nodes
//   c(i)     = −median of {0, r(i,n) over these nodes}, of two middle values the one nearer to 0; 0 if below kUnlike
//   work(i)  = exp(c(i)) · I_t(i)
//
// Of a rank that has been on one node only c is 0: a slow node is likelier, and one move tells. The ranks that have been on two, a and b,
// say whether this is a job of unlike ranks or of unlike nodes:
//
//   own      = Σ r(i,a)·r(i,b)                 what they took along
//   of nodes = Σ (r(i,a) − r(i,b))² / 2 + e²    what changed with the node, and what may be chance: e, the standard errors of both
//                                              (steadiness.h)
//
// c stays as it is unless own > kSome · of nodes. If own > kAll · of nodes, with kMoved ranks or more, what a rank was apart by in its
// first kSettled supersteps is its own on its first node, too. Of these only: a node may slow down later.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/observe/calibration.h"
#include "operator/observe/collector.h"

namespace bsp::observe {

class RankFactors {
 public:
  static constexpr std::size_t kVisits = 4;  // nodes
  static constexpr double kUnlike = 0.05;    // ln
  static constexpr double kChange = 0.02;    // ln: by less c doesn't change
  static constexpr double kSome = 2;         // times
  static constexpr double kAll = 10;         // times
  static constexpr std::size_t kMoved = 3;   // ranks

  // [rank, c] of those whose c isn't 0. What can't be read is left out.
  static RankFactors from_json(const nlohmann::json& j, std::size_t ranks);
  [[nodiscard]] nlohmann::json to_json() const;

  // After each superstep, once `calibration` has it. `times`: its instructions are multiplied by factor(). All by rank.
  void add(const SuperstepTimes& times, const std::vector<std::string>& set_of_rank,
           const std::vector<std::string>& node_of_rank, const Calibration& calibration);
  // Takes up what was learned: c is then the same until the next call of this. By rank, factor() now ÷ before; empty: none
  // has changed. `calibration` forgets what it held against the nodes of those that have.
  std::vector<double> settle(Calibration& calibration);

  // exp(c).
  [[nodiscard]] double factor(std::size_t rank) const { return rank < ranks_.size() ? ranks_[rank].factor : 1; }

 private:
  enum class Own : std::uint8_t { kNone, kSome, kAll };
  struct Visit {
    std::string node;
    Estimate apart{};  // r(i,n)
    double first = 0;  // the same of its first kSettled supersteps
  };
  struct Rank {
    std::vector<Visit> visits;  // the last one is where it is
    double factor = 1;          // exp(c)
  };
  [[nodiscard]] Own own_differences(const Calibration& calibration) const;
  static double factor_of(const Rank& rank, Own own);

  std::vector<Rank> ranks_;
};

}  // namespace bsp::observe
