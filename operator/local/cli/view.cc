#include "operator/local/cli/view.h"

#include <algorithm>
#include <cmath>
#include <format>

#include "operator/screens/top.h"

namespace bsp::local {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostBlock = 36;
constexpr std::size_t kRows = 16;  // of a table; the others are only counted

std::string headline(const crds::BspJob& job) {
  const auto& s = job.status;
  std::string sets;
  for (const auto& set : s.ranks_per_set) sets += std::format("  {} {}/{}", set.set, set.ranks, set.slots);
  return std::format("{} superstep {}{}  alpha {}  D {:.3f}  imbalance {:.1f} %  moves {}", crds::to_string(s.phase),
                     s.superstep.value, sets, s.alpha, s.d, 100 * s.imbalance, s.migrations.succeeded);
}

// `all`: how many there are, of which the status has the first.
template <class Rows, class Format>
void table(std::vector<std::string>& lines, const Rows& rows, Format format, std::size_t all = 0) {
  for (std::size_t i = 0; i < std::min(rows.size(), kRows); ++i) lines.push_back(format(rows[i]));
  all = std::max(all, rows.size());
  if (all > kRows) lines.push_back(std::format("    and {} more", all - kRows));
}

}  // namespace

std::vector<std::string> decision_lines(const crds::Decision& d) {
  std::vector<std::string> lines;
  lines.push_back(std::format("{} ({})", d.message, d.outcome));
  if (!d.potentials.empty()) lines.push_back("    PM list   target       Comp/s      Comm/s       Mem/s        PM/s");
  table(lines, d.potentials, [](const crds::PotentialEntry& p) {
    return std::format("    rank {:<4} {:<8} {:>10.4f}  {:>10.4f}  {:>10.4f}  {:>10.4f}", p.rank.value, p.target_set,
                       p.comp, p.comm, p.mem, p.pm);
  });
  table(lines, d.levels, [&](const crds::LevelEntry& level) {
    return std::format("    level {}: pf {:.4f} s{}", level.level, level.pf,
                       d.chosen_level == level.level ? "  <- chosen" : "");
  });
  lines.push_back(std::format("    objective {:.4f} s -> {:.4f} s; alpha {} -> {}, D {:.3f} -> {:.3f}",
                              d.objective_before, d.objective_after, d.alpha, d.alpha_next, d.d, d.d_next));
  auto move_line = [](const crds::MoveEntry& m) {
    return std::format("    rank {} moves: {} -> {} on {}, predicted gain {:.3f} s", m.rank.value, m.from_set, m.to_set,
                       m.to_node, m.predicted_gain_seconds);
  };
  auto stay_line = [](const crds::StayEntry& s) {
    return std::format("    rank {} stays: {}", s.rank.value, s.message.empty() ? s.reason : s.message);
  };
  table(lines, d.moves, move_line, d.planned_moves);
  std::size_t stays = 0;
  for (const crds::StayCount& count : d.stays_by_reason) stays += count.ranks;
  table(lines, d.stays, stay_line, stays);
  return lines;
}

std::string pause_line(const crds::PauseParts& p) {
  return std::format(
      "pause {:.0f} ms: gate {:.0f}, close {:.0f}, dump {:.0f}, transfer {:.0f}, restore {:.0f}, "
      "commit {:.0f}, open {:.0f}",
      p.total_ms, p.gate_ms, p.close_ms, p.dump_ms, p.transfer_ms, p.restore_ms, p.commit_ms, p.open_ms);
}

View::~View() { erase_block(); }

void View::erase_block() {
  if (block_lines_ == 0) return;
  std::fprintf(out_, "\033[%zuA\033[J", block_lines_);
  block_lines_ = 0;
}

void View::say(const std::string& line) {
  erase_block();
  std::fwrite(line.data(), 1, line.size(), out_);  // a program's output may hold a byte 0
  std::fputc('\n', out_);
  if (terminal_) {
    for (const std::string& l : block_) std::fprintf(out_, "%s\n", l.c_str());
    block_lines_ = block_.size();
  }
  std::fflush(out_);
}

void View::draw_block(const crds::BspJob& job, const std::vector<crds::RankMigration>& migrations) {
  cli::ScreenSize size = cli::terminal_size();
  size.lines = std::min(size.lines, kMostBlock);  // what was said stays in sight above it
  block_ = screens::top({job, migrations}, SystemClock::now(), size);
  erase_block();
  for (const std::string& l : block_) std::fprintf(out_, "%s\n", l.c_str());
  block_lines_ = block_.size();
  std::fflush(out_);
}

void View::update(const crds::BspJob& job, const std::vector<crds::RankMigration>& migrations) {
  const auto& s = job.status;
  if (s.last_decision && s.last_decision->time != decision_) {
    decision_ = s.last_decision->time;
    for (const std::string& line : decision_lines(*s.last_decision)) say(line);
  }
  if (const std::string phase(crds::to_string(s.phase)); phase != phase_) {
    phase_ = phase;
    if (s.phase != crds::JobPhase::kMigrating && !s.reason.empty())
      say(std::format("{}: {}", phase, s.message.empty() ? s.reason : s.message));
  }
  for (const crds::RankMigration& m : migrations) {
    std::size_t& shown = phases_shown_[m.metadata.name];
    const auto& times = m.status.phase_times;
    for (; shown < times.size(); ++shown) {
      const double since = shown == 0 ? 0 : to_seconds(times[shown].time - times[0].time);
      const bool last = crds::is_finished(times[shown].phase);
      say(std::format("  {} rank {} {} -> {}: {} at {:.0f} ms{}", m.metadata.name, m.spec.rank.value,
                      m.status.source_set, m.status.target_set.empty() ? m.spec.target_set : m.status.target_set,
                      crds::to_string(times[shown].phase), 1000 * since,
                      last && !m.status.message.empty() ? " (" + m.status.message + ")" : ""));
      if (last && times[shown].phase == crds::MigrationPhase::kSucceeded)
        say(std::format("    {:.1f} MiB, {}", static_cast<double>(m.status.bytes) / (1 << 20),
                        pause_line(m.status.pause)));
    }
    if (m.status.realised_gain_seconds && !gain_shown_[m.metadata.name]) {
      gain_shown_[m.metadata.name] = true;
      say(std::format("  {} rank {}: realised gain {}{}", m.metadata.name, m.spec.rank.value,
                      m.status.gain.empty() ? std::format("{:.3f} s", *m.status.realised_gain_seconds) : m.status.gain,
                      m.status.predicted_gain_seconds
                          ? std::format(", predicted {:.3f} s", *m.status.predicted_gain_seconds)
                          : ""));
    }
  }
  if (crds::is_finished(s.phase)) {
    block_.clear();
    return erase_block();
  }
  const auto now = std::chrono::steady_clock::now();
  if (s.phase != crds::JobPhase::kRunning && s.phase != crds::JobPhase::kMigrating) return;
  if (now < progress_ + (terminal_ ? 200ms : 1000ms)) return;
  if (!terminal_ && s.superstep == superstep_) return;
  progress_ = now;
  superstep_ = s.superstep;
  if (terminal_) return draw_block(job, migrations);
  std::string times;
  for (const auto& place : s.ranks)
    if (s.ranks.size() <= 16) times += std::format(" {}:{:.3f}", place.rank.value, place.compute_seconds);
  say(headline(job) + (times.empty() ? "" : "  computing (s)" + times));
}

}  // namespace bsp::local
