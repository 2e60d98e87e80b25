// PID 1 of a rank's app container: starts or restores the program, forwards its output and signals, reaps, and
// carries out the sidecar's requests from the control socket (sidecar/control/messages.h).
//
//            start                    SIGSTOP of itself (gate)
//   (run) ─────────> Running ─────────────────────────────────> Stopped <─────────┐ dump failed
//                       ^  continue                              │ dump           │
//                       ├──────────────────────────────────── Stopped, Dumped     │
//                       │                                        v                │
//                       │                                     Dumping ────────────┘
//                       │ continue                               │ criu and archive succeeded
//                       │                                        v
//  (--restore) Waiting ─┼─restore─> Restoring ──> Restored     Dumped (stopped; kill or continue)
//                 ^     └───────────── │ ────────────┘
//                 └── failed, discard ─┘       every state but Waiting ──program ends──> Exited
//                                              Dumped ──vacate──> Waiting
//
// In Dumping a worker first finds what the program has written in its pod (carry.h); criu starts when that can be
// moved.
//
// Only `continue` lets a stopped program run, and only the sidecar's `kill`, `vacate`, `quit` and `discard` kill it, with two
// exceptions. supervisor_fence.cc stops a running program for as long as no sidecar vouches for this pod. And a
// program that outlives the pod's grace period is killed within it, so that its end is still reported.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/cpu_features.h"
#include "base/core/error.h"
#include "base/core/fd.h"
#include "sidecar/control/messages.h"
#include "sidecar/init/changes.h"
#include "sidecar/init/criu.h"
#include "sidecar/init/output.h"
#include "sidecar/init/process.h"
#include "sidecar/init/shared_files.h"
#include "sidecar/transfer/capture_client.h"

namespace bsp::init {

struct Options {
  bool restore = false;
  std::vector<std::string> command;
  std::string runtime_dir;      // the directory of this binary, with libbspmpi.so and bin/criu
  std::string run_dir;          // names::kRunDir or BSP_RUN_DIR
  std::string criu;             // BSP_CRIU, else <runtime>/bin/criu
  std::string user;             // BSP_USER
  std::string groups;           // BSP_GROUPS
  std::string carry_paths;      // BSP_CARRY_PATHS
  bool shares_memory = false;   // the pod has more seats, and one /dev/shm for all: OMPI_COMM_WORLD_LOCAL_SIZE
  std::string pod_volumes;      // BSP_POD_VOLUMES
  std::string termination_log;  // BSP_TERMINATION_LOG, else /dev/termination-log
  std::chrono::milliseconds fence_limit{};  // fencing::kLimit, or BSP_FENCE_LIMIT_MS
  std::chrono::seconds grace{};             // BSP_GRACE_SECONDS; 0: unknown
  bool awaits_start = false;                // BSP_CPU=Common
  std::string cpu_features;                 // BSP_CPU_FEATURES
};

// By the epoch's descriptor, whether another copy of the rank may start while this pod is cut off. One that can't be read counts.
bool in_epoch_with_peers(const std::string& descriptor);
// Of the descriptor's text, as of names::kEpochRank; nullopt: it has none.
std::optional<std::uint32_t> number_in(const std::string& descriptor, std::string_view key);

class Supervisor {
 public:
  explicit Supervisor(Options options);

  // Runs until the container must end; returns its exit status.
  int run();

 private:
  using State = control::ProgramState;
  using Steady = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kByeLimit{5};

  // supervisor.cc
  Result<void> prepare();
  Result<void> start_program();
  void start_or_end();
  void step();
  void take_signals();
  void reap();
  void on_child(pid_t pid, int status);
  void on_program(int status);
  void forward(int signal);
  [[nodiscard]] std::optional<Steady::time_point> kill_deadline() const;
  [[nodiscard]] std::string why_due() const;
  void kill_if_due();
  int finish();
  void could_not_start(const Error& error);

  // supervisor_control.cc
  void keep_connected();
  void on_control();
  void handle(const control::ToInit& message);
  void report(const control::FromInit& message);
  void send_hello();
  void report_throttling();
  void continue_program();
  void name_rank() const;
  void kill_program(const std::string& reason);
  void start(CpuFeatures level);

  // supervisor_fence.cc
  void vouched(std::int64_t steady_ns);
  void watch_fence();
  void hold();
  void release();

  // supervisor_move.cc
  void begin_dump(const control::Dump& asked);
  Result<void> try_dump();
  Result<pid_t> start_packing(int archive, int found, int notes);
  [[nodiscard]] Mounts shared_mounts() const;
  void on_found();
  Result<void> start_dump_criu(bool carries);
  void end_dump_if_ready();
  void fail_dump(const std::string& why);
  void begin_restore(const control::Restore& asked);
  Result<void> try_restore();
  Result<void> start_restore_criu();
  void on_unpacked(int status);
  void on_restore_criu(int status);
  void fail_restore(const std::string& why);
  void discard(const std::string& migration);
  void vacate();
  bool become_vacant();  // false: the container is not as the image made it
  void abandon();
  void kill_descendants();
  void warm_up();
  void end_warm_up();

