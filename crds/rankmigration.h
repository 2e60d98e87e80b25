// RankMigration (migbsp.io/v1alpha1): one move of one rank; mirror of crds/rankmigration.yaml.
//
// Made by the operator (one per move of a plan; those of one plan share a wave and one pause) or by
// hand. spec is immutable. The phases are walked by operator/migrate; each phase's start is noted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/ids.h"
#include "crds/meta.h"

namespace bsp::crds {

enum class MigrationPhase {
  kPending,
  kPreparing,  // the target pod comes up and waits
  kPausing,    // the gate: every rank closes its epoch and stops
  kCheckpointing,
  kTransferring,
  kRestoring,
  kResuming,  // the next epoch is committed and being opened
  kSucceeded,
  kRollingBack,  // the old epoch's pods are being continued
  kRolledBack,   // the rank runs where it ran
  kFailed,       // neither: the rank is gone, or the request was wrong
};
constexpr bool is_finished(MigrationPhase p) {
  return p == MigrationPhase::kSucceeded || p == MigrationPhase::kRolledBack || p == MigrationPhase::kFailed;
}

inline constexpr std::string_view kAnyOtherNode = "*";  // as spec.targetNode

struct RankMigrationSpec {
  std::string job;  // BSPJob of the same namespace
  RankId rank;
  std::string target_set;   // this or target_node
  std::string target_node;  // kAnyOtherNode: of the job's Sets, the rank's own if it can be
  std::uint32_t wave = 0;   // moves with one number share one pause; 0: made by hand
  double predicted_gain_seconds = 0;
};

struct PhaseTime {
  MigrationPhase phase = MigrationPhase::kPending;
  Time time{};  // when it began
};

// What one wave cost the program, milliseconds: total = the last rank's arrival at the edge -> the last rank's return from it. The parts
// lie within it, and overlap between ranks.
struct PauseParts {
  double total_ms = 0;
  double gate_ms = 0;   // the last rank's arrival at the edge -> the last rank stopped; close is its end
  double close_ms = 0;  // closing the MPI session, slowest rank
  double dump_ms = 0;
  double transfer_ms = 0;  // overlaps the dump
  double restore_ms = 0;
  double commit_ms = 0;  // writing the epoch
  double open_ms = 0;    // opening the next session, slowest rank
};

struct RankMigrationStatus {
  std::int64_t observed_generation = 0;
  MigrationPhase phase = MigrationPhase::kPending;
  std::string reason;  // CamelCase
  std::string message;
  std::vector<Condition> conditions;
  std::vector<PhaseTime> phase_times;  // in the order they began
  Time start_time{};
  Time completion_time{};
  std::uint32_t wave = 0;
  Superstep superstep;  // the gate's
  std::uint64_t from_epoch = 0;
  std::uint64_t to_epoch = 0;
  std::string source_set;
  std::string source_node;
  std::string source_pod;
  std::string target_set;
  std::string target_node;
  std::string target_pod;
  std::uint64_t bytes = 0;
  PauseParts pause;
  std::optional<double> predicted_gain_seconds;
  std::optional<double> realised_gain_seconds;
  std::optional<double> realised_gain_error_seconds;  // of that, two standard errors
  std::string gain;                                   // both for people: gain_text(); "": not known yet
};

// "3.2 s ± 0.4 s", or "noise, ± 2.1 s" of a gain that can't be told from noise.
std::string gain_text(double seconds, double error, bool is_noise);

struct RankMigration {
  ObjectMeta metadata;
  RankMigrationSpec spec;
  RankMigrationStatus status;
};

void to_json(nlohmann::json& j, const RankMigration& migration);  // with apiVersion and kind
void to_json(nlohmann::json& j, const RankMigrationSpec& spec);
void to_json(nlohmann::json& j, const RankMigrationStatus& status);

Result<RankMigration> rank_migration_from_json(const nlohmann::json& j);
Result<void> validate(const RankMigrationSpec& spec);

constexpr auto names_of(Of<MigrationPhase>) {
  return std::to_array<std::string_view>({"Pending", "Preparing", "Pausing", "Checkpointing", "Transferring",
                                          "Restoring", "Resuming", "Succeeded", "RollingBack", "RolledBack", "Failed"});
}

}  // namespace bsp::crds
