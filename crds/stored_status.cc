#include "crds/stored_status.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <format>

#include "base/core/counted.h"
#include "base/json/fields.h"
#include "crds/fields.h"
#include "crds/rank_groups.h"
#include "crds/rankmigration.h"
#include "crds/reflect.h"

namespace bsp::crds {
namespace {

using nlohmann::json;

constexpr auto kShown = std::to_array<std::string_view>(
    {"observedGeneration", "phase", "reason", "message", "conditions", "startTime", "completionTime", "attempt",
     "restarts", "superstep", "ranks", "lastDecision", "checkpoint"});
constexpr auto kShownOfCheckpoint = std::to_array<std::string_view>({"superstep", "time", "message"});
constexpr auto kShownOfRanks = std::to_array<std::string_view>({"place", "blockedReason"});
constexpr auto kShownOfDecision = std::to_array<std::string_view>({"superstep", "message"});
constexpr const char* kHiddenConditions = "phaseConditions";
constexpr const char* kFormat = "format";
constexpr std::size_t kWhyLines = 4;
// Of what an API server stores, nothing is refused.
constexpr JsonLimits kInternalLimits{.bytes = 4 << 20, .values = 1 << 20, .depth = 32};

// Moves all but the shown members to the result.
template <std::size_t N>
json take_hidden(json& object, const std::array<std::string_view, N>& shown) {
  json hidden = json::object();
  for (auto it = object.begin(); it != object.end();) {
    if (std::ranges::contains(shown, std::string_view(it.key()))) {
      ++it;
    } else {
      hidden[it.key()] = std::move(it.value());
      it = object.erase(it);
    }
  }
  return hidden;
}

template <std::size_t N>
void hide(json& status, const char* field, const std::array<std::string_view, N>& shown, json& hidden) {
  if (const auto it = status.find(field); it != status.end()) hidden[field] = take_hidden(*it, shown);
}

void hide_conditions(json& stored, json& hidden) {
  const auto conditions = stored.find("conditions");
  if (conditions == stored.end()) return;
  auto& list = conditions->get_ref<json::array_t&>();
  // A false one says nothing that its absence doesn't.
  std::erase_if(list, [](const json& c) { return text_at(c, "status") == "False"; });
  const auto phases = std::ranges::stable_partition(
      list, [](const json& c) { return !std::ranges::contains(kPassingPhases, text_at(c, "type")); });
  for (json& condition : phases) hidden[kHiddenConditions].push_back(std::move(condition));
  list.erase(phases.begin(), phases.end());
  if (list.empty()) stored.erase(conditions);
}

// JSON in JSON would escape every quotation mark, so the two kinds of them change places.
std::string swap_quotes(std::string text) {
  for (char& c : text)
    if (c == '"' || c == '\'') c = c == '"' ? '\'' : '"';
  return text;
}

// By the times that are stored, so that the next leader says the same.
std::string slowest_of(const json& stored, const RankPlaces& places) {
  std::string slowest;
  double most = 0;
  for (const auto& [seconds, ranks] : part_at(part_at(stored, "ranks"), "computeSeconds").items())
    if (const double time = std::strtod(seconds.c_str(), nullptr); time > most) {
      most = time;
      slowest = ranks.get<std::string>();
    }
  if (most == 0) return "";
  const std::size_t rank = std::strtoul(slowest.c_str(), nullptr, 10);  // the first of "3-5,8"
  return std::format("rank {} on {} computes {} a superstep", rank, places.at(rank).set, duration_text(most));
}

std::string moves_of(const MigrationCounters& m) {
  std::string text = std::to_string(m.succeeded);
  if (m.rolled_back > 0) text += std::format(", {} rolled back", m.rolled_back);
  if (m.failed > 0) text += std::format(", {} failed", m.failed);
  return text;
}

// The columns of `kubectl get`, and what a person wants to know first.
json summary_of(const BspJobStatus& status, const json& stored) {
  json summary = {{"moves", moves_of(status.migrations)}};
  if (status.phase == JobPhase::kMigrating) summary["wave"] = text_at(status.wave_state, "phase");
  std::string ranks;
  for (const SetRanks& set : status.ranks_per_set)
    ranks += std::format("{}{} {}/{}", ranks.empty() ? "" : " ", set.set, set.ranks, set.slots);
  if (!ranks.empty()) summary["ranks"] = ranks;
  if (status.superstep.value > 0) summary["imbalance"] = std::format("{:.1f} %", status.imbalance * 100);
  if (status.realised_gain_seconds) summary["gain"] = gain_text(status);
  if (status.pause_seconds) summary["pause"] = duration_text(*status.pause_seconds);
  if (const std::string slowest = slowest_of(stored, status.ranks); !slowest.empty()) summary["slowest"] = slowest;
  if (const auto& edge = status.superstep_edge)
    summary["superstepEnds"] = edge->stride > 1 ? std::format("at {} of {}", counted(edge->stride, "call"), edge->call)
                                                : "at each " + edge->call;
  return summary;
}

}  // namespace

std::string gain_text(const BspJobStatus& status) {
  const double gain = status.realised_gain_seconds.value_or(0), error = status.realised_gain_error_seconds.value_or(0);
  return gain_text(gain, error, std::abs(gain) < error);
}

std::string duration_text(double seconds) {
  const double size = std::abs(seconds);
  if (size == 0) return "0 s";
  if (size >= 3600) return std::format("{:.0f} h {:.0f} min", std::trunc(seconds / 3600), std::fmod(size, 3600) / 60);
  if (size >= 120) return std::format("{:.0f} min {:.0f} s", std::trunc(seconds / 60), std::fmod(size, 60));
  if (size >= 1) return std::format("{:.3g} s", seconds);
  return size >= 1e-3 ? std::format("{:.3g} ms", seconds * 1e3) : std::format("{:.2g} ms", seconds * 1e3);
}

std::string cpu_text(std::uint64_t milli) {
  return milli % 1000 == 0 ? std::to_string(milli / 1000) : std::format("{}m", milli);
}

std::string resize_text(const ResizeEntry& r) {
  const std::string instead =
      r.move_seconds ? std::format("; a move to {} would cost a pause of {}", r.move_to, duration_text(*r.move_seconds))
                     : "";
  return std::format("rank {} gets a CPU limit of {} instead of {} on {}, without a pause: superstep {} → {}{}",
                     r.rank.value, cpu_text(r.to_milli), cpu_text(r.from_milli), r.node,
                     duration_text(r.superstep_before), duration_text(r.superstep_after), instead);
}

std::vector<std::string> why_lines(const Decision& d, std::size_t most) {
  std::vector<std::string> lines;
  for (const ResizeEntry& r : d.resizes) lines.push_back(resize_text(r));
  for (const MoveEntry& m : d.moves)
    lines.push_back(std::format("rank {} moves {}→{} on {}, predicted gain {}", m.rank.value, m.from_set, m.to_set,
                                m.to_node, duration_text(m.predicted_gain_seconds)));
  std::vector<std::size_t> ranks(lines.size(), 1);  // that each line names, but for those that stay and are resized
  std::ranges::fill_n(ranks.begin(), static_cast<std::ptrdiff_t>(d.resizes.size()), 0);
  std::map<std::string, std::vector<std::size_t>> by_reason;
  for (const StayEntry& s : d.stays) by_reason[s.message.empty() ? s.reason : s.message].push_back(s.rank.value);
  for (const auto& [reason, those] : by_reason) {
    lines.push_back(std::format("{} {} {}: {}", those.size() == 1 ? "rank" : "ranks", runs_of(those),
                                those.size() == 1 ? "stays" : "stay", reason));
    ranks.push_back(those.size());
  }
  std::size_t others = d.planned_moves;
  for (const StayCount& count : d.stays_by_reason) others += count.ranks;
  const std::size_t shown = lines.size() <= most ? lines.size() : most - 1;
  for (std::size_t i = 0; i < shown; ++i) others -= std::min(others, ranks[i]);
  lines.resize(shown);
  if (others > 0) lines.push_back("and " + counted(others, "more rank"));
  return lines;
}

json stored_status(const BspJobStatus& status) {
  json stored = reflect::write(status);
  json summary = summary_of(status, stored);
  json hidden = take_hidden(stored, kShown);
  hide_conditions(stored, hidden);
  hide(stored, "ranks", kShownOfRanks, hidden);
  hide(stored, "lastDecision", kShownOfDecision, hidden);
  hide(stored, "checkpoint", kShownOfCheckpoint, hidden);
  if (status.last_decision)
    if (auto lines = why_lines(*status.last_decision, kWhyLines); !lines.empty())
      stored["lastDecision"][kWhy] = std::move(lines);
  if (status.attempt == 0) stored.erase("attempt");
  if (status.phase == JobPhase::kRunning)  // "every rank runs"
    if (const auto message = stored.find("message"); message != stored.end()) {
      hidden["message"] = std::move(*message);
      stored.erase(message);
    }
  hidden[kFormat] = kStatusFormat;
  stored[kSummary] = std::move(summary);
  stored[kInternal] = swap_quotes(hidden.dump());
  return stored;
}

namespace {
// All that a job needs to go on is gone, and what is left would contradict what runs. A job that has ended needs nothing.
bool lacks_its_core(const json& stored) {
  const std::string phase = text_at(stored, "phase");
  const bool placed = phase == to_string(JobPhase::kStarting) || phase == to_string(JobPhase::kRunning) ||
                      phase == to_string(JobPhase::kMigrating);
  return placed && (stored.contains(kSummary) || !(stored.contains("ranks") || stored.contains("epoch")));
}

// What is shown of ranks and decision can't be read without the hidden rest.
json without_its_internal_part(const json& stored) {
  if (lacks_its_core(stored)) return json::object();
  json rest = stored;
  if (rest.erase(kSummary) > 0)
    for (const char* field : {"ranks", "lastDecision", "checkpoint"}) rest.erase(field);
  return rest;
}
}  // namespace

Result<json> whole_status(const json& stored) {
  const auto internal = stored.is_object() ? stored.find(kInternal) : stored.end();
  if (!stored.is_object()) return stored;
  // Absent it would be Pending, and whatever runs would be begun again.
  const auto phase_is_missing = [&] {
    return fail(ErrorCode::kInvalid,
                "status.phase: is not there, but the job has begun; the operator always writes it");
  };
  const bool has_phase = part_at(stored, "phase").is_string();
  if (internal == stored.end() && !has_phase && !stored.contains(kSummary) &&
      (stored.contains("ranks") || stored.contains("epoch")))
    return phase_is_missing();
  if (internal == stored.end()) return without_its_internal_part(stored);
  if (!internal->is_string())
    return fail(ErrorCode::kInvalid,
                std::format("status.internal: must be a string, not {}", reflect::type_name(*internal)));
  auto whole = parse_bounded(swap_quotes(internal->get<std::string>()), kInternalLimits);
  if (!whole || !whole->is_object())
    return fail(ErrorCode::kInvalid,
                std::format("status.internal: only the operator writes it, and it can't be read: {}",
                            whole ? "not an object" : whole.error().message));
  if (const auto format = whole->find(kFormat); format != whole->end()) {
    const auto number = whole_number<std::uint32_t>(*format);
    if (!number || *number > kStatusFormat)
      return fail(ErrorCode::kInvalid,
                  std::format("status.internal: its format is {}, and this version reads formats up to {}",
                              format->dump(), kStatusFormat));
    whole->erase(format);
  }
  if (!has_phase) return phase_is_missing();
  json shown = stored;
  shown.erase(kInternal);
  shown.erase(kSummary);
  whole->merge_patch(shown);
  const auto phases = whole->find(kHiddenConditions);
  if (phases == whole->end() || !phases->is_array()) return whole;
  json& conditions = *whole->emplace("conditions", json::array()).first;
  if (!conditions.is_array()) return whole;  // whoever reads it names the field
  for (const json& condition : *phases) conditions.push_back(condition);
  return whole;
}

}  // namespace bsp::crds
