#include "operator/reconcile/kernel/prices.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <ranges>

#include "crds/names.h"
#include "operator/decide/explain.h"
#include "operator/reconcile/kernel/rescheduling/gains.h"
#include "operator/reconcile/kernel/status.h"

namespace bsp::reconcile {
namespace {

constexpr double kSame = 0.01;  // of a sum, which counts as no change

bool goes_by_price(const Observed& o) { return o.job.spec.objective.chosen() != crds::ObjectiveType::kTime; }

// Of a slot, an hour; as the decision counts it where it isn't known (decide/auto/price.h).
double price_on(const std::string& name, const Observed& o) {
  double dearest = 0;
  for (const observe::NodeFacts& node : o.nodes) {
    if (node.name == name && node.price > 0) return node.price;
    dearest = std::max(dearest, node.price);
  }
  return dearest > 0 ? dearest : 1;
}

std::string unknown_prices(const Observed& o) {
  std::size_t nodes = 0, unknown = 0;
  std::string wrong;
  for (const observe::NodeFacts& node : o.nodes) {
    if (!std::ranges::contains(o.job.status.epoch->sets, node.set)) continue;
    ++nodes;
    unknown += !(node.price > 0);
    if (!node.wrong_price.empty() && wrong.empty())
      wrong = std::format("; {} of node {} is \"{:.40}\" and no number above 0", names::kAnnotationPrice, node.name,
                          node.wrong_price);
  }
  if (unknown == 0 && wrong.empty()) return "";
  return (unknown == 0 ? "the prices of instance types count" : decide::unpriced_text(unknown, nodes)) + wrong;
}

}  // namespace

bool warn_of_prices(const Observed& o, crds::BspJobStatus& status) {
  if (status.phase != crds::JobPhase::kRunning || !o.job.status.epoch) return false;
  const bool was = is_on(status, kPricesUnknown);
  const std::string unknown = goes_by_price(o) ? unknown_prices(o) : "";
  if (unknown.empty() == !was) return false;
  turn_condition(o, status, kPricesUnknown, !unknown.empty(), unknown.empty() ? "PricesKnown" : "NoPrice",
                 unknown.empty() ? "the job goes by no price that isn't known" : unknown);
  return !unknown.empty();
}

std::optional<double> added_an_hour(const migrate::Wave& wave, const Observed& o) {
  if (!goes_by_price(o) || !was_decided(wave)) return std::nullopt;
  double sum = 0;
  for (const migrate::Move& move : wave.moves) sum += price_on(move.target_node, o) - price_on(move.source_node, o);
  return sum;
}

std::string why_dearer(const migrate::Wave& wave, const Observed& o) {
  if (wave.phase != migrate::Phase::kPreparing || !was_decided(wave)) return "";
  const std::optional<double> now = added_an_hour(wave, o);
  if (now.has_value() != wave.added_an_hour.has_value()) return "spec.objective has changed since it was decided";
  if (!now || *now - *wave.added_an_hour <= kSame * std::max(std::abs(*now), std::abs(*wave.added_an_hour))) return "";
  return std::format(
      "prices have changed since it was decided: the ranks' slots would cost {:+.4g} an hour instead of {:+.4g}", *now,
      *wave.added_an_hour);
}

}  // namespace bsp::reconcile
