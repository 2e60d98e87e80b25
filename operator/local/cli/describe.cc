#include "operator/local/cli/describe.h"

#include <algorithm>
#include <format>
#include <nlohmann/json.hpp>

#include "base/core/counted.h"
#include "base/json/fields.h"
#include "crds/stored_status.h"
#include "operator/cli/table.h"
#include "operator/local/cli/resources.h"

namespace bsp::local {
namespace {

using cli::age;
using cli::Table;
using nlohmann::json;

constexpr std::size_t kValueColumn = 18;

class Description {
 public:
  void field(std::string_view name, std::string_view value) {
    out_ += std::format("{:<{}}{}\n", std::format("{}:", name), kValueColumn, value.empty() ? "<none>" : value);
  }
  // Omits an empty value.
  void maybe(std::string_view name, std::string_view value) {
    if (!value.empty()) field(name, value);
  }
  void heading(std::string_view name) { out_ += std::format("{}:\n", name); }
  void line(std::string_view text) { out_ += std::format("  {}\n", text); }
  void table(std::string_view name, const Table& table) {
    if (table.empty()) return field(name, "");
    heading(name);
    out_ += table.text("  ");
  }
  void meta(const crds::ObjectMeta& m, Time now) {
    field("Name", m.name);
    field("Namespace", m.name_space);
    std::string labels;
    for (const auto& [key, value] : m.labels) labels += std::format("{}{}={}", labels.empty() ? "" : ", ", key, value);
    field("Labels", labels);
    field("Created", std::format("{} ({} ago)", to_rfc3339(m.creation_timestamp), age(m.creation_timestamp, now)));
    if (m.deletion_timestamp != Time{}) field("Deleted", age(m.deletion_timestamp, now) + " ago, still terminating");
  }
  void conditions(const std::vector<crds::Condition>& conditions, Time now) {
    Table table({"TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"});
    for (const auto& c : conditions)
      table.add({c.type, std::string(to_string(c.status)), age(c.last_transition_time, now), c.reason, c.message});
    this->table("Conditions", table);
  }
  std::string text() && { return std::move(out_); }

