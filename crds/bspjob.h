// BSPJob (migbsp.io/v1alpha1): the C++ mirror of crds/bspjob.yaml; tests/unit/crds compares the two.
//
// spec is written by the user (and completed with the defaults below), status only by the operator.
// Everything the operator must know after a restart is in status: `epoch` says who is where and which
// pod may run a rank (writing it is THE commit point of a migration), `rescheduler` continues the
// decision state. Symbols (alpha, D, PM, pf, …) are those of operator/decide/README.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "base/core/ids.h"
#include "crds/choices.h"
#include "crds/meta.h"
#include "crds/names.h"
#include "crds/places.h"
#include "crds/rank_groups.h"
#include "crds/sets/checkpoint.h"

namespace bsp::crds {

// --- spec ------------------------------------------------------------------------------------------
enum class ReschedulingMode { kMigrate, kAdvise, kOff };  // Advise: decide and report, never move
// Whether a rank that its own CPU limit holds back gets more CPU where it is, rather than moving (operator/reconcile/kernel/resize).
enum class Resize { kOff, kAuto };
enum class CleanPodPolicy { kAll, kRunning, kNone };
// Who makes a start all or nothing: the operator, which reserves the slots of all ranks first, or the cluster's scheduler by a
// PodGroup (operator/reconcile/kernel/start/gang.h).
enum class Gang { kReserve, kPodGroup, kSchedulerPlugins, kVolcano };

// With which CPU features the ranks start: those of the CPU that each starts on, or those that all of the job's Sets have.
enum class CpuLevel { kNative, kCommon };

struct SetsSpec {
  std::string label = "migbsp.io/set";  // node label whose value names the node's Set
  std::vector<std::string> names;       // the Sets to use, in this order; empty: every Set found, by name
};

// All but heuristic, alpha and d may change while the job exists.
struct ReschedulingSpec {
  ReschedulingMode mode = ReschedulingMode::kMigrate;
  Heuristic heuristic = Heuristic::kAuto;
  std::uint32_t alpha = 10;  // supersteps to the first rescheduling call, >= 1
  double d = 0.5;            // tolerated distance from the mean time, 0 < d < 1
  std::uint32_t omega = 3;   // calls without a migration after which D grows
  double delta = 0.1;        // tolerated prediction error, instructions (ratio)
  double beta = 0.1;         // tolerated prediction error, bytes (ratio)
  double x = 0.8;            // Percentage: candidates have PM >= x * MAX(PM)
  Horizon horizon = Horizon::kWindow;
  std::uint64_t expected_supersteps = 0;  // of the whole job; 0: unknown, Auto then goes by its age
  double min_gain = 0.0;                  // least fraction of the objective that a plan must save to be carried out
  std::uint32_t cooldown_supersteps = 0;  // a moved rank stays at least this long
  std::uint32_t max_moves_per_wave = 0;   // 0: no limit
  Resize resize = Resize::kOff;
};

// What the moves of heuristic Auto are for. May change while the job exists.
struct ObjectiveSpec {
  std::optional<ObjectiveType> type;  // not set: Deadline if there is one, else Time
  std::string deadline;       // Deadline: how long after its start the job is to have ended, such as 2h; else ""
  double max_slowdown = 0.1;  // Price: how much longer the job may take than in the shortest time (ratio)

  [[nodiscard]] ObjectiveType chosen() const {
    return type.value_or(deadline.empty() ? ObjectiveType::kTime : ObjectiveType::kDeadline);
  }
};

struct SuperstepSpec {
  std::string call{names::kEdgeAuto};  // world collective that ends a superstep; Auto: the ranks find one that recurs
  std::uint32_t stride = 1;            // every how many of those calls, >= 1; of a named call only
};

struct SidecarSpec {
  // Requests and limits of each container that the operator adds (ResourceRequirements of core/v1); null: the operator's default.
  nlohmann::json resources;
};

struct SchedulingSpec {
  Gang gang = Gang::kReserve;
};

struct RunPolicy {
  std::uint32_t backoff_limit = 3;  // restarts of the whole job
  std::optional<std::uint64_t> ttl_seconds_after_finished;
  std::optional<std::uint64_t> active_deadline_seconds;
  // Which pods go when the job ends. Running: those with a container that has not ended, of which the program's gets no
  // time for it and others half a minute.
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::kRunning;
  bool suspend = false;
  // Of jobs that wait for slots, the one with the highest starts first; of equals the oldest.
  std::int64_t priority = 0;
  // How long evictions are refused on a node that is drained while its ranks can't move away.
  std::uint64_t drain_timeout_seconds = 600;
  // RankMigrations that have ended and stay; the oldest beyond them are deleted.
  std::uint32_t migration_history_limit = 100;
};

// How many ranks share a pod at most, each in a container of its own.
struct RanksPerPod {
  static constexpr std::uint32_t kAuto = UINT32_MAX;       // as many as its node has slots for; "Auto"
  static constexpr std::uint32_t kUnset = UINT32_MAX - 1;  // Auto, if may_share_pods(), else 1
  std::uint32_t most = kUnset;
  [[nodiscard]] bool is_unset() const { return most == kUnset; }

