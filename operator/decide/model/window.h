// The supersteps between two rescheduling calls: collects what they measured and says when the call
// is.
//
//   Window window(state, params, ranks, sets);       state of a new job: {}
//   window.add(superstep);                           after every superstep
//   if (window.call_due()) {
//     plan = make_plan(snapshot, window, params);    plan.h
//     state = std::move(window).close(plan.next);    to be stored; opens the next Window
//   }
//
// If a plan's moves only take effect some supersteps later, raise state.cadence.k to the first
// superstep of the new mapping before opening the next window: it then sees one mapping only.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>

#include "operator/decide/model/adaptation.h"
#include "operator/decide/model/metrics.h"
#include "operator/decide/model/model.h"

namespace bsp::decide {

// Of a window's supersteps, s.
struct SuperstepSeconds {
  double mean = 0;
  double error = 0;   // standard error of the mean
  double recent = 0;  // mean of the last kRecent, or of fewer

  static constexpr std::size_t kRecent = 4;
  // What a wave is judged by that is made now: what led to it may have begun just before the call.
  [[nodiscard]] double before_wave() const { return std::max(mean, recent); }
};

class Window {
 public:
  Window(State state, const Params& params, std::size_t ranks, std::size_t sets)
      : params_(params),
        cadence_(open_cadence(state.cadence, params)),
        metrics_(open_metrics(std::move(state.P_comp), state.P_comm, ranks, sets)) {}

  // Supersteps come in order, from k on. One that was lost is skipped: it neither raises nor lowers
  // α.
  void add(MeasuredSuperstep t) {
    check(t.superstep >= cadence_.k, "a window's supersteps start at k");
    check(!call_due(), "a due call is made before the next superstep is added");
    balance_ = balance_of(t);
    // Those before it that were lost, or not in the sample, took as long.
    cadence_.elapsed += balance_.slowest * static_cast<double>(t.superstep.value - counted().value);
    seconds_ += balance_.slowest, squares_ += balance_.slowest * balance_.slowest;
    recent_[metrics_.supersteps % recent_.size()] = balance_.slowest;
    adapt_alpha(cadence_, balance_, params_);
    early_.add(cadence_, balance_, params_);
    const bool call_follows = early_.due() || decide::call_due(cadence_, t.superstep, metrics_.supersteps + 1, params_);
    update(metrics_, std::move(t), cadence_.alpha, params_, call_follows);
  }

  // The unit of each rank's instructions became another one: what was added is so many times as much. By rank.
  void rescale(std::span<const double> ratio) { decide::rescale(metrics_, ratio); }

  // From the next superstep on; what has been measured stays.
  void use(const Params& params) { params_ = params; }
  [[nodiscard]] bool call_due() const { return metrics_.supersteps > 0 && (early_.due() || is_over()); }
  // Before the window's α supersteps were over.
  [[nodiscard]] bool called_early() const { return early_.due() && !is_over(); }
  [[nodiscard]] Superstep completed() const { return metrics_.last.superstep; }
  // The last superstep that Cadence::elapsed counts: before the first one is added, the one before k.
  [[nodiscard]] Superstep counted() const {
    return metrics_.supersteps > 0 ? completed() : Superstep{cadence_.k.value - 1};
  }
  [[nodiscard]] const Cadence& cadence() const { return cadence_; }
  [[nodiscard]] const Metrics& metrics() const { return metrics_; }
  [[nodiscard]] const Balance& balance() const { return balance_; }  // of the superstep added last

  [[nodiscard]] SuperstepSeconds seconds() const {  // mean of the window so far
    const double n = static_cast<double>(metrics_.supersteps), mean = n > 0 ? seconds_ / n : 0;
    const double spread = n > 1 ? std::max(0.0, squares_ - seconds_ * mean) / (n - 1) : 0;
    const std::size_t recent = std::min<std::size_t>(metrics_.supersteps, SuperstepSeconds::kRecent);
    const double sum = std::accumulate(recent_.begin(), recent_.begin() + recent, 0.0);
    return {.mean = mean,
            .error = n > 1 ? std::sqrt(spread / n) : 0,
            .recent = recent > 0 ? sum / static_cast<double>(recent) : 0};
  }

  // Ends the window; `next` is the plan's.
  [[nodiscard]] State close(const Cadence& next) && {
    return {next, std::move(metrics_.P_comp), std::move(metrics_.P_comm)};
  }

 private:
  [[nodiscard]] bool is_over() const { return decide::call_due(cadence_, completed(), metrics_.supersteps, params_); }

  Params params_;
  Cadence cadence_;
  Metrics metrics_;
  double seconds_ = 0, squares_ = 0;  // Σ, Σ² of the supersteps
  std::array<double, SuperstepSeconds::kRecent> recent_{};
  Balance balance_;
  EarlyCall early_;
};

}  // namespace bsp::decide
