// A job that runs, for the screens' tests.
#pragma once

#include <format>
#include <string>

#include "operator/screens/words.h"

namespace bsp::screens {

inline const Time kNow = from_rfc3339("2026-11-21T05:00:00Z");

inline Shown a_job(std::uint32_t ranks = 4) {
  Shown shown;
  auto& job = shown.job;
  job.metadata.name = "weather";
  job.metadata.name_space = "science";
  job.metadata.uid = "0b5e";
  job.spec.ranks = ranks;
  auto& s = job.status;
  s.phase = crds::JobPhase::kRunning;
  s.start_time = from_rfc3339("2026-11-21T04:50:00Z");
  s.superstep = Superstep{120};
  s.alpha = 16;
  s.d = 0.25;
  s.ranks_per_set = {{"fast", ranks / 2, ranks}, {"slow", ranks - ranks / 2, ranks}};
  for (std::uint32_t i = 0; i < ranks; ++i) {
    crds::RankPlace place;
    place.rank = RankId{i};
    place.set = i < ranks / 2 ? "fast" : "slow";
    place.node = std::format("{}-{}", place.set, i);
    place.compute_seconds = i < ranks / 2 ? 1 : 2 + 0.001 * i;
    s.ranks.push_back(place);
  }
  return shown;
}

inline crds::RankMigration a_move(std::uint32_t rank, crds::MigrationPhase phase, const char* pausing,
                                  const char* end) {
  crds::RankMigration m;
  m.metadata.name = std::format("weather-w1-r{}", rank);
  m.spec.job = "weather";
  m.spec.rank = RankId{rank};
  m.spec.wave = 1;
  auto& s = m.status;
  s.phase = phase;
  s.source_set = "slow";
  s.target_set = "fast";
  s.wave = 1;
  s.to_epoch = 2;
  s.phase_times = {{crds::MigrationPhase::kPausing, from_rfc3339(pausing)}, {phase, from_rfc3339(end)}};
  s.completion_time = from_rfc3339(end);
  s.pause.total_ms = 250;
  return m;
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

// Everything that moves a cursor, clears a screen or retitles a window begins with one of these.
inline bool has_control(const std::string& text) {
  for (const char c : text)
    if (c != '\n' && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) return true;
  return text.find("\xc2\x9b") != std::string::npos || text.find("\xe2\x80\xae") != std::string::npos;
}

// Clears the screen, retitles the window, hides text by bidirectional overrides, and is no valid UTF-8 at the end.
inline const std::string kHostile =
    "\033[2J\033]0;pwned\007 \xc2\x9b"
    "31m \xe2\x80\xae evil \r\b <b>&\"'\xff\xc3";

// A job in which a tenant has put that wherever it could.
inline Shown hostile_job() {
  Shown shown = a_job(2);
  auto& s = shown.job.status;
  shown.job.metadata.name = shown.job.metadata.name_space = kHostile;
  s.phase = crds::JobPhase::kPending;
  s.reason = s.message = kHostile;
  s.conditions.push_back(
      {.type = kHostile, .status = crds::ConditionStatus::kTrue, .reason = kHostile, .message = kHostile});
  s.restarts.push_back({.attempt = 0, .time = s.start_time, .reason = kHostile, .message = kHostile, .rank = {}});
  for (auto& place : s.ranks) place.set = place.node = place.pod = place.blocked_reason = kHostile;
  s.ranks_per_set = {{kHostile, 2, 2}};
  crds::Decision d;
  d.outcome = d.message = kHostile;
  d.moves.push_back({RankId{0}, kHostile, kHostile, kHostile, 1});
  d.stays.push_back({RankId{1}, kHostile, kHostile});
  d.planned_moves = 1;
  s.last_decision = d;
  for (const auto phase : {crds::MigrationPhase::kSucceeded, crds::MigrationPhase::kRolledBack}) {
    auto m = a_move(0, phase, "2026-11-21T04:55:00Z", "2026-11-21T04:55:01Z");
    m.status.source_set = m.status.target_set = m.status.message = m.status.reason = kHostile;
    shown.migrations.push_back(m);
  }
  return shown;
}

}  // namespace bsp::screens
