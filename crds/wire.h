// The protocol between the operator and the sidecars, and among sidecars.
//
// Transport: base/net/link.h. One TLS 1.3 connection (both ends show a certificate of the job's CA),
// frames of  u32 header length | u64 body length | JSON header | body  (big endian). A request header
// is {"verb": …, fields}; its answer is {"ok": true, fields} or {"error": {"code", "message"}}. Requests
// of one connection are answered in order; each is answered at once (a watch within its wait), so no
// request blocks the others of its connection. Every verb is idempotent. One that acts, of the operator, has `token` beside its
// fields (Token).
//
// Field names below are the JSON names. Times: *_ns are nanoseconds, CLOCK_REALTIME where a point in
// time is meant. Allowed callers: O = the operator (by certificate), P = a pod of the current or the next epoch.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "base/core/fields.h"
#include "base/core/ids.h"
#include "base/json/bounded.h"

namespace bsp::wire {

using bsp::to_string;

// --- Verbs ---------------------------------------------------------------------------------------
// O  status           {}                       -> RankStatus
// O  watch            {version, wait_ms}       -> RankStatus, as soon as its version differs
// O  prepareEpoch     EpochPlan                -> {}   registers the PMIx namespace for this rank; a lower epoch that
//                                                      is not open yet is refused from then on
// O  openEpoch        {epoch}                  -> {}   writes the descriptor, continues a stopped program
// O  armGate          {superstep}              -> {completed, late}   late: the rank has passed it
// O  commitGate       {superstep, send?, save?} -> {}  the rank closes its epoch at the first edge >= superstep
//                                                      at which all ranks can; `send` or `save`, the fields of that
//                                                      verb, is then done as soon as it has stopped there
// O  cancelGate       {superstep}              -> {}   armed: gone; committed: once the ranks agree, unless they close
// O  receive          {migration, from_pod, restore?} -> {}   this pod waits for a checkpoint; with restore: true
//                                                      it is restored as soon as all of it is verified
// O  send             {migration, to_pod, to_address} -> {}   dump the stopped program and stream it there
// O  restore          {migration}              -> {}   restore what was received, leave it stopped
// O  discard          {migration}              -> {}   forget a checkpoint; kills a restored, never continued copy
// O  save             {set, epoch, attempt, key} -> {}  dump the stopped program into memory, and write it from
//                                                      there into the storage; the program may go on meanwhile
// O  load             {image: {as of save}, digest} -> {}  read the rank's image of that set from the storage and, once all of
//                                                      it is verified, restore it, and leave it stopped; its status is
//                                                      that of a transfer named set_name(set)
// O  keepSets         {below, keep: [set]}     -> {}   remove the job's sets below `below`, but for those, from the storage
// O  kill             {}                       -> {}   SIGKILL the program (source after the commit, job end)
// O  report           {since, max_bytes?, every?} -> RankReport with the supersteps after `since`, oldest first, as many
//                                                      as max_bytes hold, but one at least; left_out says how many more.
//                                                      With `every` only those that sampled() names; a sidecar of an
//                                                      older version sends the others too
// O  setReport        {members: [{rank, address, pod, seat?, since}], max_bytes?, every?} -> {reports: [RankReport],
//                                                      missing: [rank]}
//                                                      sent to a Set Manager, which queries its members; each gets the same
//                                                      share of max_bytes. A caller of an older version omits max_bytes
//                                                      and accepts kUnpagedReports
// P  report           as above, from the Set Manager
// P  gather           {epoch, key, rank} + body  -> {}   one rank's part of an all-gather, sent to the root
// P  deliver          {epoch, key, context_id, onward} + body -> {onward}   the whole, from the root through a tree of the members
//                                                      or {epoch, key, failure}: it will never be complete
// P  ping             {epoch}                  -> {}   refused if the rank's program has ended or the epoch
//                                                      is not the current one, so don't wait for it
// P  modex            {epoch, rank}            -> body   connection data of one rank (direct modex)
// P  checkpoint       {migration}              -> {}, then the connection carries the stream of
//                                                      sidecar/transfer/stream.h
//
// What the operator asks of one rank has `seat`, its seat in the pod, unless it is 0. A pod prepares an epoch for all its seats.
inline constexpr const char* kSeat = "seat";
inline constexpr const char* kStatus = "status";
inline constexpr const char* kWatch = "watch";
inline constexpr const char* kPrepareEpoch = "prepareEpoch";
inline constexpr const char* kOpenEpoch = "openEpoch";
inline constexpr const char* kArmGate = "armGate";
inline constexpr const char* kCommitGate = "commitGate";
inline constexpr const char* kCancelGate = "cancelGate";
inline constexpr const char* kReceive = "receive";
inline constexpr const char* kSend = "send";
inline constexpr const char* kRestore = "restore";
inline constexpr const char* kDiscard = "discard";
inline constexpr const char* kSave = "save";
inline constexpr const char* kLoad = "load";
inline constexpr const char* kKeepSets = "keepSets";
inline constexpr const char* kKill = "kill";
inline constexpr const char* kReport = "report";
inline constexpr const char* kSetReport = "setReport";
inline constexpr const char* kGather = "gather";
inline constexpr const char* kDeliver = "deliver";
inline constexpr const char* kPing = "ping";
inline constexpr const char* kModex = "modex";
inline constexpr const char* kCheckpoint = "checkpoint";

// --- Limits ----------------------------------------------------------------------------------------
// Input is bounded where it is read: a message before it is parsed (base/json/bounded.h), its values here. A status that
// exceeds these limits is truncated, because only the sender's own rank suffers from wrong values and the rest is still
// useful. A report that exceeds them is rejected, because it would be taken for a measurement.
inline constexpr std::size_t kMostText = 1024;                // bytes of a reason, a name or a message
inline constexpr std::uint64_t kMostSupersteps = 1ull << 48;  // nine years of one every microsecond
inline constexpr std::uint64_t kMostNs = 1ull << 62;    // of any duration or time (until 2116); the sum of three fits
inline constexpr std::size_t kMostRecords = 256;        // supersteps of one report: BSP_RING_RECORDS of the ring
inline constexpr std::size_t kMostSets = 64;            // BSP_MAX_SETS of the ring
inline constexpr std::size_t kMostPartners = 16;        // BSP_RING_PARTNERS of the ring
inline constexpr std::uint32_t kMostSeats = 256;        // of a pod
inline constexpr std::size_t kMostMembers = 1'000'000;  // only the operator sends a plan
inline constexpr std::uint64_t kMostWaves = 1u << 30;   // a wave takes seconds
inline constexpr Field kText{.most = kMostText};
inline constexpr Field kCount{.most = kMostSupersteps};
inline constexpr Field kMetric{.most = kMostNs};
// One page of a Set's reports, and how many members a request for one names, so that any superstep fits into a
// share of it: at most 64 Sets with two numbers of 20 digits each.
inline constexpr std::size_t kReportPage = 512 << 10;
inline constexpr std::size_t kMembersAtOnce = 128;
inline constexpr std::size_t kUnpagedReports = 4 << 20;

// --- Epochs --------------------------------------------------------------------------------------
struct Member {
  std::uint32_t rank = 0;
  std::string pod;         // pod name: the TLS identity that this rank's sidecar must show
  std::string pod_uid;     // only this pod may continue the rank's process in this epoch
  std::string address;     // ip:port of the sidecar
  std::uint32_t set = 0;   // Set number, index into EpochPlan.sets
  std::uint32_t seat = 0;  // in the pod (crds/seat.h)

