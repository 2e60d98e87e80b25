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
  std::unordered_map<std::uint32_t, Number> numbers;
  const auto number_of = [&](std::uint32_t pod) {
    const auto [known, is_new] = numbers.try_emplace(pod, known_);
    known_ += is_new ? 1 : 0;
    return known->second;
  };
  for (const Rank& rank : c.snapshot.ranks) now_.push_back(rank.pod == 0 ? known_++ : number_of(rank.pod));
  const Number with_ranks = known_;
  for (const Processor& p : platform.processors) seat_.push_back(p.pod == 0 ? kNone : number_of(p.pod));
  for (std::uint32_t i = 0; i < on_.size(); ++i)
    if (is_slot_[on_[i].value] != 0) seat_[on_[i].value] = now_[i];
  free_.resize(node_of.size());
  const std::vector<std::uint8_t> taken = taken_slots(on_);
  for (std::uint32_t p = 0; p < seat_.size(); ++p)
    if (taken[p] == 0 && seat_[p] < with_ranks) free_[node_[p]].push_back(seat_[p]);
}

std::vector<std::uint8_t> Pods::taken_slots(std::span<const ProcessorId> on) const {
  std::vector<std::uint8_t> taken(node_.size(), 0);
  for (const ProcessorId p : on) taken[p.value] = is_slot_[p.value];
  return taken;
}

std::vector<Pods::Number> Pods::after(std::span<const ProcessorId> on) const {
  std::vector<std::uint8_t> stays(known_, 0);  // by pod
  for (std::size_t i = 0; i < on.size(); ++i)
    if (on[i] == on_[i]) stays[now_[i]] = 1;
  const std::vector<std::uint8_t> taken = taken_slots(on_);
  std::vector<Number> pods = now_;
  std::vector<std::size_t> next(free_.size(), 0);  // free seat, by node
  for (std::size_t i = 0; i < on.size(); ++i) {
    if (on[i] == on_[i]) continue;
    const std::uint32_t p = on[i].value, node = node_[p];
    if (taken[p] != 0)
      pods[i] = stays[seat_[p]] != 0 ? seat_[p] : known_ + node;
    else
      pods[i] = next[node] < free_[node].size() ? free_[node][next[node]++] : known_ + node;
  }
  return pods;
}

std::vector<Pods::Number> Pods::after(std::span<const std::vector<ProcessorId>> waves) const {
  std::vector<Number> pods = now_;
  std::vector<std::vector<Number>> free = free_;
  for (std::uint32_t w = 0; w < waves.size(); ++w) {
    const std::span<const ProcessorId> before = w == 0 ? on_ : std::span<const ProcessorId>(waves[w - 1]);
    const std::span<const ProcessorId> after = waves[w];
    const std::vector<Number> left = pods;
    std::vector<std::size_t> next(free.size(), 0);
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (after[i] == before[i]) continue;
      const std::uint32_t node = node_[after[i].value];
      pods[i] = next[node] < free[node].size() ? free[node][next[node]++]
                                               : known_ + w * static_cast<Number>(free_.size()) + node;
    }
    if (w + 1 == waves.size()) break;
    for (std::size_t n = 0; n < free.size(); ++n)
      free[n].erase(free[n].begin(), free[n].begin() + static_cast<std::ptrdiff_t>(next[n]));
    for (std::size_t i = 0; i < after.size(); ++i)
      if (after[i] != before[i] && is_slot_[before[i].value] != 0) free[node_[before[i].value]].push_back(left[i]);
    std::vector<std::uint8_t> lives(known_ + (w + 1) * free_.size(), 0);  // by pod
    for (const Number pod : pods) lives[pod] = 1;
    for (std::vector<Number>& seats : free) std::erase_if(seats, [&](Number pod) { return lives[pod] == 0; });
  }
  return pods;
}

}  // namespace bsp::decide
