#include "operator/exchange/naive.h"

#include <algorithm>

namespace bsp::exchange {

Naive::Naive(Config config) : Maintained(std::move(config)), sent_(config_.resources), versions_(config_.members) {}

void Naive::start(std::span<const double> own, Output& out) {
  Maintained::start(own, out);
  sent_.assign(own.begin(), own.end());
}

void Naive::received(Member from, const Message& message, Output& out) {
  if (view_.lost(from)) return;
  if (message.kind == Kind::kNoMoreMaster) return no_more(from);
  if (message.kind != Kind::kHello && message.kind != Kind::kLoads) return;
  if (message.id <= versions_[from]) return;
  versions_[from] = message.id;
  std::ranges::copy(message.loads, view_.row(from).begin());
  heard(from, out);  // a later value replaces the Hello
}

void Naive::load_changed(std::uint32_t resource, double by, bool /*assigned*/, Output& out) {
  view_.row(config_.self)[resource] += by;
  broadcast_beyond(config_.threshold, out);
}

void Naive::broadcast_beyond(double threshold, Output& out) {
  std::vector<double> changes(own().begin(), own().end());
  for (std::size_t i = 0; i < changes.size(); ++i) changes[i] -= sent_[i];
  if (!exceeds(changes, threshold)) return;
  sent_.assign(own().begin(), own().end());
  broadcast({.kind = Kind::kLoads, .id = ++version_, .loads = sent_}, out);
}

void Naive::decided(std::span<const Assignment> /*assignments*/, Output& /*out*/) {}

void Naive::timer(Output& out) { broadcast_beyond(0, out); }

void Naive::grow(std::uint32_t resources) {
  Maintained::grow(resources);
  sent_.resize(resources);
}

}  // namespace bsp::exchange