  bool operator==(const Member&) const = default;
};
constexpr void fields_of(Of<Member>, auto&& v) {
  v("rank", &Member::rank, kRequired);
  v("pod", &Member::pod, kRequired);
  v("pod_uid", &Member::pod_uid, kRequired);
  v("address", &Member::address, kRequired);
  v("set", &Member::set);
  v("seat", &Member::seat, Field{.rare = true, .most = kMostSeats - 1});
}

// One MPI epoch: who is where. Written by the operator; the committed one is in BSPJob.status.epoch.
struct EpochPlan {
  std::uint64_t epoch = 0;
  std::string pmix_namespace;  // <job uid>-e<epoch>
  std::vector<std::string> sets;
  std::vector<Member> members;  // index = rank
  // With spec.cpu: Common, the CPU features that the program may use (bits of base/core/cpu_features.h): one that waits for its
  // start is started with them. 0: all that its CPU has.
  std::uint64_t cpu_level = 0;

  bool operator==(const EpochPlan&) const = default;
};
constexpr void fields_of(Of<EpochPlan>, auto&& v) {
  v("epoch", &EpochPlan::epoch, kRequired);
  v("pmix_namespace", &EpochPlan::pmix_namespace, kRequired);
  v("sets", &EpochPlan::sets, Field{.most = kMostMembers});
  v("members", &EpochPlan::members, Field{.required = true, .most = kMostMembers});
  v("cpu_level", &EpochPlan::cpu_level, kRare);
}

// --- Tokens ----------------------------------------------------------------------------------------
// Which decision a verb of the operator follows from. A message may be late by any time, on any connection, and an operator that has
// lost its lease may still be sending: a sidecar keeps the highest token that it has followed, and refuses verbs with a lower one.
//
// Ascends with every stored change of a wave after which verbs are sent. Each operator stores before it sends, so of two that send
// the one with the lower token has been overtaken.
struct Token {
  std::uint32_t wave = 0;     // BSPJob.status.wave; 0: the start
  std::uint64_t epoch = 0;    // that the wave brings about: its own, then the one it rolls back to
  std::uint32_t attempt = 0;  // of its gate

