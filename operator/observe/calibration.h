// The platform's properties as far as they were measured: speed of each Set, bandwidth between Sets, and
// the fixed part of a migration. What was never measured is assumed, and says so.
//
//   cpu(n)   = sum of I / sum of CT over the ranks on node n, superstep by superstep
//   cpu(j)   = the median of that over the nodes of Set j that have ranks, smoothed; of less than kFewNodes nodes, sum
//              of I / sum of CT over the ranks in the Set. So one slow node does not make its whole Set appear slow.
//   T(a,b)   = time of a checkpoint's transfer / its bytes
//   Mig      = pause of a wave − bytes · T, at least 0; the pause is what the program loses (crds/rankmigration.h)
//   C(a,b)   = bytes/s of all ranks together, where they were seen to share the link (decide/links.h)
//
// Smoothing: x ← x + w·(new − x), w = max(1/samples, kWeight): a plain mean first, then an aging one. Of a Set's first kSettled speeds
// the median: a job's first superstep is often its slowest, with caches that are cold and pages that are touched first.
// A speed has a sample each superstep, now and then a wild one (a rank descheduled, a superstep of next to no
// work): once there are kSettled of them, a new one counts at most kOutlier times more or less than x.
// A rank that computes for little beside the others (negligible.h) isn't counted, unless nothing else is known of its Set. Neither is a
// superstep whose most work and longest computation are less than kLittle of the others' so far, as while a program starts: no CPU quota
// slows such bursts down. After the first one that is as much more, the speeds where ranks are begin anew.
// A node counts as its Set does, so that no rank moves between nodes of one kind for nothing, unless it was kApart slower
// (or faster) in each of its last n ≥ kSettled supersteps, and n · |ln(its mean ÷ the Set's)| ≥ kEvidence · ln(1 + kApart): one that is
// far apart is known sooner than one that noise may put there. Then it has that mean, and keeps it when its last rank has gone, for
// kKept supersteps, or kKeptPauses times as long as a move takes if that is longer: what slowed it down may be over, and to find out costs
// two moves. If it is still apart then, it is kept twice as long the next time. Not over a restart of the operator. A wave is
// judged over kSettled supersteps, so that one that is taken back isn't tried again with its nodes exchanged.
// Of a Set's speed n samples of so many nodes, at most 2/kWeight − 1, have the standard error noise · √(kBlock / (n · nodes)), of a
// node's own speed its samples (steadiness.h). The rest is kept in BSPJob.status.calibration, from where a fresh operator takes it up
// again.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "crds/bspjob.h"
#include "crds/rankmigration.h"
#include "operator/decide/model/links.h"
#include "operator/observe/collector.h"
#include "operator/observe/steadiness.h"

namespace bsp::observe {

struct Estimate {
  double value = 0;
  std::uint32_t samples = 0;  // or more: in supersteps of a millisecond it is full within fifty days
  void add(double x);
};

class Calibration {
 public:
  static constexpr double kWeight = 0.1;
  static constexpr std::uint32_t kSettled = 4;                // samples
  static constexpr double kOutlier = 4;                       // ratio
  static constexpr double kLittle = 0.05;                     // ratio
  static constexpr double kApart = 0.1;                       // ratio
  static constexpr double kEvidence = 10;                     // supersteps that a node which is just apart has to be
  static constexpr double kKept = 50;                         // supersteps
  static constexpr double kKeptPauses = 100;                  // moves
  static constexpr std::size_t kFewNodes = 3;                 // nodes
  static constexpr std::uint64_t kEnoughBytes = 100'000'000;  // bytes
  static constexpr double kAssumedRate = 1e9;                 // instructions/s of a Set of nominal speed 1
  static constexpr double kAssumedBandwidth = 300e6;          // bytes/s
  static constexpr double kAssumedFixed = 0.3;                // s