 private:
  std::string out_;
};

std::string number(double value) { return std::format("{:.4g}", value); }
std::string seconds(double value) { return std::format("{:.4f}", value); }
std::string mebibytes(std::uint64_t bytes) { return std::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }
std::string gain(const std::optional<double>& value) { return value ? std::format("{:.3f} s", *value) : "unknown yet"; }
std::string realised(const std::optional<double>& value, const std::optional<double>& error) {
  return value && error ? std::format("{:.3f} s ± {:.2g} s", *value, *error) : gain(value);
}
std::string when(Time t) { return t == Time{} ? "" : to_rfc3339(t); }

void spec_of(Description& d, const crds::BspJobSpec& spec) {
  std::string sets;
  for (const std::string& name : spec.sets.names) sets += std::format("{}{}", sets.empty() ? "" : ", ", name);
  const auto& r = spec.rescheduling;
  d.field("Ranks", std::to_string(spec.ranks));
  if (const json* app = crds::app_container(spec)) d.field("Image", text_at(*app, "image"));
  d.field("Sets", sets.empty() ? std::format("all (label {})", spec.sets.label) : sets);
  d.field("Rescheduling", std::format("{}, {}; first call after {}, D {}, omega {}", to_string(r.mode),
                                      to_string(r.heuristic), counted(r.alpha, "superstep"), number(r.d), r.omega));
  d.field("Superstep ends",
          std::format("at every {}{}", spec.superstep.stride == 1 ? "" : std::format("{}th ", spec.superstep.stride),
                      spec.superstep.call));
}

void ranks_of(Description& d, const crds::BspJobStatus& s) {
  Table sets({"SET", "RANKS", "SLOTS"});
  for (const auto& set : s.ranks_per_set) sets.add({set.set, std::to_string(set.ranks), std::to_string(set.slots)});
  d.table("Ranks per Set", sets);
  Table ranks({"RANK", "SET", "NODE", "POD", "TIME/S", "COMPUTE/S", "MEMORY", "MIGRATABLE"});
  for (const auto& r : s.ranks)
    ranks.add({std::to_string(r.rank.value), r.set, r.node, name_of(r.seat()), seconds(r.time_seconds),
               seconds(r.compute_seconds), mebibytes(r.memory_bytes),
               r.blocked_reason.empty() ? "yes" : "no: " + r.blocked_reason});
  d.table("Ranks' places", ranks);
}

void calibration_of(Description& d, const crds::BspJobStatus& s) {
  Table table({"METRIC", "SET", "TO", "VALUE", "UNIT", "SOURCE", "SAMPLES"});
  for (const auto& f : s.calibration)
    table.add({f.name, f.set, f.to_set, number(f.value), f.unit, std::string(to_string(f.source)),
               std::to_string(f.samples)});
  d.table("Calibration", table);
}

}  // namespace

std::string describe_job(const crds::BspJob& job, const std::vector<std::string>& decision,
                         const std::vector<json>& events, Time now) {
  const crds::BspJobStatus& s = job.status;
  Description d;
  d.meta(job.metadata, now);
  spec_of(d, job.spec);
  d.field("Phase", to_string(s.phase));
  d.maybe("Reason", s.reason);
  d.maybe("Message", s.message);
  d.maybe("Started", when(s.start_time));
  d.maybe("Ended", when(s.completion_time));
  d.field("Superstep", std::to_string(s.superstep.value));
  d.field("Alpha, D", std::format("{}, {}", s.alpha, number(s.d)));
  d.field("Imbalance", std::format("{:.1f} %", s.imbalance * 100));
  const auto& m = s.migrations;
  d.field("Migrations", std::format("{} succeeded, {} rolled back, {} failed, {} under way; {} {}", m.succeeded,
                                    m.rolled_back, m.failed, m.active, m.waves, m.waves == 1 ? "wave" : "waves"));
  d.field("Gain", std::format("predicted {}, realised {}", gain(s.predicted_gain_seconds),
                              realised(s.realised_gain_seconds, s.realised_gain_error_seconds)));
  if (s.pause_seconds) d.field("Pause", crds::duration_text(*s.pause_seconds));
  ranks_of(d, s);
  if (decision.empty())
    d.field("Last decision", "");
  else
    d.heading("Last decision");
  for (const std::string& line : decision) d.line(line);
  calibration_of(d, s);
  if (!s.restarts.empty()) {
    Table restarts({"ATTEMPT", "AGE", "RANK", "REASON", "MESSAGE"});
    for (const auto& r : s.restarts)
      restarts.add({std::to_string(r.attempt), age(r.time, now), r.rank ? std::to_string(r.rank->value) : "", r.reason,
                    r.message});
    d.table("Restarts", restarts);
  }
  d.conditions(s.conditions, now);
  Table list({"TYPE", "REASON", "AGE", "MESSAGE"});
  for (const json& e : events)
    list.add({text_at(e, "type"), text_at(e, "reason"), age(from_rfc3339(last_seen(e)), now), text_at(e, "note")});
  d.table("Events", list);
  return std::move(d).text();
}

std::string describe_migration(const crds::RankMigration& migration, Time now) {
  const crds::RankMigrationStatus& s = migration.status;
  Description d;
  d.meta(migration.metadata, now);
  d.field("Job", migration.spec.job);
  d.field("Rank", std::to_string(migration.spec.rank.value));
  auto place = [](const std::string& set, const std::string& node, const std::string& pod) {
    return node.empty() ? set : std::format("{} (node {}, pod {})", set, node, pod);
  };
  d.field("From", place(s.source_set, s.source_node, s.source_pod));
  d.field("To", s.target_set.empty() ? migration.spec.target_set + migration.spec.target_node
                                     : place(s.target_set, s.target_node, s.target_pod));
  d.field("Phase", to_string(s.phase));
  d.maybe("Reason", s.reason);
  d.maybe("Message", s.message);
  d.field("Wave", s.wave == 0 ? "" : std::to_string(s.wave));
  if (s.superstep.value > 0) d.field("Superstep", std::to_string(s.superstep.value));
  if (s.to_epoch > 0) d.field("Epochs", std::format("{} -> {}", s.from_epoch, s.to_epoch));
  if (s.bytes > 0) d.field("Carried", mebibytes(s.bytes));
  d.field("Gain", std::format("predicted {}, realised {}", gain(s.predicted_gain_seconds),
                              s.gain.empty() ? gain(s.realised_gain_seconds) : s.gain));
  Table phases({"PHASE", "BEGAN", "AFTER/MS"});
  for (const auto& p : s.phase_times)
    phases.add({std::string(to_string(p.phase)), to_rfc3339(p.time),
                std::format("{:.1f}", to_seconds(p.time - s.phase_times.front().time) * 1e3)});
  d.table("Phases", phases);
  if (const auto& p = s.pause; p.total_ms > 0) {
    Table pause({"PAUSE/MS", "GATE", "CLOSE", "DUMP", "TRANSFER", "RESTORE", "COMMIT", "OPEN"});
    std::vector<std::string> row;
    for (const double ms :
         {p.total_ms, p.gate_ms, p.close_ms, p.dump_ms, p.transfer_ms, p.restore_ms, p.commit_ms, p.open_ms})
      row.push_back(std::format("{:.1f}", ms));
    pause.add(row);
    d.table("Pause", pause);
  }
  d.conditions(s.conditions, now);
  return std::move(d).text();
}

}  // namespace bsp::local
