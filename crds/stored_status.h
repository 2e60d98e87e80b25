// BSPJob.status as it is stored: what people read as fields, and everything else as one text, `internal`. So `kubectl
// describe` shows a page, and `kubectl get` has columns.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "crds/bspjob.h"

namespace bsp::crds {

// Only written: derived from other fields, for people.
inline constexpr const char* kInternal = "internal";
// Of `internal`: one more whenever a version that reads the last format would misread the next. A higher one is refused, so an
// older operator leaves the job as it is (operator/reconcile/shell/job/stored_job.h). Before formats were counted: none.
inline constexpr std::uint32_t kStatusFormat = 1;
inline constexpr const char* kSummary = "summary";
inline constexpr const char* kWhy = "why";  // of lastDecision

// Conditions that repeat the phase: of phases that pass, and of the others, for which `kubectl wait` waits.
inline constexpr auto kPassingPhases = std::to_array<std::string_view>({"Starting", "Migrating"});
inline constexpr auto kLastingPhases = std::to_array<std::string_view>({"Running", "Suspended", "Complete", "Failed"});
constexpr bool repeats_the_phase(std::string_view condition) {
  return std::ranges::contains(kPassingPhases, condition) || std::ranges::contains(kLastingPhases, condition);
}

nlohmann::json stored_status(const BspJobStatus& status);
// All fields where they belong, also of a status that an older operator stored. If `internal` was removed: empty, as if
// nothing had been stored, for a job with pods; without ranks and decision for others. kInvalid if it can't be read.
Result<nlohmann::json> whole_status(const nlohmann::json& stored);

// "359 ms", "2.17 s", "4 min 10 s": three significant digits.
std::string duration_text(double seconds);
// The realised gain of a job's waves (rankmigration.h); noise if its error is larger.
std::string gain_text(const BspJobStatus& status);
// What a resize gives a rank, and what its move would cost instead.
std::string resize_text(const ResizeEntry& resize);
// "250m", "2": thousandths of a core as a quantity.
std::string cpu_text(std::uint64_t milli);
// A line for each resize and move of the decision and each reason to stay; at most `most`, and one that counts the other ranks.
std::vector<std::string> why_lines(const Decision& decision, std::size_t most);

}  // namespace bsp::crds
