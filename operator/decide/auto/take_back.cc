#include "operator/decide/auto/take_back.h"

#include <algorithm>
#include <cmath>

#include "operator/decide/model/pm.h"

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

Judged judged_from(const Case& c, Superstep now, double model) {
  return {.before = c.seconds.before_wave(), .error = c.seconds.error, .model = model, .since = now};
}

std::optional<WayBack> way_back(const Case& c) {
  Superstep since = c.wave.since;
  if (since.value == 0)
    for (const Rank& rank : c.snapshot.ranks) since = std::max(since, rank.last_move);
  std::vector<std::uint32_t> goes;
  for (std::uint32_t i = 0; i < c.snapshot.ranks.size(); ++i) {
    const Rank& rank = c.snapshot.ranks[i];
    const bool moved = rank.last_move.value > 0 && rank.last_move >= since &&
                       (c.wave.until.value == 0 || rank.last_move < c.wave.until);
    if (!moved || rank.left.empty()) continue;
    if (why_blocked(c, {i}, c.columns.own[i])) return std::nullopt;
    goes.push_back(i);
  }
  WayBack back{.first = c.columns.on, .home = c.columns.on};
  std::vector<std::uint32_t> taken = c.columns.held;
  std::uint32_t moves = 0;
  // A slot that a rank leaves is free for the wave after.
  for (int wave = 0; !goes.empty(); ++wave) {
    std::vector<std::uint32_t> left, later;
    for (const std::uint32_t i : goes) {
      const ProcessorId source = c.snapshot.ranks[i].left.back();
      if (taken[source.value] >= c.columns.slots[source.value]) {
        later.push_back(i);
        continue;
      }
      ++taken[source.value];
      left.push_back(back.home[i].value);
      back.home[i] = source;
      if (wave == 0) back.first[i] = source, ++moves;
    }
    if (left.empty()) return std::nullopt;
    for (const std::uint32_t p : left) --taken[p];
    goes = std::move(later);
  }
  if (moves == 0 || (c.params.max_moves > 0 && moves > c.params.max_moves)) return std::nullopt;
  return back;
}

}  // namespace bsp::decide