  using Plain = std::uint32_t;
  using Packed = std::string;
  static bool is_plain(const nlohmann::json& stored) { return stored.is_number(); }
  operator Plain&() { return most; }  // NOLINT(google-explicit-constructor)
};
nlohmann::json pack(const RanksPerPod& ranks);
Result<void> unpack(const std::string& text, RanksPerPod& ranks);

struct BspJobSpec {
  std::uint32_t ranks = 0;  // >= 1
  RanksPerPod ranks_per_pod;
  // A pod template as Kubernetes knows it ({metadata, spec}); spec.containers has one called "app".
  nlohmann::json pod_template;
  SetsSpec sets;
  InitialMapping initial_mapping = InitialMapping::kContiguous;
  CpuLevel cpu = CpuLevel::kNative;
  ReschedulingSpec rescheduling;
  ObjectiveSpec objective;
  SuperstepSpec superstep;
  CheckpointSpec checkpoint;
  SidecarSpec sidecar;
  std::vector<std::string> carry_paths;  // absolute paths whose content moves with a rank
  RunPolicy run_policy;
  SchedulingSpec scheduling;
  std::optional<RestoreFrom> restore_from;
};

// --- status ----------------------------------------------------------------------------------------
enum class JobPhase {
  kPending,   // no pods yet
  kStarting,  // pods come up, epoch 0 not open
  kRunning,
  kMigrating,   // a wave is under way
  kRestarting,  // an attempt failed, the next one is being prepared
  kSuspended,
  kSucceeded,
  kFailed,
};
constexpr bool is_finished(JobPhase p) { return p == JobPhase::kSucceeded || p == JobPhase::kFailed; }

struct RestartRecord {
  std::uint32_t attempt = 0;  // the attempt that ended
  Time time{};
  std::string reason;  // CamelCase: RankExited, RankLost, PodLost, …
  std::string message;
  std::optional<RankId> rank;  // whose fault, if one rank's
};

inline constexpr std::size_t kShownRestarts = 32;

struct SetRanks {
  std::string set;
  std::uint32_t ranks = 0;  // ranks in the Set now
  // Capacity of the Set's nodes for ranks of this job, its own included; not updated while the job doesn't run.
  std::uint32_t slots = 0;
};

struct PotentialEntry {  // one rank of the PM list, in list order
  RankId rank;
  std::string target_set;
  double comp = 0;  // s
  double comm = 0;  // s
  double mem = 0;   // s
  double pm = 0;    // comp + comm - mem
};

struct LevelEntry {  // AutoMig: the first `level` ranks of the list moved
  std::uint32_t level = 0;
  double pf = 0;  // s
};

struct MoveEntry {
  RankId rank;
  std::string from_set;
  std::string to_set;
  std::string to_node;
  double predicted_gain_seconds = 0;  // over the horizon
};

struct StayEntry {
  RankId rank;
  std::string reason;  // GainBelowCost, NoCapacity, TargetFailed, Cooldown, …
  std::string message;
};

// A rank that gets more CPU where it is, with what that gains and what its move would cost.
struct ResizeEntry {
  RankId rank;
  std::string node;
  std::uint64_t from_milli = 0, to_milli = 0;        // its container's CPU limit, thousandths of a core
  double superstep_before = 0, superstep_after = 0;  // s, of the job
  std::optional<double> move_seconds = {};  // that a move of the rank would cost; not set: no other Set is known
  std::string move_to = {};                 // the Set that it would go to
};

struct StayCount {
  std::string reason;
  std::uint32_t ranks = 0;
};

// The last call, for people: the lists have at most kShownEntries entries; the record has all of them.
inline constexpr std::size_t kShownEntries = 50;
inline constexpr const char* kTakingBack = "TakingBack";  // outcome: the last wave made supersteps longer
inline constexpr const char* kTrying = "Trying";      // outcome: one rank goes to a Set of whose speed nothing is known
inline constexpr const char* kResizing = "Resizing";  // outcome: ranks get more CPU where they are
struct Decision {
  Superstep superstep;
  Time time{};
  std::uint32_t alpha = 0;       // of the window that ended
  std::uint32_t alpha_next = 0;  // of the window that begins
  double d = 0;
  double d_next = 0;
  double imbalance = 0;  // slowest / mean - 1
  std::vector<PotentialEntry> potentials;
  std::vector<LevelEntry> levels;
  std::optional<std::uint32_t> chosen_level;
  double objective_before = 0;      // s
  double objective_after = 0;       // s
  std::uint32_t planned_moves = 0;  // `moves` has the first of them
  std::vector<MoveEntry> moves;
  std::vector<ResizeEntry> resizes;        // instead of moves
  std::vector<StayCount> stays_by_reason;  // of all ranks that stay
  std::vector<StayEntry> stays;
  std::string outcome;  // Migrating, Trying, Advised, NothingToGain, BelowMinGain, …
  std::string message;
};

// Of a speed: instructions were counted, or CPU time was made comparable by ranks that moved, or by the nodes' benchmark; else
// what is compared is assumed (operator/observe/work.h).
enum class CalibrationSource { kAssumed, kMeasured, kCounted, kInferred, kCalibrated };

struct CalibrationEntry {
  std::string name;  // cpu, cpuBenchmark, bandwidth, linkCapacity, migrationFixed
  std::string set;
  std::string to_set;  // for values between two Sets
  double value = 0;
  std::string unit;  // instructions/s, units/s, bytes/s, s
  CalibrationSource source = CalibrationSource::kAssumed;
  std::uint32_t samples = 0;
};

struct MigrationCounters {
  std::uint32_t waves = 0;
  std::uint32_t active = 0;
  std::uint32_t succeeded = 0;
  std::uint32_t rolled_back = 0;
  std::uint32_t failed = 0;
  std::uint32_t resized = 0;  // ranks that got more CPU where they are
};

// How the resize of a rank's container goes. Refused: by the API server.
enum class ResizePhase { kAsked, kResized, kDeferred, kInfeasible, kRefused };
// The last one of a rank, from before it is asked for until nothing follows from it any more. Of the first, Refused of any rank,
// nothing is asked for again before a while has passed.
struct RankResize {
  RankId rank;
  std::string pod = {};
  std::string node = {};
  std::uint64_t from_milli = 0, to_milli = 0;  // the container's CPU limit, thousandths of a core
  ResizePhase phase = ResizePhase::kAsked;
  Time time{};               // when it entered the phase
  std::string message = {};  // why it isn't resized, in the words of whoever refuses it
};
inline constexpr std::size_t kMostResizes = 64;

// What ends a superstep: every stride-th call, since chosen_after ended.
struct SuperstepEdge {
  std::string call;
  std::uint64_t stride = 0;
  Superstep chosen_after = {};
};

// Of a pod whose object is gone, although nobody has said that its program has ended: it may still run.
struct VanishedPod {
  std::string pod;
  std::string uid;
  std::string node;
  std::uint64_t grace_seconds = 0;  // that its kubelet gives its containers
  bool operator==(const VanishedPod&) const = default;
};
inline constexpr std::size_t kMostVanished = 1000;

struct BspJobStatus {
  std::int64_t observed_generation = 0;
  JobPhase phase = JobPhase::kPending;
  std::string reason;   // why this phase, CamelCase
  std::string message;  // the same for people
  std::vector<Condition> conditions;
  Time start_time{};
  Time completion_time{};
  std::uint32_t attempt = 0;            // restarts so far
  std::vector<RestartRecord> restarts;  // the last kShownRestarts
  Superstep superstep;                  // last one that all ranks completed
  std::optional<SuperstepEdge> superstep_edge;
  std::uint32_t alpha = 0;
  double d = 0;
  double imbalance = 0;                 // slowest / mean - 1, last superstep
  std::optional<CommittedEpoch> epoch;  // the commit point of a migration
  std::uint64_t epochs_used = 0;        // epoch numbers handed out; a number is never used twice
  // Of this attempt's pods, by its digest where the node says it: an upgraded operator brings another one, to which a running
  // program can't move. "": the operator's present one.
  std::string runtime_image;
  std::uint32_t wave = 0;  // number of the last wave begun
  std::string set_label;   // nodes' label by which the ranks got their places
  // The attempt's ranks share pods although spec.ranksPerPod doesn't say so; false of one that an operator without this has begun,
  // whose runtime may know one rank a pod.
  bool shares_pods = false;
  std::vector<SetRanks> ranks_per_set;
  RankPlaces ranks;
  std::optional<Decision> last_decision;
  std::vector<CalibrationEntry> calibration;
  MigrationCounters migrations;
  std::vector<RankResize> resizes;               // one of a rank, the oldest first; kMostResizes at most
  std::optional<double> predicted_gain_seconds;  // sum over the executed waves
  std::optional<double> realised_gain_seconds;
  std::optional<double> realised_gain_error_seconds;  // of that, two standard errors
  std::optional<double> pause_seconds;                // sum over the waves that ended
  std::vector<VanishedPod> vanished;                  // which the next attempt waits for; the first kMostVanished
  std::optional<CheckpointStatus> checkpoint;         // of a job with spec.checkpoint.storage
  nlohmann::json wave_state;   // operator/migrate's record of the wave under way or last ended, opaque
  nlohmann::json rescheduler;  // the decision's own state, opaque; null: none
};

struct BspJob {
  ObjectMeta metadata;
  BspJobSpec spec;
  BspJobStatus status;
};

// The job's name and `rest`, within the 63 characters of a label's value. Of a longer one the end of the job's name gives
// way to its uid, since the names of other jobs may begin alike.
std::string named_after(const ObjectMeta& job, std::string_view rest);
// Whether a job that doesn't say how many ranks share a pod lets them: no container, port or name that a template gives each pod is then
// missing for a rank, and the operator chooses the nodes. Such a job runs as with a rank a pod, but for its speed.
bool may_share_pods(const BspJobSpec& spec);
// spec.ranksPerPod, for an attempt that is about to begin. most_seats: as a number, of Auto the most that a pod can have.
bool fills_nodes(const BspJobSpec& spec);  // Auto, or unset with may_share_pods()
std::uint32_t most_seats(const BspJobSpec& spec);
// The same for the attempt that this status tells of, if there is one.
bool fills_nodes(const BspJobSpec& spec, const BspJobStatus& status);
std::uint32_t most_seats(const BspJobSpec& spec, const BspJobStatus& status);
inline std::uint32_t most_seats(const BspJob& job) { return most_seats(job.spec, job.status); }
// The app container of the template; null if it has none.
const nlohmann::json* app_container(const BspJobSpec& spec);

// --- JSON ------------------------------------------------------------------------------------------
void to_json(nlohmann::json& j, const BspJob& job);  // with apiVersion and kind
void to_json(nlohmann::json& j, const BspJobSpec& spec);
void to_json(nlohmann::json& j, const BspJobStatus& status);  // as it is stored (stored_status.h)
void to_json(nlohmann::json& j, const Decision& decision);

// Errors name the field ("spec.rescheduling.d: …") and the remedy. An unknown field of spec is an
// error with the nearest known name; one of status is ignored.
Result<BspJob> bsp_job_from_json(const nlohmann::json& j);
// The rules beyond types (the CEL and bounds of the YAML): ranks >= 1, 0 < d < 1, …
Result<void> validate(const BspJobSpec& spec);

// --- Names -----------------------------------------------------------------------------------------
constexpr auto names_of(Of<ReschedulingMode>) { return std::to_array<std::string_view>({"Migrate", "Advise", "Off"}); }
constexpr auto names_of(Of<Resize>) { return std::to_array<std::string_view>({"Off", "Auto"}); }
constexpr auto names_of(Of<ResizePhase>) {
  return std::to_array<std::string_view>({"Asked", "Resized", "Deferred", "Infeasible", "Refused"});
}
constexpr auto names_of(Of<CpuLevel>) { return std::to_array<std::string_view>({"Native", "Common"}); }
constexpr auto names_of(Of<CleanPodPolicy>) { return std::to_array<std::string_view>({"All", "Running", "None"}); }
constexpr auto names_of(Of<Gang>) {
  return std::to_array<std::string_view>({"Reserve", "PodGroup", "SchedulerPlugins", "Volcano"});
}
constexpr auto names_of(Of<JobPhase>) {
  return std::to_array<std::string_view>(
      {"Pending", "Starting", "Running", "Migrating", "Restarting", "Suspended", "Succeeded", "Failed"});
}
constexpr auto names_of(Of<CalibrationSource>) {
  return std::to_array<std::string_view>({"Assumed", "Measured", "Counted", "Inferred", "Calibrated"});
}

}  // namespace bsp::crds
