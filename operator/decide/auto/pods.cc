#include "operator/decide/auto/pods.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace bsp::decide {

Pods::Pods(const Case& c) : on_(c.columns.on) {
  const Platform& platform = c.snapshot.platform;
  if (platform.shared.empty()) return;
  std::unordered_map<std::string_view, std::uint32_t> node_of;
  for (const Processor& p : platform.processors) {
    node_.push_back(node_of.try_emplace(p.name, static_cast<std::uint32_t>(node_of.size())).first->second);
    is_slot_.push_back(p.slots == 1);
  }
  nodes_ = static_cast<std::uint32_t>(node_of.size());
  std::unordered_map<std::uint32_t, Number> numbers;
  const auto number_of = [&](std::uint32_t pod) {
    const auto [known, is_new] = numbers.try_emplace(pod, known_);
    known_ += is_new ? 1 : 0;
    return known->second;
  };
  for (const Rank& rank : c.snapshot.ranks) now_.push_back(rank.pod == 0 ? known_++ : number_of(rank.pod));
  for (const Processor& p : platform.processors) seat_.push_back(p.pod == 0 ? kNone : number_of(p.pod));
  for (std::uint32_t i = 0; i < on_.size(); ++i)
    if (is_slot_[on_[i].value] != 0) seat_[on_[i].value] = now_[i];
}

// One wave. `seat`, by processor, and `pods`, by rank, are as they were before it.
void Pods::go(std::span<const ProcessorId> before, std::span<const ProcessorId> after, std::uint32_t wave,
              std::span<const Number> seat, std::vector<Number>& pods) const {
  std::vector<std::uint8_t> stays(known_ + wave * nodes_, 0);  // by pod
  for (std::size_t i = 0; i < after.size(); ++i)
    if (after[i] == before[i]) stays[pods[i]] = 1;
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (after[i] == before[i]) continue;
    const std::uint32_t p = after[i].value;
    pods[i] = seat[p] != kNone && stays[seat[p]] != 0 ? seat[p] : known_ + wave * nodes_ + node_[p];
  }
}

std::vector<Pods::Number> Pods::after(std::span<const ProcessorId> on) const {
  std::vector<Number> pods = now_;
  go(on_, on, 0, seat_, pods);
  return pods;
}

std::vector<Pods::Number> Pods::after(std::span<const std::vector<ProcessorId>> waves) const {
  std::vector<Number> pods = now_, seat = seat_;
  for (std::uint32_t w = 0; w < waves.size(); ++w) {
    const std::span<const ProcessorId> before = w == 0 ? on_ : std::span<const ProcessorId>(waves[w - 1]);
    go(before, waves[w], w, seat, pods);
    for (std::size_t i = 0; i < pods.size(); ++i)
      if (is_slot_[waves[w][i].value] != 0) seat[waves[w][i].value] = pods[i];
  }
  return pods;
}

}  // namespace bsp::decide
