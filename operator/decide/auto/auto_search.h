// Auto's search: the mapping that makes the rest of the job shortest (F in auto.h), and what it costs to get there.
//
//   follow_bottleneck   Bottleneck's answer for H supersteps
//   settle              mappings within a limit on Time, from the least one up (settle.h)
//   bring_together      from the best so far, and from where all are, those together who talk (partners.h)
//
// Where ranks share pods, each mapping is also weighed with those together on a node who talk (packing.h).
//
// Whatever they find is weighed alike: as the waves that lead there, each with its pause (waves.h), and the supersteps
// that remain. A mapping counts if it makes the superstep shorter, sends no rank back, and can be afforded.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "operator/decide/auto/partners.h"
#include "operator/decide/auto/waves.h"
#include "operator/decide/fast/comm_of.h"
#include "operator/decide/model/strategy.h"

namespace bsp::decide {

struct Candidate {
  double F = 0;          // s
  double superstep = 0;  // when all waves are over, s
  Waves waves{};
};

class AutoSearch {
 public:
  // `c` has to outlive this.
  AutoSearch(const Case& c, double H);

  // What a wave may cost by kRisk, s; unlimited if this isn't called.
  void afford(double budget) { budget_ = budget; }

  // `list`: the PM list.
  void run(std::span<const PmEntry> list);

  // Who makes the superstep shorter by less than what noise lets one see stays, all of them together: `slack`, s.
  void leave_out(double slack);

  // The part of `whole` that makes no superstep's computation longer (replay.h), without those who make it shorter by less
  // than kSlack · kLeast. Without waves if there is none, or it can't be paid for yet. `I`: the window's, as Metrics::I_recent.
  Candidate faster_part_of(const Candidate& whole, std::span<const std::vector<double>> I);

  // Who may turn out to be the longest under a mapping of one wave goes along, if that costs nothing: who takes more than
  // 1 − kNear · sure of the longest Time, but no less than half of it, goes to a processor that is faster (Replay::kFaster) and that
  // nobody is on or comes to, if neither the pause nor the superstep is longer then.
  void take_along(Candidate& chosen, double sure) const;

  // After how many supersteps a mapping that was found will be worth its price, and can be paid for: infinite if none.
  // `sure`: what counts as a gain on the mapping that is chosen.
  [[nodiscard]] double next_pays(const Candidate& chosen, double sure) const;

  [[nodiscard]] const Candidate& best() const { return best_; }
  [[nodiscard]] Candidate without_moves() const { return {.F = H_ * now(), .superstep = now()}; }

  // By processor: Time where all ranks are, s.
  [[nodiscard]] std::span<const double> seconds() const { return seconds_; }
  // A superstep where all ranks are, s; and under a mapping.
  [[nodiscard]] double now() const { return now_.first + now_.second; }
  [[nodiscard]] double superstep_of(std::span<const ProcessorId> on) const;
  // After wave w, in whose pods the ranks meet that waves have led there.
  [[nodiscard]] double superstep_of(const Waves& waves, std::size_t w) const;
  // The waves that lead to a mapping; none if it can't be reached.
  [[nodiscard]] Waves way_to(std::span<const ProcessorId> mapping) const { return waves_to(c_, I_, mapping, alike_); }
  // Of all mappings that were found, whatever they cost, and the present one, s.
  [[nodiscard]] double shortest_found() const;
  // How far off the gain of a mapping may be since speeds are (Processor::cpu_error), as a part of a superstep: standard error. Equal
  // speeds of one Set are off alike. Either those of the processors that take longest count, before and after; or, as work is irregular,
  // those of each rank that moves.
  [[nodiscard]] double error_of_longest(std::span<const ProcessorId> on) const;
  [[nodiscard]] double error_of_any_move(std::span<const ProcessorId> on) const;
  // Comm(i,j), if only i moves, s.
  [[nodiscard]] double comm_in(RankId i, SetId j) const {
    return j == c_.columns.own[i.value] ? here_[i.value] : comm_of_(i, j);
  }

 private:
  static constexpr int kBisections = 12;
  static constexpr double kClose = 0.002;
  static constexpr std::size_t kTakenAlong = 64;         // ranks that are tried, the longest first
  static constexpr std::size_t kReplayWork = 4'000'000;  // ranks and processors · supersteps, some milliseconds

  // A mapping that was found.
  struct Known {
    double price;      // F − H · superstep, s
    double superstep;  // s
    double risk;       // s
    bool certain;      // its gain is no matter of noise
  };

  [[nodiscard]] double error_of_ratio(ProcessorId before, ProcessorId after) const;
  [[nodiscard]] std::pair<double, double> superstep(std::span<const ProcessorId> on) const;
  [[nodiscard]] double comm_under(std::span<const ProcessorId> on) const;
  [[nodiscard]] double max_comm(std::span<const ProcessorId> on) const;
  [[nodiscard]] double comm_with_partners(std::span<const ProcessorId> on) const;
  [[nodiscard]] bool has_slot(std::span<const ProcessorId> mapping, ProcessorId p) const;
  [[nodiscard]] bool small() const;
  [[nodiscard]] std::optional<ProcessorId> faster_idle(RankId i, const std::vector<bool>& taken) const;
  [[nodiscard]] bool goes_back(std::span<const ProcessorId> mapping) const;

  void consider(std::span<const ProcessorId> mapping);
  void weigh(std::span<const ProcessorId> mapping);
  [[nodiscard]] double affordable(double target) const;
  [[nodiscard]] double at_risk(const Waves& waves) const;

  void follow_bottleneck(std::span<const PmEntry> list);
  void settle();
  void bring_together();

  const Case& c_;
  double H_;
  std::span<const double> I_;
  CommOf comm_of_;
  std::vector<double> here_;      // Comm(i, own Set) by rank
  std::optional<Heard> heard_{};  // of few ranks
  Alike alike_;
  std::vector<double> seconds_;      // Time where all ranks are, by processor
  std::pair<double, double> now_{};  // max Time, max Comm
  Candidate best_;
  double budget_ = std::numeric_limits<double>::infinity();
  std::vector<Known> known_;
};

}  // namespace bsp::decide