  friend auto operator<=>(const Token&, const Token&) = default;
};
constexpr void fields_of(Of<Token>, auto&& v) {
  v("wave", &Token::wave, kRequired);
  v("epoch", &Token::epoch, kRequired);
  v("attempt", &Token::attempt, kRequired);
}

// Beside the fields of every verb that acts. A sidecar of an older version ignores it; a verb without it is an older operator's,
// and is judged by its own fields alone, as that version did.
inline constexpr const char* kToken = "token";

// --- Status of one rank's pod ----------------------------------------------------------------------
enum class RankPhase {
  kWaiting,   // no program yet: a target, or bsp-init hasn't connected
  kStarting,  // the program runs, MPI_Init not reached
  kOpening,   // in the opening of an epoch; or sent SIGCONT for one, while `epoch` is still an earlier one
  kRunning,
  kAtGate,  // at an edge, waits for the verdict on an armed gate
  kClosing,
  kStopped,    // epoch closed, program stopped by SIGSTOP: may be dumped
  kFinalized,  // MPI_Finalize reached, still running
  kExited,     // see exit_code, exit_signal
};
constexpr auto names_of(Of<RankPhase>) {
  return std::to_array<std::string_view>(
      {"Waiting", "Starting", "Opening", "Running", "AtGate", "Closing", "Stopped", "Finalized", "Exited"});
}

enum class TransferPhase {
  kIdle,
  kReceiving,  // target: waits for or takes in a stream
  kReceived,   // target: every file there, length and checksum right
  kDumping,    // source: criu dumps, the stream flows
  kSent,       // source: the target has confirmed what it verified
  kRestoring,  // target
  kRestored,   // target: the process is there, stopped
  kFailed,     // see error
};
constexpr auto names_of(Of<TransferPhase>) {
  return std::to_array<std::string_view>(
      {"Idle", "Receiving", "Received", "Dumping", "Sent", "Restoring", "Restored", "Failed"});
}

inline constexpr std::chrono::seconds kThrottleWindow{10};  // of RankStatus::throttled

struct TransferStatus {
  std::string migration;
  TransferPhase phase = TransferPhase::kIdle;
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
  std::uint64_t dump_ns = 0;      // criu dump, start to exit
  std::uint64_t transfer_ns = 0;  // first byte sent or taken -> verified
  std::uint64_t restore_ns = 0;   // criu restore, start to exit
  std::string error;
  bool unusable = false;  // kFailed: the stored image can't be restored, and trying again won't help
  bool suspect = false;   // kFailed: perhaps; if it fails alike on another node
  std::string note = {};  // kRestored: what people should know of files on shared volumes (sidecar/init/shared_files.h)

