#include "operator/observe/message_prices.h"

#include <algorithm>
#include <cmath>

namespace bsp::observe {

void MessagePrices::PerByte::add(double x) {
  if (samples < kKnown) ++samples;
  value += (samples < kKnown ? 1.0 / samples : kWeight) * (x - value);
}

void MessagePrices::add(const decide::MeasuredSuperstep& t, const std::vector<std::string>& sets,
                        const std::vector<std::string>& set_of_rank, const std::vector<std::string>& pod_of_rank,
                        const std::vector<std::span<const decide::Partner>>& partners) {
  const std::size_t ranks = set_of_rank.size();
  if (pod_of_rank.size() != ranks || partners.size() != ranks || t.recv_bytes.rows() != ranks) return;
  per_byte_.resize(ranks);
  for (std::size_t i = 0; i < ranks; ++i) {
    const auto at = std::ranges::find(sets, set_of_rank[i]);
    if (at == sets.end()) continue;
    const auto j = static_cast<std::size_t>(at - sets.begin());
    double all = 0, of_pod = 0;
    for (const decide::Partner& k : partners[i]) {
      if (set_of_rank[k.rank.value] != set_of_rank[i]) continue;
      all += k.bytes;
      if (pod_of_rank[k.rank.value] == pod_of_rank[i]) of_pod += k.bytes;
    }
    const double b = t.recv_bytes[i, j], seconds = t.recv_seconds[i, j];
    if (!(all > 0 && b > 0 && std::isfinite(b) && std::isfinite(seconds))) continue;
    PerByte& per_byte = per_byte_[i];
    if (of_pod >= kOfPod * all) {
      if (!per_byte.in_pod) per_byte = {.in_pod = true};
      per_byte.add(std::max(0.0, seconds - b * kShared.byte) / kShared.message / b);
    } else if (of_pod <= (1 - kOfPod) * all) {
      const double besides = std::max(0.0, seconds - b * kApart.byte);
      if (!per_byte.in_pod || per_byte.samples < kKnown) {
        if (per_byte.in_pod) per_byte = {};
        per_byte.add(besides / apart(set_of_rank[i]).message / b);
      } else if (per_byte.value * b >= kLeastMessages) {
        const double x = std::clamp(besides / (per_byte.value * b), kShared.message, kMost);
        double& message = apart_.try_emplace(set_of_rank[i], x).first->second;
        message += kWeight * (x - message);
      }
    }
  }
}

decide::Price MessagePrices::apart(const std::string& set) const {
  const auto known = apart_.find(set);
  return {.byte = kApart.byte, .message = known == apart_.end() ? kApart.message : known->second};
}

}  // namespace bsp::observe
