#include "operator/decide/take_back.h"

#include <algorithm>
#include <cmath>

#include "operator/decide/pm.h"

namespace bsp::decide {

bool is_slower_than(const Case& c, double seconds) {
  const double error = std::hypot(c.seconds.error, c.wave.error);
  return c.seconds.mean - seconds > std::max(TakeBack::kSure * error, TakeBack::kLeast * seconds);
}

Verdict judge_wave(const Case& c) {
  Verdict verdict{.measured = c.metrics.supersteps >= TakeBack::kMeasured};
  if (!(c.wave.before > 0)) return verdict;
  verdict.open = !verdict.measured;
  if (verdict.open) return verdict;
  verdict.slower = is_slower_than(c, c.wave.before);
  verdict.open = verdict.slower;  // its slots may be free at a later call
  return verdict;
}

std::optional<std::vector<ProcessorId>> before_last_wave(const Case& c) {
  Superstep last{};
  for (const Rank& rank : c.snapshot.ranks) last = std::max(last, rank.last_move);
  std::vector<ProcessorId> on = c.columns.on;
  std::vector<std::uint32_t> taken = c.columns.held;
  std::uint32_t moves = 0;
  for (std::uint32_t i = 0; i < on.size(); ++i) {
    const Rank& rank = c.snapshot.ranks[i];
    if (last.value == 0 || rank.last_move != last || rank.left.empty()) continue;
    const ProcessorId source = rank.left.back();
    const bool full = taken[source.value] >= c.columns.slots[source.value];
    if (full || why_blocked(c, {i}, c.columns.own[i])) return std::nullopt;
    ++taken[source.value];
    on[i] = source;
    ++moves;
  }
  if (moves == 0 || (c.params.max_moves > 0 && moves > c.params.max_moves)) return std::nullopt;
  return on;
}

}  // namespace bsp::decide