  Options options_;
  User user_;
  std::vector<std::string> carry_paths_;
  CriuPaths criu_paths_;
  Fd signals_;
  Fd socket_;
  Steady::time_point next_connect_{};
  int connect_failures_ = 0;
  Steady::time_point next_throttling_{};
  std::uint64_t throttled_ns_ = 0;  // as reported last
  OutputRelay out_{STDOUT_FILENO};
  OutputRelay err_{STDERR_FILENO};

  State state_ = State::kRunning;
  pid_t program_ = 0;
  struct {
    CpuFeatures of_machine;
    std::optional<CpuFeatures> level;  // that the program may use of them; not set: all
    CpuFeatures seen;                  // by the program's libraries, here or where it started
  } cpu_;
  std::string migration_;                     // of the last dump or restore
  std::optional<control::NotedFiles> notes_;  // of the last dump
  std::int64_t begun_ns_ = 0;                 // when the program was started, here or in another pod
  std::optional<int> exit_now_;
  bool bye_ = false;
  Steady::time_point bye_until_{};  // deadline for `bye`
  int exit_code_ = 0;
  int exit_signal_ = 0;
  std::string exit_message_;
  std::string kill_reason_;                             // given by the sidecar
  std::optional<Steady::time_point> end_requested_at_;  // when a signal asked the container to end
  Steady::time_point stopped_at_{};                     // when the program stopped, at a gate or by this process

  std::optional<Steady::time_point> fresh_;  // when a sidecar last vouched for this pod; not set: not needed yet
  Steady::time_point next_fence_{};          // when to check it again
  bool held_ = false;                        // the running program is stopped until a sidecar vouches
  std::set<pid_t> held_processes_;           // stopped by this process, not by themselves

  // The running criu or archive process; 0: none.
  pid_t criu_ = 0;
  pid_t worker_ = 0;
  pid_t warm_ = 0;
  std::optional<Steady::time_point> warm_up_at_;
  [[nodiscard]] std::string worker_log() const { return criu_paths_.work + "/carry.log"; }
  ChangeClock changes_;
  std::optional<transfer::CaptureClient> capture_;  // until the worker has found what is to be carried
  Fd found_;                                        // where the worker reports it
  std::string failure_;                             // the first error in the pending dump
  Steady::time_point action_start_{};
  std::optional<Steady::time_point> kill_criu_at_;
  bool vacated_ = false;                                                     // another rank has had this container
  enum class Leaving { kNo, kDiscarded, kVacated } leaving_ = Leaving::kNo;  // killed, to wait for another program
  bool left_files_ = false;  // the program wrote files in this container, and took copies along
  bool continue_after_dump_ = false;
  struct {
    pid_t pid = 0;
    User user;  // from the source
    CpuFeatures seen;
    std::int64_t begun_ns = 0;
    bool ignores_files = false;
    std::string note;
  } restoring_;
  std::vector<InheritedPipe> restore_pipes_;
};

// What the source's bsp-init passes to the target's: one packet of control.h in the file kStateFile.
inline constexpr std::string_view kStateFile = "bsp-init.state";
struct MovedProgram {
  static constexpr std::string_view kVerb = "state";
  int version = 1;  // kMovedVersion
  pid_t pid = 0;
  uid_t uid = static_cast<uid_t>(-1);
  gid_t gid = static_cast<gid_t>(-1);
  std::string groups{};
  std::string out{}, err{};  // the pipes that were its stdout and stderr
  std::uint64_t out_bytes = 0, err_bytes = 0;
  int carried = 0;  // 1: there is an archive of carried files
  // A target without one of these features, or with another libbspmpi.so (its build id), can't run the process; 0 and "" are
  // those of an older bsp-init. `ring` is BSP_RING_VERSION of the shim in the process.
  std::uint64_t features = 0;
  std::string runtime{};
  std::uint32_t ring = 0;
  std::int64_t begun_ns = 0;  // when it was started, wherever that was; 0: an older bsp-init doesn't say
};
inline constexpr int kMovedVersion = 1;  // of MovedProgram: a target takes what its own bsp-init would write
// Why a pod with that CPU and that libbspmpi.so can't run the process.
Result<void> check_moved(const MovedProgram& moved, CpuFeatures machine, const std::string& runtime);
constexpr void fields_of(Of<MovedProgram>, auto&& v) {
  v("version", &MovedProgram::version);
  v("pid", &MovedProgram::pid);
  v("uid", &MovedProgram::uid);
  v("gid", &MovedProgram::gid);
  v("groups", &MovedProgram::groups);
  v("stdout", &MovedProgram::out);
  v("stderr", &MovedProgram::err);
  v("stdout_bytes", &MovedProgram::out_bytes);
  v("stderr_bytes", &MovedProgram::err_bytes);
  v("carried", &MovedProgram::carried);
  v("features", &MovedProgram::features);
  v("runtime", &MovedProgram::runtime);
  v("ring", &MovedProgram::ring);
  v("begun", &MovedProgram::begun_ns);
}

}  // namespace bsp::init
