// Auto where a job is to be cheap, rather than short (Params::objective): the mapping that costs least, as long as the rest of the job
// takes no longer than a limit.
//
//   rate(mapping)  Σ over ranks of the price of the slot                                                  currency/h
//   money          Σ over the waves (pause + kBetween · superstep) · rate + left · superstep · rate        currency·s/h
//   time           the same without rate: F of auto.h                                                      s
//   limit of time  Price      (1 + max_slowdown) · H · shortest superstep that is found, whatever ranks have left and the job owes;
//                             or what Auto would make of the rest by time, if that is more
//                  Deadline   what is left until the deadline, less kMargin and what noise may hide
//
// If staying keeps the limit, a mapping has to save money: by more than noise may feign (auto.h's threshold, of superstep · rate) and by
// min_gain. Else the job has to hurry: a mapping has to save time, like any plan of Auto's; of those that then keep the limit the cheapest
// is taken, or the shortest if none does. Both have to be affordable (auto.h, the budget), where what is owed and what staying has cost
// count as seconds at the rate of the mapping with which the job began.
//
// No rank returns to a slot that it has left, unless that is cheaper than its present one: prices change, and a cheap slot that was too
// slow is ruled out by the limit.
//
// The search: for each subset of Sets and several limits on Time, the largest rank first takes the cheapest slot where it is done by then.
// Where each slot is a processor of its own and messages cost nothing, no mapping within the limit is cheaper: a slot that will do for a
// rank will do for all smaller ones, too, so that two ranks may exchange slots. From there, single ranks go to cheaper slots.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "operator/decide/auto/auto_search.h"

namespace bsp::decide {

class Prices {
 public:
  // Slots without a price count as the dearest known; if none is known, all cost 1.
  explicit Prices(const Snapshot& snapshot);
  [[nodiscard]] double of(ProcessorId p) const { return price_[p.value]; }  // of a slot, an hour
  [[nodiscard]] double rate(std::span<const ProcessorId> on) const;

 private:
  std::vector<double> price_;  // by processor
};

// All in s, but for H and sure.
struct PriceTerms {
  double H = 0;           // supersteps to come
  double limit = 0;       // of the time that they and their pauses take
  bool hurries = false;   // staying exceeds it
  double sure = 0;        // of superstep · rate, or of the superstep if the job hurries
  double budget = 0;      // that a wave may cost; infinite: any
  double first_rate = 1;  // of the mapping with which the job began, currency/h
};

class PriceSearch {
 public:
  static constexpr double kMargin = 0.03;  // of the time that is left until a deadline
  static constexpr std::size_t kMostSets =
      5;  // of which all subsets are tried; else the cheapest Sets, one more at a time
  static constexpr std::size_t kLimits = 8;          // on Time
  static constexpr std::int64_t kWork = 20'000'000;  // looking at a slot or a rank is one step

  // All have to outlive this.
  PriceSearch(const Case& c, const AutoSearch& search, const Prices& prices, const PriceTerms& terms);

  // `starts`: mappings from which single ranks may go to cheaper slots.
  void run(std::span<const std::vector<ProcessorId>> starts);

  // Without waves if none is worth it. F: s, of time if the job hurries, else money at the present rate.
  [[nodiscard]] const Candidate& best() const { return best_; }
  // After how many supersteps one that was found can be paid for; infinite: none.
  [[nodiscard]] double next_pays() const { return soonest_; }

 private:
  [[nodiscard]] bool may_be_on(std::uint32_t i, ProcessorId p) const;
  [[nodiscard]] std::optional<std::vector<ProcessorId>> cheapest(double tau, const std::vector<bool>& sets);
  [[nodiscard]] double value_of(std::span<const ProcessorId> on) const {
    return search_.superstep_of(on) * prices_.rate(on);
  }
  void fit(const std::vector<bool>& sets, double seconds);
  void descend(std::vector<ProcessorId> on);
  void weigh(const std::vector<ProcessorId>& mapping);
  void leave_out();
  bool spend(std::int64_t steps) { return (work_ -= steps) > 0; }

  const Case& c_;
  const AutoSearch& search_;
  const Prices& prices_;
  PriceTerms terms_;
  std::span<const double> I_;
  std::vector<std::uint8_t> movable_;    // by rank
  std::vector<std::uint32_t> by_size_;   // ranks, the largest first
  std::vector<std::uint32_t> by_price_;  // processors, the cheapest first, of equals the fastest
  double rate_now_ = 0, longest_ = 0;    // currency/h; s that a superstep may take
  Candidate best_;
  double money_ = std::numeric_limits<double>::infinity(), soonest_ = money_;  // of best_
  std::int64_t work_ = kWork;
};

}  // namespace bsp::decide
