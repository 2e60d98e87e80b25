#include "operator/decide/model/adaptation.h"

#include <algorithm>
#include <limits>

namespace bsp::decide {

Balance balance_of(const MeasuredSuperstep& t) {
  Balance balance{.fastest = std::numeric_limits<double>::infinity()};
  double sum = 0;
  for (std::size_t i = 0; i < t.instructions.size(); ++i) {
    if (!(t.instructions[i] > 0)) continue;
    const double seconds = t.compute_seconds[i] + t.communication_seconds;
    balance.slowest = std::max(balance.slowest, seconds);
    balance.fastest = std::min(balance.fastest, seconds);
    sum += seconds;
    ++balance.computed;
  }
  if (balance.computed == 0) return {};
  balance.mean = sum / static_cast<double>(balance.computed);
  return balance;
}

bool balanced(const Balance& balance, double d) {
  return balance.computed > 0 && balance.slowest < balance.mean * (1 + d) && balance.fastest > balance.mean * (1 - d);
}

double shared_phase_seconds(std::span<const double> communication_and_edge_seconds) {
  const auto least = std::ranges::min_element(communication_and_edge_seconds);
  return least == communication_and_edge_seconds.end() ? 0 : *least;
}

std::uint64_t least_alpha(const Params& params, std::uint64_t age) {
  return params.first_alpha > 0 ? std::min(params.alpha0, std::max(age, params.first_alpha)) : params.alpha0;
}

std::uint64_t most_alpha(const Params& params, std::uint64_t age) {
  constexpr std::uint64_t kOfAge = 8;
  return params.early_calls ? std::max(params.alpha0, age / kOfAge) : std::numeric_limits<std::uint64_t>::max();
}

Cadence open_cadence(Cadence cadence, const Params& params) {
  if (cadence.alpha == 0) cadence.alpha = least_alpha(params, params.first_alpha);
  if (cadence.d == 0) cadence.d = params.d0;
  if (cadence.k.value == 0) cadence.k = Superstep{1};
  cadence.alpha_next = cadence.alpha;
  return cadence;
}

void adapt_alpha(Cadence& cadence, const Balance& balance, const Params& params) {
  if (balanced(balance, cadence.d)) {
    cadence.alpha_next += 1;
  } else if (cadence.alpha_next > params.alpha0) {
    cadence.alpha_next -= 1;
  }
}

bool call_due(const Cadence& cadence, Superstep completed, std::uint64_t measured, const Params& params) {
  const std::uint64_t least = params.early_calls ? std::min(cadence.alpha, kLeastMeasured) : 1;
  return measured >= least && completed.value >= cadence.k.value + cadence.alpha - 1;
}

Cadence next_cadence(const Cadence& cadence, Superstep completed, bool migrated, const Params& params) {
  Cadence next{.k = Superstep{completed.value + 1},
               .alpha = cadence.alpha_next,
               .alpha_next = cadence.alpha_next,
               .d = cadence.d,
               .gamma = migrated ? 0 : cadence.gamma + 1,
               .elapsed = cadence.elapsed,
               .owed = cadence.owed,
               .taken_back = cadence.taken_back};
  if (next.gamma >= params.omega) {
    if (cadence.d + cadence.d / 2 < 1) next.d = cadence.d + cadence.d / 2;
  } else if (next.gamma == 0 && cadence.d > params.d0) {
    next.d = std::max(params.d0, cadence.d - cadence.d / 2);
  }
  return next;
}

}  // namespace bsp::decide
