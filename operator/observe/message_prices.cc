#include "operator/observe/message_prices.h"

#include <algorithm>
#include <cmath>

namespace bsp::observe {
namespace {

// Whether rank i was done before one of its partners was, by more than noise.
bool waits(std::size_t i, std::span<const double> compute_seconds, std::span<const decide::Partner> partners) {
  if (i >= compute_seconds.size()) return false;
  const double own = compute_seconds[i] * (1 + MessagePrices::kUneven);
  return std::ranges::any_of(partners, [&](const decide::Partner& k) {
    return k.rank.value < compute_seconds.size() && compute_seconds[k.rank.value] > own;
  });
}

}  // namespace

void MessagePrices::Ratio::add(double n, double b) {
  if (samples < kKnown) ++samples;
  const double weight = samples < kKnown ? 1.0 / samples : kWeight;
  messages += weight * (n - messages);
  bytes += weight * (b - bytes);
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
    const bool in_pod = of_pod >= kOfPod * all, apart = of_pod <= (1 - kOfPod) * all;
    if (waits(i, t.compute_seconds, partners[i])) {
      if (apart) per_byte_[i].waiting.add(messages_apart(set_of_rank[i], b, seconds), b);
    } else if (in_pod) {
      add_in_pod(per_byte_[i], b, seconds);
    } else if (apart) {
      add_apart(per_byte_[i], set_of_rank[i], b, seconds);
    }
  }
}

double MessagePrices::messages_apart(const std::string& set, double bytes, double seconds) const {
  return std::max(0.0, seconds - bytes * kApart.byte) / apart(set).message;
}

void MessagePrices::add_in_pod(PerByte& per_byte, double bytes, double seconds) {
  if (!per_byte.in_pod) per_byte = {.in_pod = true};
  per_byte.known.add(std::max(0.0, seconds - bytes * kShared.byte) / kShared.message, bytes);
}

void MessagePrices::add_apart(PerByte& per_byte, const std::string& set, double bytes, double seconds) {
  if (!per_byte.in_pod || per_byte.known.samples < kKnown) {
    if (per_byte.in_pod) per_byte = {};
    per_byte.known.add(messages_apart(set, bytes, seconds), bytes);
  } else if (per_byte.known.value() * bytes >= kLeastMessages) {
    const double besides = std::max(0.0, seconds - bytes * kApart.byte);
    const double x = std::clamp(besides / (per_byte.known.value() * bytes), kShared.message, kMost);
    double& message = apart_.try_emplace(set, x).first->second;
    message += kWeight * (x - message);
  }
}

decide::Price MessagePrices::apart(const std::string& set) const {
  const auto known = apart_.find(set);
  return {.byte = kApart.byte, .message = known == apart_.end() ? kApart.message : known->second};
}

}  // namespace bsp::observe
