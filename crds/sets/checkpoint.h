// What a BSPJob says of its checkpoint sets: spec.checkpoint, spec.restoreFrom and status.checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "base/core/ids.h"
#include "crds/choices.h"
#include "crds/meta.h"
#include "crds/rank_groups.h"

namespace bsp::crds {

// --- spec ------------------------------------------------------------------------------------------
// Whether files on volumes that pods share must be as they were when a set was made.
enum class SharedFiles { kCheck, kIgnore };

// What becomes of the checkpoint sets of a job that is deleted.
enum class ReclaimPolicy { kDelete, kRetain };

// Volume sources of core/v1.
struct ClaimSource {
  std::string claim_name;
};
struct HostPathSource {
  std::string path;
};
// A bucket of any server that speaks S3.
struct S3Source {
  std::string endpoint;  // http[s]://host[:port]
  std::string bucket;
  std::string prefix = {};           // of the objects' names, without a slash at its ends; "": none
  std::string region = "us-east-1";  // that requests are signed for
  // Secrets of the job's namespace, which the sidecars mount and the operator never reads: AWS_ACCESS_KEY_ID,
  // AWS_SECRET_ACCESS_KEY and perhaps AWS_SESSION_TOKEN; and ca.crt, to trust instead of the usual certificates ("": these).
  std::string credentials_secret;
  std::string ca_secret = {};
};
// Of S3Source::endpoint; port "": the scheme's.
struct EndpointParts {
  std::string host;  // without an IPv6 address's brackets
  std::string port;
  bool tls = false;
};
// kInvalid: it is none.
Result<EndpointParts> endpoint_parts(const std::string& endpoint);
// Exactly one is set.
struct CheckpointStorage {
  std::optional<ClaimSource> persistent_volume_claim;
  std::optional<HostPathSource> host_path;
  std::optional<S3Source> s3;
};

inline constexpr const char* kAutoInterval = "Auto";  // by the cost of a set and the time between losses
struct CheckpointSpec {
  Quantity size_limit{"2Gi"};   // of the tmpfs that receives a checkpoint, and holds one until it is stored
  std::string interval = "5m";  // between checkpoint sets, or kAutoInterval
  std::uint32_t keep = 2;       // sets, >= 1
  std::string grace = "2m";     // for a last set before the pods of a job that is suspended go
  SharedFiles shared_files = SharedFiles::kCheck;
  ReclaimPolicy reclaim_policy = ReclaimPolicy::kDelete;  // may change while the job exists
  // Other namespaces whose jobs may begin with the job's own sets; may change while the job exists.
  std::vector<std::string> allowed_namespaces;
  static constexpr std::uint64_t kMostAllowedNamespaces = 64;
  std::optional<CheckpointStorage> storage;  // not set: no sets are made
};

// The job begins with a checkpoint set of another job: one that the operator reads (job), or one that was exported, perhaps of another
// cluster (exported and key_secret).
struct RestoreFrom {
  std::string job = {};         // its name
  std::string name_space = {};  // that names the job's in CheckpointSpec::allowed_namespaces; "": the job's own
  std::optional<std::uint64_t> set = {};  // not set: the newest
  std::string exported = {};              // exported_set.h
  std::string key_secret = {};            // Secret of the job's namespace with the set's key (names::kSetKey)
};

// --- status ----------------------------------------------------------------------------------------
// A checkpoint set whose images are all stored: an image of each rank, made at one gate.
struct StoredSet {
  std::uint64_t id = 0;       // never used twice
  Superstep superstep;        // that all ranks had completed
  std::uint64_t epoch = 0;    // that they had closed
  std::uint32_t attempt = 0;  // in which it was made
  Time time{};                // when it was made
  double pause_seconds = 0;   // how long the ranks waited for it; 0: not known
  std::uint64_t bytes = 0;    // of all images
  std::uint64_t stored = 0;   // bytes of their files; 0: not known
  std::uint64_t base = 0;     // set whose files it needs besides its own, and which stays for that; 0: none
  std::string image;          // of the program's container, as its node resolved it
  std::string digests;        // SHA-256 of each rank's stored file, 32 bytes a rank, in base64
  // What a process of it finds again where it is restored. "": not known.
  std::string runtime;   // build id of libbspmpi.so
  std::string account;   // user and groups of the program
  std::string mounts;    // of the program's container
  RankGroups features;   // by CPU features that the program's libraries have seen (bits in hexadecimal)
  std::string unusable;  // why no attempt can start from it; "": it may be tried
  // Attempts that have failed to start from it by what may be otherwise the next time; and the last that its image may be to blame for,
  // and where, until it has failed alike on another node.
  std::uint32_t tries = 0;
  std::string suspected, suspected_on;
  // Of another job's: its uid, and by what this job may use it (reconcile/shell/job/source_job.h). "": the job's own.
  std::string of_job;
  std::string grant;
};

// A set that has been dumped and isn't stored yet.
struct PendingSet {
  std::uint64_t id = 0;
  Superstep superstep;
  std::uint64_t epoch = 0;
  std::uint32_t attempt = 0;
  Time time{};
  double pause_seconds = 0;
};

// A set that this doesn't name doesn't exist. Writing it is the commit of a set.
struct CheckpointStatus {
  // Of the newest stored set, for people.
  Superstep superstep;
  Time time{};
  std::string message;  // why the last set wasn't stored; "": it was

  std::vector<StoredSet> sets;  // spec.checkpoint.keep at most; the oldest first
  std::optional<PendingSet> pending;
  std::uint64_t ids_used = 0;
  std::optional<std::uint64_t> restored;  // set from which the present attempt started; not set: from the beginning
  std::uint32_t without_progress = 0;     // attempts that failed since the last one that stored a set
  std::uint32_t losses = 0;               // attempts that have failed
  bool marked = false;  // in the storage, as what goes if the job has gone without it (reconcile/shell/orphans.h)
  // The job is to be suspended: sets above this id are made for that. Not set: it isn't, or has no pods any more.
  std::optional<std::uint64_t> suspending;
  std::string asked;  // the last set that a person asked for and that was begun (kAnnotationCheckpoint)
};

// --- Names -----------------------------------------------------------------------------------------
constexpr auto names_of(Of<SharedFiles>) { return std::to_array<std::string_view>({"Check", "Ignore"}); }
constexpr auto names_of(Of<ReclaimPolicy>) { return std::to_array<std::string_view>({"Delete", "Retain"}); }

}  // namespace bsp::crds