  bool operator==(const TransferStatus&) const = default;
};
constexpr void fields_of(Of<TransferStatus>, auto&& v) {
  v("migration", &TransferStatus::migration, kText);
  v("phase", &TransferStatus::phase, kRequired);
  v("bytes", &TransferStatus::bytes, kMetric);
  v("files", &TransferStatus::files, kMetric);
  v("dump_ns", &TransferStatus::dump_ns, kMetric);
  v("transfer_ns", &TransferStatus::transfer_ns, kMetric);
  v("restore_ns", &TransferStatus::restore_ns, kMetric);
  v("error", &TransferStatus::error, kText);
  v("unusable", &TransferStatus::unusable, kRare);
  v("suspect", &TransferStatus::suspect, kRare);
  v("note", &TransferStatus::note, Field{.rare = true, .most = kMostText});
}

// A rank's part of a checkpoint set, at its source.
enum class SavePhase {
  kIdle,
  kDumping,  // criu dumps into memory
  kDumped,   // all of it is in memory: the program may go on, and the image is being written into the storage
  kStored,
  kFailed,  // see error; the program is still stopped, or runs
};
constexpr auto names_of(Of<SavePhase>) {
  return std::to_array<std::string_view>({"Idle", "Dumping", "Dumped", "Stored", "Failed"});
}

struct SaveStatus {
  std::uint64_t set = 0;
  SavePhase phase = SavePhase::kIdle;
  std::uint64_t bytes = 0;     // of the image, plain
  std::uint64_t dump_ns = 0;   // until all of it was in memory
  std::uint64_t store_ns = 0;  // from then until it was stored
  std::string digest = {};     // SHA-256 of the stored file in hexadecimal
  std::uint64_t stored = 0;    // bytes of that file; 0: not known
  std::uint64_t base = 0;      // set without whose image of this rank the file is of no use; 0: it is whole
  std::string error = {};

  bool operator==(const SaveStatus&) const = default;
};
constexpr void fields_of(Of<SaveStatus>, auto&& v) {
  v("set", &SaveStatus::set, kCount);
  v("phase", &SaveStatus::phase, kRequired);
  v("bytes", &SaveStatus::bytes, kMetric);
  v("dump_ns", &SaveStatus::dump_ns, kMetric);
  v("store_ns", &SaveStatus::store_ns, kMetric);
  v("digest", &SaveStatus::digest, kText);
  v("stored", &SaveStatus::stored, Field{.rare = true, .most = kMetric.most});
  v("base", &SaveStatus::base, Field{.rare = true, .most = kCount.most});
  v("error", &SaveStatus::error, kText);
}
// The name under which bsp-init knows a set's dump and restore, as it knows a migration's.
std::string set_name(std::uint64_t set);

// Sets come in groups of so many. An image may leave out what that of the same rank in its group's first set holds, its base
// (sidecar/storage/delta.h), and builds on no other.
inline constexpr std::uint64_t kSetsPerBase = 8;
// The first set of a set's group; the first group begins with set 1.
constexpr std::uint64_t base_of(std::uint64_t set) { return set == 0 ? 0 : set - (set - 1) % kSetsPerBase; }

// What a unit of each kind of work takes on the pod's CPU, in ns of CPU time (sidecar/agent/benchmark.h). Written by the sidecar,
// once, before the program runs; read by operator/observe/benchmarks.h.
struct CpuBenchmark {
  std::string model;  // of /proc/cpuinfo
  std::uint64_t integer_ns = 0;
  std::uint64_t floating_ns = 0;
  std::uint64_t memory_ns = 0;

