#include "operator/exchange/maintained.h"

#include <algorithm>
#include <cmath>

namespace bsp::exchange {

Maintained::Maintained(Config config)
    : Protocol(std::move(config)), heard_(config_.members, !config_.initial.empty()), decides_(config_.members, true) {
  heard_[config_.self] = true;
  silent_ = static_cast<std::size_t>(std::ranges::count(heard_, false));
}

void Maintained::start(std::span<const double> own, Output& out) {
  std::ranges::copy(own, view_.row(config_.self).begin());
  if (config_.initial.empty()) broadcast({.kind = Kind::kHello, .id = 1, .loads = {own.begin(), own.end()}}, out);
}

void Maintained::broadcast(Message message, Output& out) const {
  Send send{.to = {}, .message = std::move(message)};
  for (Member m = 0; m < config_.members; ++m)
    if (m != config_.self && decides_[m] && !view_.lost(m)) send.to.push_back(m);
  if (!send.to.empty()) out.sends.push_back(std::move(send));
}

void Maintained::heard(Member from, Output& out) {
  if (heard_[from]) return;
  heard_[from] = true;
  --silent_;
  ready_if_all_heard(out);
}

void Maintained::want_decision(Output& out) {
  if (wanting_) return;
  wanting_ = true;
  ready_if_all_heard(out);
}

void Maintained::ready_if_all_heard(Output& out) {
  if (!wanting_ || silent_ > 0) return;
  wanting_ = false;
  out.ready = true;
}

// Also to members that won't decide again, because they still send loads.
void Maintained::no_more_decisions(Output& out) {
  Send send{.to = {}, .message = {.kind = Kind::kNoMoreMaster}};
  for (Member m = 0; m < config_.members; ++m)
    if (m != config_.self && !view_.lost(m)) send.to.push_back(m);
  if (!send.to.empty()) out.sends.push_back(std::move(send));
}

void Maintained::no_more(Member peer) { decides_[peer] = false; }

void Maintained::lost(Member peer, Output& out) {
  if (view_.lost(peer)) return;
  view_.set_lost(peer);
  heard(peer, out);
}

bool Maintained::exceeds(std::span<const double> changes, double threshold) {
  return std::ranges::any_of(changes, [threshold](double change) { return std::abs(change) > threshold; });
}

}  // namespace bsp::exchange
