#include "sim/heard.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "operator/decide/auto/partners.h"

namespace bsp::sim {

HeardOf::HeardOf(std::size_t ranks, std::size_t sets)
    : bytes_(decide::Heard::is_for(ranks, sets) ? ranks : 0), sampled_(bytes_.size()) {}

void HeardOf::add(const Demand& demand, double now) {
  if (bytes_.empty()) return;
  for (const Message& m : demand.messages) bytes_[m.to.value][m.from.value] += m.bytes;
  ++supersteps_;
  if (!std::has_single_bit(++epoch_) && now - sampled_at_ < kPeriod) return;
  sampled_at_ = now;
  sample();
}

void HeardOf::sample() {
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    std::vector<decide::Partner> heaviest;
    for (auto& [from, bytes] : bytes_[i]) {
      heaviest.push_back({.rank = {from}, .bytes = std::floor(bytes / supersteps_)});
      bytes /= 2;
    }
    std::erase_if(bytes_[i], [](const auto& from) { return from.second < 1; });
    std::ranges::sort(heaviest, {}, [](const decide::Partner& k) { return std::pair(-k.bytes, k.rank); });
    if (heaviest.size() > decide::kMostPartners) heaviest.resize(decide::kMostPartners);
    if (!heaviest.empty()) sampled_[i] = std::move(heaviest);
  }
  supersteps_ /= 2;
}

void HeardOf::report(std::span<decide::Rank> ranks) const {
  for (std::size_t i = 0; i < sampled_.size(); ++i) ranks[i].partners = sampled_[i];
}

}  // namespace bsp::sim
