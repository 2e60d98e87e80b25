#include "operator/reconcile/kernel/rescheduling/failed_moves.h"

#include <algorithm>
#include <array>
#include <format>

namespace bsp::reconcile {
namespace {

using crds::MigrationPhase;
using std::chrono::minutes;
using std::chrono::seconds;

// A drain is in a hurry, but leaves time for the other ranks' wave to begin without this one (drain.cc).
constexpr seconds kFirstHold{30};

// It was there, and has refused the rank or failed to receive or restore it.
bool came_up(const crds::RankMigration& m) {
  return m.status.reason == "TransferFailed" || m.status.reason == "Refused";
}

// A wave names the targets that did not come up, and the others' ranks need not wait. Of many it names the first; then
// a cause like a quota is common to all.
bool is_of_its_target(const crds::RankMigration& m) {
  const crds::RankMigrationStatus& s = m.status;
  constexpr std::array kReasons{"PrepareTimeout", "TargetLost", "CPUFeaturesDiffer", "RuntimeDiffers"};
  if (s.phase != MigrationPhase::kRolledBack || (!std::ranges::contains(kReasons, s.reason) && !came_up(m)))
    return false;
  return s.message.contains(s.target_pod + " ") || s.message.contains(s.target_pod + "/") ||
         s.message.ends_with(" more") || s.message.contains(" more; ");
}

}  // namespace

FailedMoves::FailedMoves(const Observed& o) : now_(o.now) {
  std::map<std::pair<std::uint32_t, std::string_view>, Time> moved;
  for (const crds::RankMigration& m : o.migrations)
    if (m.status.phase == MigrationPhase::kSucceeded) {
      Time& last = moved[{m.spec.rank.value, m.status.target_set}];
      last = std::max(last, m.status.completion_time);
    }
  for (const crds::RankMigration& m : o.migrations) {
    if (!is_of_its_target(m)) continue;
    const auto since = moved.find({m.spec.rank.value, m.status.target_set});
    if (since != moved.end() && m.status.completion_time <= since->second) continue;
    InSet& failed = failed_[m.spec.rank.value][m.status.target_set];
    if (++failed.count == 1 || failed.last <= m.status.completion_time)
      failed.last = m.status.completion_time, failed.why = m.status.message, failed.came_up = came_up(m);
  }
}

const FailedMoves::BySet& FailedMoves::of(std::uint32_t rank) const {
  static const BySet none;
  const auto it = failed_.find(rank);
  return it == failed_.end() ? none : it->second;
}

const FailedMoves::InSet* FailedMoves::of(std::uint32_t rank, const std::string& set) const {
  const BySet& failed = of(rank);
  const auto it = failed.find(set);
  return it == failed.end() ? nullptr : &it->second;
}

bool FailedMoves::lasts(const InSet& failed, Duration first, Duration most) const {
  const Duration hold = std::min(most, first * (1 << std::min(failed.count - 1, 16u)));
  return std::chrono::abs(now_ - failed.last) < hold;
}

std::vector<std::string> FailedMoves::held_from(std::uint32_t rank) const {
  std::vector<std::string> sets;
  for (const auto& [set, failed] : of(rank))
    if (lasts(failed, minutes(5), minutes(60))) sets.push_back(set);
  return sets;
}

bool FailedMoves::is_held(const InSet& failed) const { return lasts(failed, kFirstHold, minutes(10)); }

std::string FailedMoves::just_failed(std::uint32_t rank) const {
  for (const auto& [set, failed] : of(rank))
    if (lasts(failed, kFirstHold, kFirstHold)) return text_of(failed, set);
  return "";
}

std::string text_of(const FailedMoves::InSet& failed, std::string_view set) {
  const std::string times = failed.count == 1 ? "" : std::format(", {} times", failed.count);
  return std::format("its target in Set {} {}{}: {}", set, failed.came_up ? "failed" : "did not come up", times,
                     failed.why);
}

}  // namespace bsp::reconcile
