#include "operator/reconcile/kernel/seats/postponed_moves.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <format>
#include <set>
#include <string_view>
#include <vector>

namespace bsp::reconcile {
namespace {

using crds::MigrationPhase;
using std::chrono::minutes;

constexpr std::string_view kBond = "(MPI_COMM_TYPE_SHARED)";  // in the shim's reason (windows.cc)
constexpr std::string_view kRank = "rank ";

// What a wave's end says about one of them.
struct Blocked {
  std::uint32_t rank = 0;
  std::string_view why;
};

// Of "rank 3: why, rank 5: why, and 2 more" (Machine::blocked). `more`: it ends so.
std::vector<Blocked> blocked_in(std::string_view text, bool& more) {
  std::vector<Blocked> blocked;
  std::size_t why_from = 0;
  const auto end_at = [&](std::size_t at) {
    if (!blocked.empty()) blocked.back().why = text.substr(why_from, at - why_from);
  };
  for (std::size_t at = text.find(kRank); at != std::string_view::npos; at = text.find(kRank, at + 1)) {
    if (at != 0 && !text.substr(0, at).ends_with(", ") && !(blocked.empty() && text.substr(0, at).ends_with(": ")))
      continue;
    std::uint32_t rank = 0;
    const char* const end = text.data() + text.size();
    const auto [after, error] = std::from_chars(text.data() + at + kRank.size(), end, rank);
    if (error != std::errc{} || !std::string_view(after, end).starts_with(": ")) continue;
    end_at(at >= 2 ? at - 2 : at);
    blocked.push_back({rank, {}});
    why_from = static_cast<std::size_t>(after - text.data()) + 2;
  }
  const std::size_t tail = text.rfind(", and ");
  more = tail != std::string_view::npos && tail >= why_from && text.ends_with(" more");
  end_at(more ? tail : text.size());
  return blocked;
}

// A wave that was postponed, or that succeeded.
struct Ended {
  Time time{};
  std::set<std::uint32_t> moved;
  std::string_view message;
};
using Waves = std::map<std::uint32_t, Ended>;  // by number

Waves waves_of(const Observed& o, auto&& counts) {
  Waves waves;
  for (const crds::RankMigration& m : o.migrations) {
    if (!counts(m.status)) continue;
    Ended& wave = waves[m.status.wave];
    wave.time = std::max(wave.time, m.status.completion_time);
    wave.moved.insert(m.spec.rank.value);
    wave.message = m.status.message;
  }
  return waves;
}

// Each rank of a pod shares memory with its others.
void add_those_beside(std::set<std::uint32_t>& ranks, const crds::RankPlaces& places) {
  std::set<std::string_view> pods;
  for (const crds::RankPlace& place : places)
    if (ranks.contains(place.rank.value)) pods.insert(place.pod);
  for (const crds::RankPlace& place : places)
    if (pods.contains(place.pod)) ranks.insert(place.rank.value);
}

// Some of them have gone, and others have not: they have parted.
bool parts(const Ended& wave, const std::set<std::uint32_t>& ranks) {
  const auto moved = std::ranges::count_if(ranks, [&](std::uint32_t rank) { return wave.moved.contains(rank); });
  return moved != 0 && static_cast<std::size_t>(moved) != ranks.size();
}

}  // namespace

PostponedMoves::PostponedMoves(const Observed& o) : now_(o.now) {
  const auto is_postponed = [](const crds::RankMigrationStatus& s) {
    return s.phase == MigrationPhase::kRolledBack && s.reason == "Postponed";
  };
  const Waves postponed = waves_of(o, is_postponed);
  if (postponed.empty()) return;
  const Waves succeeded =
      waves_of(o, [](const crds::RankMigrationStatus& s) { return s.phase == MigrationPhase::kSucceeded; });
  const auto note = [](Hold& hold, const Ended& wave, std::string_view why) {
    ++hold.count;
    if (hold.count == 1 || hold.last <= wave.time) hold.last = wave.time, hold.why = why;
  };
  for (const auto& [number, wave] : postponed) {
    bool more = false;
    const std::vector<Blocked> blocked = blocked_in(wave.message, more);
    if (blocked.empty()) continue;
    std::set<std::uint32_t> named;
    for (const Blocked& one : blocked) named.insert(one.rank);
    const auto other = std::ranges::find_if(blocked, [](const Blocked& one) { return !one.why.contains(kBond); });
    const bool is_bond = other == blocked.end();
    const bool gone = std::ranges::any_of(succeeded, [&](const auto& later) {
      return later.second.time > wave.time && (!is_bond || parts(later.second, named));
    });
    if (gone) continue;
    if (!is_bond) {
      note(everyone_, wave, other->why);
      continue;
    }
    if (more) add_those_beside(named, o.job.status.ranks);
    for (const std::uint32_t rank : named) note(bonds_[rank], wave, blocked.front().why);
  }
}

std::string PostponedMoves::text_of(const Hold& hold) const {
  if (hold.count == 0) return "";
  const Duration pause = std::min<Duration>(minutes(60), minutes(5) * (1 << std::min(hold.count - 1, 16u)));
  if (std::chrono::abs(now_ - hold.last) >= pause) return "";
  const std::string times = hold.count == 1 ? "" : std::format(", {} times", hold.count);
  return std::format("its last move was postponed for too long{}: {}", times, hold.why);
}

std::string PostponedMoves::of(std::uint32_t rank) const {
  const auto bond = bonds_.find(rank);
  if (std::string why = bond == bonds_.end() ? "" : text_of(bond->second); !why.empty()) return why;
  return text_of(everyone_);
}

}  // namespace bsp::reconcile
