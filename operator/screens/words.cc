#include "operator/screens/words.h"

#include <algorithm>
#include <format>
#include <string_view>

#include "crds/stored_status.h"
#include "operator/cli/table.h"
#include "operator/screens/printable.h"

namespace bsp::screens {
namespace {

using cli::age;
using crds::duration_text;
using crds::MigrationPhase;

std::string target_of(const crds::RankMigration& m) {
  if (!m.status.target_set.empty()) return m.status.target_set;
  return m.spec.target_set.empty() ? m.spec.target_node : m.spec.target_set;
}

Time last_time(const crds::RankMigration& m) {
  if (m.status.completion_time != Time{}) return m.status.completion_time;
  return m.status.start_time != Time{} ? m.status.start_time : m.metadata.creation_timestamp;
}

std::string gains(const crds::RankMigrationStatus& s) {
  std::string text;
  if (s.predicted_gain_seconds) text += ", gain predicted " + duration_text(*s.predicted_gain_seconds);
  if (s.realised_gain_seconds)
    text += (s.predicted_gain_seconds ? ", realised " : ", gain ") +
            (s.gain.empty() ? duration_text(*s.realised_gain_seconds) : s.gain);
  return text;
}

}  // namespace

Result<Shown> shown_of(const nlohmann::json& job, const std::vector<nlohmann::json>& migrations) {
  BSP_TRY(crds::BspJob parsed, crds::bsp_job_from_json(job));
  Shown shown{std::move(parsed), {}};
  for (const nlohmann::json& object : migrations)
    if (auto migration = crds::rank_migration_from_json(object);
        migration && migration->spec.job == shown.job.metadata.name)
      shown.migrations.push_back(std::move(*migration));
  return shown;
}

std::string headline(const crds::BspJob& job, Time now) {
  const auto& s = job.status;
  std::string text = job.metadata.name_space.empty() ? "" : job.metadata.name_space + "/";
  text += std::format("{}: {}", job.metadata.name, crds::to_string(s.phase));
  if (s.superstep.value > 0) text += std::format(", superstep {}", s.superstep.value);
  if (s.attempt > 0) text += std::format(", restarts {}", s.attempt);
  if (crds::is_finished(s.phase) && s.completion_time != Time{})
    text += std::format(", ended {} ago", age(s.completion_time, now));
  else if (s.start_time != Time{})
    text += std::format(", started {} ago", age(s.start_time, now));
  return printable(text);
}

std::string result_line(const crds::BspJobStatus& s) {
  std::string text = std::format("moves {}", s.migrations.succeeded);
  std::string others;
  if (s.migrations.rolled_back > 0) others += std::format("{} rolled back", s.migrations.rolled_back);
  if (s.migrations.failed > 0) others += std::format("{}{} failed", others.empty() ? "" : ", ", s.migrations.failed);
  if (!others.empty()) text += std::format(" ({})", others);
  if (s.superstep.value > 0) text = std::format("imbalance {:.1f} %, ", s.imbalance * 100) + text;
  if (s.realised_gain_seconds) text += ", gain " + crds::gain_text(s);
  if (s.pause_seconds) text += ", pause " + duration_text(*s.pause_seconds);
  return text;
}

std::string move_line(const crds::RankMigration& m, Time now) {
  const auto& s = m.status;
  std::string text = std::format("rank {} {}→{}: {} {} ago", m.spec.rank.value, s.source_set, target_of(m),
                                 crds::to_string(s.phase), age(last_time(m), now));
  if (m.spec.wave == 0) text += ", made by hand";
  if (s.phase == MigrationPhase::kSucceeded) {
    text += std::format(", pause {}, {:.1f} MiB", duration_text(s.pause.total_ms / 1000),
                        static_cast<double>(s.bytes) / (1 << 20));
    text += gains(s);
  } else if (!s.message.empty() || !s.reason.empty()) {
    text += ": " + (s.message.empty() ? s.reason : s.message);
  }
  return printable(text);
}

std::vector<const crds::RankMigration*> newest_first(const std::vector<crds::RankMigration>& migrations) {
  std::vector<const crds::RankMigration*> sorted;
  for (const auto& m : migrations) sorted.push_back(&m);
  std::ranges::stable_sort(sorted, [](const auto* a, const auto* b) {
    const bool a_ended = crds::is_finished(a->status.phase), b_ended = crds::is_finished(b->status.phase);
    return a_ended != b_ended ? b_ended : last_time(*a) > last_time(*b);
  });
  return sorted;
}

std::vector<std::string> condition_lines(const std::vector<crds::Condition>& conditions) {
  std::vector<std::string> lines;
  for (const auto& c : conditions)
    if (c.status == crds::ConditionStatus::kTrue && !crds::repeats_the_phase(c.type))
      lines.push_back(printable(std::format("{} ({}): {}", c.type, c.reason, c.message)));
  return lines;
}

}  // namespace bsp::screens