  bool operator==(const CpuBenchmark&) const = default;
};
inline constexpr std::size_t kMostCpuModel = 64;
// Beyond these a figure is no measurement: a unit takes some 150 us.
inline constexpr std::uint64_t kLeastUnitNs = 5'000, kMostUnitNs = 500'000'000;
bool is_plausible(const CpuBenchmark& cpu);
constexpr void fields_of(Of<CpuBenchmark>, auto&& v) {
  v("model", &CpuBenchmark::model, Field{.most = kMostCpuModel});
  v("integer_ns", &CpuBenchmark::integer_ns, Field{.required = true, .most = kMetric.most});
  v("floating_ns", &CpuBenchmark::floating_ns, Field{.required = true, .most = kMetric.most});
  v("memory_ns", &CpuBenchmark::memory_ns, Field{.required = true, .most = kMetric.most});
}

struct RankStatus {
  std::uint64_t version = 0;  // grows with every change of anything but `completed`, `memory_bytes` and `throttled`;
                              // also over a restart of the sidecar
  std::uint32_t rank = 0;
  std::string pod;
  std::uint32_t seat = 0;  // in the pod (crds/seat.h)
  RankPhase phase = RankPhase::kWaiting;
  bool init_connected = false;       // bsp-init is connected
  std::uint64_t epoch = 0;           // that the program says it has entered last; of a copy that hasn't yet: 0
  std::uint64_t prepared_epoch = 0;  // highest epoch prepared
  std::uint64_t admitted_epoch = 0;  // highest epoch that the program was let into, whether it has come there yet or
                                     // not; no lower one can be opened any more. Absent: no limit
  std::uint32_t wave = 0;            // highest that a verb has named (Token); absent: none has
  std::uint64_t completed = 0;       // last superstep whose edge completed
  std::uint64_t gate_superstep = 0;  // 0: none
  bool gate_committed = false;
  std::string blocked_reason;      // "not migratable now: …" while a committed gate is postponed
  bool blocked_for_good = false;   // for a reason that lasts as long as the process
  std::uint32_t postponed = 0;     // edges it was postponed by
  std::string collective;          // the world collective that it has called most often; "": none
  int exit_code = -1;              // of the program; -1: not exited
  int exit_signal = 0;             // 0: none
  std::string exit_message;        // why the program could not be run, or how bsp-init explains its end
  bool mpi_initialized = false;    // this process has reached MPI_Init
  bool mpi_finalized = false;      // MPI_Finalize has returned; stays after the exit
  std::uint64_t memory_bytes = 0;  // M(i)
  std::uint64_t gate_reached_ns = 0;
  std::uint64_t close_ns = 0;
  std::uint64_t stopped_ns = 0;  // when bsp-init saw the stop
  std::uint64_t opened_ns = 0;
  std::uint64_t open_ns = 0;
  std::uint64_t open_cpu_ns = 0;
  std::uint64_t first_compute_ns = 0;
  bool instructions_measured = false;  // perf events; else CPU time
  // The fraction of the last kThrottleWindow, 0 to 1, for which the app container was throttled by its CPU limit (from the
  // container's own cpu.stat). A node or a pod that is slow for another reason doesn't count.
  double throttled = 0;
  std::optional<CpuBenchmark> cpu;  // not set: not measured, or not plausible
  // Bits of base/core/cpu_features.h; 0: not known, as of an older sidecar. Of the pod's CPU, and those that the program's
  // libraries have seen when they chose their code: at its start, wherever it has moved to since.
  std::uint64_t cpu_features = 0;
  std::uint64_t program_features = 0;
  // The build id of the pod's /bsp/libbspmpi.so, in hex: a program moves only to where the file is the same. "": not known.
  std::string runtime;
  TransferStatus transfer;
  std::optional<SaveStatus> save;  // not set: none yet