  static Calibration from_status(const std::vector<crds::CalibrationEntry>& values);
  // Measured values, and the assumed ones for Sets (with their nominal speed) that have none.
  // `rests_on`: what the speed of a Set rests on, if not simply on measuring; of a Set without ranks it can only be a benchmark.
  [[nodiscard]] std::vector<crds::CalibrationEntry> to_status(
      const std::map<std::string, double>& nominal,
      const std::map<std::string, crds::CalibrationSource>& rests_on = {}) const;

  // Both by rank. Without nodes, only the Sets' values are kept.
  void add_superstep(const SuperstepTimes& times, const std::vector<std::string>& set_of_rank,
                     const std::vector<std::string>& node_of_rank = {});
  // Whether the last superstep said something of speeds.
  [[nodiscard]] bool told() const { return told_; }
  // What crossed from Set to Set: whether a link is shared by all ranks, and what it carries (decide/links.h). `sets`: their
  // names, in the order of the reports; `set_of_rank` as above.
  // `messages`: crossings()'.
  void add_traffic(const decide::MeasuredSuperstep& t, const std::vector<std::string>& sets,
                   const std::vector<std::string>& set_of_rank, const decide::Grid<double>& messages = {});
  // The unit of instructions in a Set became another one (work.h): its values are `ratio` times what they were.
  void rescale(const std::string& set, double ratio);
  // What was seen of the node was its rank's own (rank_factors.h).
  void forget(const std::string& node);
  void add_move(const std::string& from, const std::string& to, std::uint64_t bytes, const crds::PauseParts& pause);
  // One that was given up because it was not over after so long: it bounds the bandwidth from above. Of fewer
  // than kEnoughBytes bytes it says nothing: what took so long was something else.
  void add_late_move(const std::string& from, const std::string& to, std::uint64_t bytes, double seconds);

  struct Value {
    double value = 0;
    bool measured = false;
    double error = 0;  // of a measured speed, standard, relative
    // Of a node: it was slower than its Set, but that is too long ago to say anything, so that ranks that left it may return.
    bool may_return = false;
  };
  // Instructions/s; unmeasured Sets by their nominal speed relative to a measured one.
  [[nodiscard]] Value cpu(const std::string& set, const std::map<std::string, double>& nominal) const;
  // The same of a node: its own value, or its Set's.
  [[nodiscard]] Value cpu_of_node(const std::string& node, const std::string& set,
                                  const std::map<std::string, double>& nominal) const;
  // Of a mean speed of so many nodes: standard, relative.
  [[nodiscard]] double error_of(const Estimate& speed, std::size_t nodes) const;
  [[nodiscard]] Value seconds_per_byte(const std::string& from, const std::string& to) const;
  [[nodiscard]] Value fixed(const std::string& to) const;
  // Bytes/s of all ranks together; 0: not seen to be a limit.
  [[nodiscard]] double capacity(const std::string& from, const std::string& to) const;

 private:
  // A node whose ranks are slower, or faster, than those of its Set.
  struct Apart {
    Estimate speed{};
    std::uint64_t seen = 0;  // superstep
    double kept = 1;         // times as long as the first time
  };
  void add_speed_of_set(const std::string& set, double x);
  void note_node(const std::string& node, double speed, double of_set);
  // nullptr: it counts as its Set does.
  [[nodiscard]] const Apart* apart(const std::string& node, double of_set) const;
  [[nodiscard]] bool is_over(const Apart& apart) const;

  std::map<std::string, Estimate> cpu_;
  std::map<std::string, std::vector<double>> first_;  // by Set, its speeds until there are kSettled
  std::map<std::string, std::size_t> nodes_;          // by Set, that ranks computed on
  std::unordered_map<std::string, Apart> apart_;      // by node
  std::uint64_t now_ = 0;                             // superstep
  Estimate longest_, pause_;                          // s, a superstep's longest computation; a move
  Estimate most_;                                     // instructions, a superstep's most of a rank
  bool told_ = false;
  Steadiness steadiness_;
  std::map<std::pair<std::string, std::string>, Estimate> bandwidth_;  // bytes/s
  std::map<std::string, Estimate> fixed_;
  std::map<std::pair<std::string, std::string>, decide::LinkSeen> links_;
};

}  // namespace bsp::observe
