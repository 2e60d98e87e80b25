#include "operator/exchange/increments.h"

#include <algorithm>
#include <utility>

namespace bsp::exchange {

Increments::Increments(Config config)
    : Maintained(std::move(config)), unsent_(config_.resources), carried_(config_.members, config_.resources) {
  if (!config_.carried.empty()) carried_ = view_;
}

void Increments::received(Member from, const Message& message, Output& out) {
  if (view_.lost(from)) return;
  switch (message.kind) {
    case Kind::kHello:
    case Kind::kLoads:
      for (std::uint32_t r = 0; r < config_.resources; ++r) view_.row(from)[r] += message.loads[r];
      if (message.kind != Kind::kHello) return;
      // A Hello has the member's whole load, so earlier knowledge no longer counts.
      for (std::uint32_t r = 0; r < config_.resources; ++r)
        view_.row(from)[r] -= std::exchange(carried_.row(from)[r], 0.0);
      heard(from, out);
      return;
    case Kind::kReserve:
      for (const Assignment& a : message.assignments) view_.add(a);
      return;
    case Kind::kNoMoreMaster:
      return no_more(from);
    case Kind::kStart:
    case Kind::kAnswer:
    case Kind::kEnd:
      return;  // from another mechanism
  }
}

void Increments::load_changed(std::uint32_t resource, double by, bool assigned, Output& out) {
  if (assigned && by > 0) return;  // the reservation counts it
  view_.row(config_.self)[resource] += by;
  unsent_[resource] += by;
  broadcast_beyond(config_.threshold, out);
}

void Increments::broadcast_beyond(double threshold, Output& out) {
  if (!exceeds(unsent_, threshold)) return;
  broadcast({.kind = Kind::kLoads, .loads = unsent_}, out);
  std::ranges::fill(unsent_, 0.0);
}

void Increments::decided(std::span<const Assignment> assignments, Output& out) {
  if (assignments.empty()) return;
  std::vector<bool> receives(config_.members);
  for (const Assignment& a : assignments) {
    view_.add(a);
    receives[a.to] = true;
  }
  Send send{.to = {}, .message = {.kind = Kind::kReserve, .assignments = {assignments.begin(), assignments.end()}}};
  for (Member m = 0; m < config_.members; ++m)
    if (m != config_.self && !view_.lost(m) && (decides(m) || receives[m])) send.to.push_back(m);
  if (!send.to.empty()) out.sends.push_back(std::move(send));
}

void Increments::timer(Output& out) { broadcast_beyond(0, out); }

void Increments::grow(std::uint32_t resources) {
  Maintained::grow(resources);
  unsent_.resize(resources);
  carried_.grow(resources);
}

}  // namespace bsp::exchange
