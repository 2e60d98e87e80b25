// What the sidecar asks bsp-init for: dump at the source, restore at the target, and the ways back from both. See supervisor.h.
#include <signal.h>
#include <sys/wait.h>

#include <cstdio>
#include <utility>

#include "base/core/fault.h"
#include "base/core/rank_line.h"
#include "base/core/read_file.h"
#include "crds/names.h"
#include "sidecar/init/carry.h"
#include "sidecar/init/cgroup.h"
#include "sidecar/init/supervisor/supervisor.h"

namespace bsp::init {
namespace {

constexpr int kLastOutputMs = 2000;

}  // namespace

void Supervisor::keep_connected() {
  if (sidecar_.connect_if_due(container_.user)) send_hello();
}

void Supervisor::take_requests() {
  sidecar_.receive([this](const control::ToInit& message) { handle(message); });
}

void Supervisor::send_hello() {
  report(control::Hello{.mode = program_.restores ? control::Mode::kRestore : control::Mode::kRun,
                        .uid = container_.user.uid,
                        .gid = container_.user.gid,
                        .pid = program_.process.pid,
                        .state = program_.state,
                        .code = end_.code,
                        .signal = end_.signal,
                        .message = end_.message,
                        .migration = migration_,
                        .features = program_.process.seen.bits(),
                        .ahead = program_.state == State::kRestored && restore_ && restore_->ahead() ? 1 : 0});
}

// Not while ranks wait for criu: it isn't urgent.
void Supervisor::report_throttling() {
  const auto now = Steady::now();
  if (!sidecar_.connected() || now < throttling_.next) return;
  throttling_.next = now + std::chrono::seconds(1);
  if (program_.state != State::kRunning) return;
  const auto sum = throttled_ns();
  if (!sum || *sum == throttling_.reported_ns) return;
  throttling_.reported_ns = *sum;
  report(control::Throttled{.ns = *sum});
}

void Supervisor::handle(const control::ToInit& message) {
  std::visit(control::Handlers{
                 [this](const control::Dump& m) { begin_dump(m); },
                 [this](const control::Restore& m) { begin_restore(m); },
                 [this](const control::Start& m) { start(CpuFeatures(m.features)); },
                 [this](const control::Continue&) { continue_program(); },
                 [this](const control::Abandon& m) {
                   if (m.migration == migration_) abandon();
                 },
                 [this](const control::Discard& m) { discard(m.migration); },
                 [this](const control::Kill& m) { kill_program(m.reason); },
                 [this](const control::Vacate&) { vacate(); },
                 [this](const control::Bye&) {
                   if (program_.state == State::kExited) end_.bye = true;
                 },
                 [this](const control::Stay&) {
                   // The kubelet would end a pod that is being deleted anyway, one grace period later.
                   if (end_.requested_at)
                     end_.bye = true;
                   else
                     end_.bye_until = Steady::now() + kByeLimit;
                 },
                 [this](const control::Fresh& m) { fence_.vouched(static_cast<std::int64_t>(m.ns)); },
                 [this](const control::Quit& m) { end_.now = m.code; },
             },
             message);
}

void Supervisor::start(CpuFeatures level) {
  // A program that has left for another pod is not started again here (vacate()).
  if (program_.restores || program_.state != State::kWaiting || !std::exchange(program_.awaits_start, false)) return;
  program_.level = level;
  start_or_end();
  // If the program could not be started, finish() reports the end.
  if (program_.state == State::kRunning) send_hello();
}

// THE place that continues a stopped or restored program. The only other SIGCONT undoes what the fence has stopped.
void Supervisor::continue_program() {
  if (program_.state == State::kDumping) {
    // The epoch that lets it run here is open: the dump is no longer needed.
    continue_after_dump_ = true;
    abandon();
    return;
  }
  const bool may =
      program_.state == State::kStopped || program_.state == State::kDumped || program_.state == State::kRestored;
  if (may && program_.process.pid > 0) {
    fault_point("init.continue", program_.process.pid);
    if (program_.is_second && program_.state == State::kRestored) name_rank();
    program_.state = State::kRunning;
    ::kill(program_.process.pid, SIGCONT);
  }
  if (program_.state == State::kRunning) {
    report(control::Running{.pid = program_.process.pid});
  }
}

// Before the rank's first output here: the container's log begins with that of the rank that has left.
void Supervisor::name_rank() const {
  const auto descriptor = read_file(container_.options.run_dir + "/epoch");
  if (const auto rank = descriptor ? number_in(*descriptor, names::kEpochRank) : std::nullopt)
    std::fprintf(stderr, "%s\n", line_of_rank(*rank).c_str());
}

// --- Source -----------------------------------------------------------------------------------------

void Supervisor::begin_dump(const control::Dump& asked) {
  const auto refuse = [&](const std::string& why) {
    report(control::DumpFailed{.migration = asked.migration, .message = why});
  };
  if (dump_) {
    if (asked.migration != migration_) refuse("another dump is in progress, for " + migration_);
    return;
  }
  if (program_.state != State::kStopped && program_.state != State::kDumped) {
    refuse("the program is not stopped at a gate (it is " + std::string(to_string(program_.state)) + ")");
    return;
  }
  migration_ = asked.migration;
  program_.state = State::kDumping;
  warm_up_.end();
  container_.drain_output();
  dump_.emplace(container_, program_.process, asked.notes,
                [this](pid_t criu) { report(control::Dumping{.migration = migration_, .pid = criu}); });
  dump_->begin();
  settle_dump();
}

void Supervisor::settle_dump() {
  if (!dump_ || !dump_->over()) return;
  program_.left_files = program_.left_files || dump_->found_files();
  if (!dump_->damage().empty()) kill_program("after its dump, " + dump_->damage());
  if (!dump_->failure().empty()) {
    program_.state = State::kStopped;
    report(control::DumpFailed{.migration = migration_, .message = dump_->failure()});
  } else {
    fault_point("init.dumped", program_.process.pid);
    program_.state = State::kDumped;
    report(control::Dumped{.migration = migration_, .ns = dump_->took_ns()});
  }
  dump_.reset();
  if (std::exchange(continue_after_dump_, false)) continue_program();
}

void Supervisor::abandon() {
  if (dump_) dump_->abandon();
  if (program_.state == State::kRestoring) restore_->abandon();
}

// --- Target -----------------------------------------------------------------------------------------

void Supervisor::begin_restore(const control::Restore& asked) {
  const std::string& migration = asked.migration;
  if (program_.state == State::kRestored && migration == migration_) {
    if (asked.cut == 0 || !restore_->ahead()) return report_restored();
    if (const auto begun = restore_->cut(); !begun) on_restored(std::unexpected(begun.error()));
    return;
  }
  if (program_.state == State::kRestoring && migration == migration_) return;
  if (program_.state != State::kWaiting || (!program_.restores && program_.awaits_start)) {
    report(control::RestoreFailed{
        .migration = migration,
        .message = "this pod already has a program (" + std::string(to_string(program_.state)) + ")"});
    return;
  }
  migration_ = migration;
  program_.state = State::kRestoring;
  warm_up_.end();
  restore_.emplace(container_, migration, asked.ignore_files != 0);
  if (const auto begun = restore_->begin(); !begun) on_restored(std::unexpected(begun.error()));
}

void Supervisor::on_restored(const Result<Program>& restored) {
  if (!restored) kill_descendants(warm_up_.pid());
  container_.close_output();
  program_.process = restored.value_or(Program{});
  if (!restored) {
    program_.state = State::kWaiting;
    report(control::RestoreFailed{.migration = migration_,
                                  .message = trimmed(restored.error().message),
                                  .cause = restore_->cause_of(restored.error())});
    return;
  }
  program_.state = State::kRestored;
  fault_point("init.restored", program_.process.pid);
  report_restored();
  // After the answer, so that it doesn't prolong the pause. Threads that the program starts from now on must not get
  // numbers that criu will need in the next pod.
  advance_pid_cursor(kFirstProgramPid);
}

void Supervisor::report_restored() {
  report(control::Restored{.migration = migration_,
                           .pid = program_.process.pid,
                           .ns = restore_->took_ns(),
                           .features = program_.process.seen.bits(),
                           .note = restore_->note(),
                           .ahead = restore_->ahead() ? 1 : 0});
}

void Supervisor::discard(const std::string& migration) {
  if (migration == migration_ && program_.state == State::kRestoring) {
    abandon();  // answered by restore-failed
    return;
  }
  if (migration == migration_ && program_.state == State::kRestored && program_.process.pid > 0) {
    program_.leaving = Leaving::kDiscarded;  // answered when it was reaped
    ::kill(program_.process.pid, SIGKILL);
    return;
  }
  if (program_.state == State::kWaiting) {
    report(control::Discarded{.migration = migration});
  }
}

// Another program must find this container as the image made it, so one with files of the last program ends.
void Supervisor::vacate() {
  if (program_.state == State::kWaiting) report(control::Vacated{});
  if (program_.process.pid <= 0) return;
  if (program_.state == State::kDumped && !program_.left_files) program_.leaving = Leaving::kVacated;
  kill_program("");
}

bool Supervisor::become_vacant() {
  kill_descendants(warm_up_.pid());
  int status = -1;
  const auto cleans = container_.start_worker(container_.user, []() -> Result<int> {
    BSP_CHECK_OK(remove_sessions());
    return 0;
  });
  if (!cleans || ::waitpid(*cleans, &status, 0) != *cleans || status != 0) return false;
  for (OutputRelay* relay : {&container_.out, &container_.err}) {
    relay->drain();
    relay->flush(kLastOutputMs);
  }
  program_.restores = program_.is_second = true;
  fence_.forget();
  end_.kill_reason.clear();
  program_.state = State::kWaiting;
  report(control::Vacated{});
  return true;
}

}  // namespace bsp::init