  bool operator==(const RankStatus&) const = default;
};
constexpr void fields_of(Of<RankStatus>, auto&& v) {
  v("version", &RankStatus::version, kRequired);
  v("rank", &RankStatus::rank, kRequired);
  v("pod", &RankStatus::pod, kText);
  v("seat", &RankStatus::seat, Field{.rare = true, .most = kMostSeats - 1});
  v("phase", &RankStatus::phase, kRequired);
  v("init_connected", &RankStatus::init_connected);
  v("epoch", &RankStatus::epoch, kCount);
  v("prepared_epoch", &RankStatus::prepared_epoch, kCount);
  v("admitted_epoch", &RankStatus::admitted_epoch);
  v("wave", &RankStatus::wave, Field{.rare = true, .most = kMostWaves});
  v("completed", &RankStatus::completed, kCount);
  v("gate_superstep", &RankStatus::gate_superstep, kCount);
  v("gate_committed", &RankStatus::gate_committed);
  v("blocked_reason", &RankStatus::blocked_reason, kText);
  v("blocked_for_good", &RankStatus::blocked_for_good, kRare);
  v("postponed", &RankStatus::postponed);
  v("collective", &RankStatus::collective, kText);
  v("exit_code", &RankStatus::exit_code);
  v("exit_signal", &RankStatus::exit_signal);
  v("exit_message", &RankStatus::exit_message, kText);
  v("mpi_initialized", &RankStatus::mpi_initialized);
  v("mpi_finalized", &RankStatus::mpi_finalized);
  v("memory_bytes", &RankStatus::memory_bytes, kMetric);
  v("gate_reached_ns", &RankStatus::gate_reached_ns, kMetric);
  v("close_ns", &RankStatus::close_ns, kMetric);
  v("stopped_ns", &RankStatus::stopped_ns, kMetric);
  v("opened_ns", &RankStatus::opened_ns, kMetric);
  v("open_ns", &RankStatus::open_ns, kMetric);
  v("open_cpu_ns", &RankStatus::open_cpu_ns, kMetric);
  v("first_compute_ns", &RankStatus::first_compute_ns, kMetric);
  v("instructions_measured", &RankStatus::instructions_measured);
  v("throttled", &RankStatus::throttled);
  v("cpu", &RankStatus::cpu);
  v("cpu_features", &RankStatus::cpu_features, kRare);
  v("program_features", &RankStatus::program_features, kRare);
  v("runtime", &RankStatus::runtime, Field{.rare = true, .most = kMostText});
  v("transfer", &RankStatus::transfer);
  v("save", &RankStatus::save);
}

// --- Superstep reports -----------------------------------------------------------------------------
struct SuperstepReport {  // one bsp_superstep_record, see ring.h
  std::uint64_t superstep = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t instructions = 0;
  std::uint64_t compute_ns = 0;
  std::uint64_t comm_ns = 0;
  std::uint64_t edge_ns = 0;
  std::uint64_t sent_bytes = 0;
  std::vector<std::uint64_t> recv_bytes;  // per Set number, trailing zeros cut
  std::vector<std::uint64_t> recv_ns;     // per Set number, trailing zeros cut
};
constexpr void fields_of(Of<SuperstepReport>, auto&& v) {
  v("superstep", &SuperstepReport::superstep, Field{.required = true, .most = kMostSupersteps});
  v("end_ns", &SuperstepReport::end_ns, kMetric);
  v("instructions", &SuperstepReport::instructions, kMetric);
  v("compute_ns", &SuperstepReport::compute_ns, kMetric);
  v("comm_ns", &SuperstepReport::comm_ns, kMetric);
  v("edge_ns", &SuperstepReport::edge_ns, kMetric);
  v("sent_bytes", &SuperstepReport::sent_bytes, kMetric);
  v("recv_bytes", &SuperstepReport::recv_bytes, Field{.most = kMostSets, .most_each = kMostNs});
  v("recv_ns", &SuperstepReport::recv_ns, Field{.most = kMostSets, .most_each = kMostNs});
}

struct RankReport {
  std::uint32_t rank = 0;
  std::uint64_t completed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t memory_bytes = 0;
  // What ends a superstep: every edge_stride-th edge_call ("": not found out yet), since superstep edge_chosen_after ended.
  std::string edge_call = {};
  std::uint64_t edge_stride = 0;
  std::uint64_t edge_chosen_after = 0;
  // The ranks that it hears from most, and the bytes from each in a superstep, mean; heaviest first. Only if they were
  // found after `since`, as they are now and then (sidecar/shim/measure/measure.h).
  std::vector<std::uint32_t> partners = {};
  std::vector<std::uint64_t> partner_bytes = {};
  std::vector<SuperstepReport> supersteps;  // ascending; those older than the ring are lost
  std::uint64_t left_out = 0;               // newer ones that didn't fit into the message
};
constexpr void fields_of(Of<RankReport>, auto&& v) {
  v("rank", &RankReport::rank, kRequired);
  v("completed", &RankReport::completed, kCount);
  v("epoch", &RankReport::epoch, kCount);
  v("memory_bytes", &RankReport::memory_bytes, kMetric);
  v("edge_call", &RankReport::edge_call, Field{.rare = true, .most = kMostText});
  v("edge_stride", &RankReport::edge_stride, Field{.rare = true, .most = kMostSupersteps});
  v("edge_chosen_after", &RankReport::edge_chosen_after, Field{.rare = true, .most = kMostSupersteps});
  v("partners", &RankReport::partners, Field{.rare = true, .most = kMostPartners});
  v("partner_bytes", &RankReport::partner_bytes, Field{.rare = true, .most = kMostPartners, .most_each = kMostNs});
  v("supersteps", &RankReport::supersteps, Field{.required = true, .most = kMostRecords});
  v("left_out", &RankReport::left_out, Field{.rare = true, .most = kMostSupersteps});
}

// Whether a superstep belongs to the sample of one in `every`, a power of two: the same in all ranks, whenever they are asked.
// Runs of kSampleRun follow each other, and which runs belong to it has no period, since the program's work may have one. The
// sample of a multiple of `every` is a part of this one.
inline constexpr std::uint64_t kSampleRun = 16;
bool sampled(std::uint64_t superstep, std::uint64_t every);

MessageLimits answer_limits(std::string_view verb);
MessageLimits request_limits(bool of_the_operator);

// Of one superstep as JSON.
std::size_t bytes_of(const SuperstepReport& superstep);
// Keeps the oldest supersteps that fit into `bytes` of JSON, at least one, and counts the others as left out.
void keep_within(RankReport& report, std::size_t bytes);

// --- JSON ------------------------------------------------------------------------------------------
// Messages are written in full, including empty strings and lists.
template <class T>
constexpr void written_whole(Of<T>) {}

Result<void> judge(const EpochPlan& plan);
Result<void> judge(RankStatus& status);
Result<void> judge(const RankReport& report);

void to_json(nlohmann::json& j, const EpochPlan& v);
void to_json(nlohmann::json& j, const RankStatus& v);
void to_json(nlohmann::json& j, const RankReport& v);

// Errors name the missing or mistyped field; unknown fields are ignored (a newer peer may send them).
Result<EpochPlan> epoch_plan_from_json(const nlohmann::json& j);
Result<RankStatus> rank_status_from_json(const nlohmann::json& j);
Result<RankReport> rank_report_from_json(const nlohmann::json& j);

}  // namespace bsp::wire
