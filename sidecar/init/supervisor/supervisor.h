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
// Only `continue` lets a stopped program run, and only the sidecar's `kill`, `vacate`, `quit` and `discard` kill it, with two
// exceptions. fence.h stops a running program for as long as no sidecar vouches for this pod. And a
// program that outlives the pod's grace period is killed within it, so that its end is still reported.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "base/core/cpu_features.h"
#include "base/core/error.h"
#include "base/core/fd.h"
#include "sidecar/control/messages.h"
#include "sidecar/init/supervisor/container.h"
#include "sidecar/init/supervisor/dump.h"
#include "sidecar/init/supervisor/fence.h"
#include "sidecar/init/supervisor/restore.h"
#include "sidecar/init/supervisor/sidecar_link.h"
#include "sidecar/init/supervisor/warm_up.h"

namespace bsp::init {

class Supervisor {
 public:
  explicit Supervisor(Options options);

  // Runs until the container must end; returns its exit status.
  int run();

 private:
  using State = control::ProgramState;
  using Steady = std::chrono::steady_clock;
  enum class Leaving { kNo, kDiscarded, kVacated };  // killed, to wait for another program
  static constexpr std::chrono::seconds kByeLimit{5};

  // supervisor.cc: the program's life
  Result<void> start_program();
  void start_or_end();
  void step();
  void take_signals();
  void reap();
  void on_child(pid_t pid, int status);
  void on_program(int status);
  void on_stopped_or_continued(int status);
  void forward(int signal);
  [[nodiscard]] std::optional<Steady::time_point> kill_deadline() const;
  [[nodiscard]] std::string why_due() const;
  void kill_if_due();
  void kill_program(const std::string& reason);
  int finish();
  void await_bye();
  void could_not_start(const Error& error);

  // requests.cc: the sidecar's requests
  void keep_connected();
  void take_requests();
  void handle(const control::ToInit& message);
  void report(const control::FromInit& message) { sidecar_.send(message); }
  void send_hello();
  void report_throttling();
  void start(CpuFeatures level);
  void continue_program();
  void name_rank() const;
  void begin_dump(const control::Dump& asked);
  void settle_dump();
  void begin_restore(const control::Restore& asked);
  void report_restored();
  void on_restored(const Result<Program>& restored);
  void abandon();
  void discard(const std::string& migration);
  void vacate();
  bool become_vacant();  // false: the container is not as the image made it

  Container container_;
  Fd signals_;
  SidecarLink sidecar_;
  WarmUp warm_up_;
  Fence fence_;

  // The program, and which ones may still begin here.
  struct {
    State state = State::kRunning;
    Program process;
    Steady::time_point stopped_at{};   // by itself, at a gate
    std::optional<CpuFeatures> level;  // of the CPU's features, which it may use; not set: all
    bool restores = false;             // a moved one may come
    bool awaits_start = false;         // the command starts when the sidecar says so
    bool is_second = false;            // another rank has had this container
    bool left_files = false;           // the one that left wrote files in this container, and took copies along
    Leaving leaving = Leaving::kNo;
  } program_;

  std::string migration_;  // of the last dump or restore
  std::optional<Dump> dump_;
  bool continue_after_dump_ = false;
  std::optional<Restore> restore_;  // the last

  struct {
    Steady::time_point next{};
    std::uint64_t reported_ns = 0;
  } throttling_;

  // The container's end.
  struct {
    std::optional<int> now;                            // exit with this status, whatever runs
    std::optional<Steady::time_point> requested_at{};  // when a signal asked for it
    int code = 0;                                      // of the program, as in control::Exited
    int signal = 0;
    std::string message;
    std::string kill_reason;  // given by the sidecar
    bool bye = false;
    Steady::time_point bye_until{};
  } end_;
};

}  // namespace bsp::init
