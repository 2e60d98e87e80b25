// The program's life as PID 1 sees it: start, output, signals, end. See supervisor.h.
#include "sidecar/init/supervisor/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <format>
#include <string>
#include <utility>

#include "base/core/fault.h"
#include "base/core/read_file.h"
#include "crds/names.h"
#include "crds/refusal.h"
#include "sidecar/init/cgroup.h"
#include "sidecar/init/cpu_level.h"
#include "sidecar/init/files.h"
#include "sidecar/init/last_words.h"
#include "sidecar/init/process.h"
#include "sidecar/init/program.h"

extern char** environ;

namespace bsp::init {
namespace {

constexpr int kForwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};
constexpr int kExitBadSetting = 125;  // as container engines exit for errors before the command starts
constexpr int kFlushLimitMs = 2000;
// The part of the pod's grace period reserved for the last output and the last message to the sidecar; a quarter of a
// shorter one.
constexpr std::chrono::milliseconds kShutdownReserve{2000};
// How long a stopped program may wait to be continued when its container must end: it can't use its grace period, and
// a pause is shorter.
constexpr std::chrono::seconds kStoppedGrace{2};
constexpr std::chrono::seconds kByeLimitAlone{1};  // without a connected sidecar
constexpr std::chrono::seconds kWarmUpAfter{5};
constexpr const char* kMemoryLimit =
    "the memory limit of its container was reached; raise resources.limits.memory in spec.template";

// Why the shim refused the program; "": it didn't. The program can write there too, so nothing of it is trusted.
std::string refusal_in(const std::string& run_dir, const User& user) {
  const FsIdentity as_program(user);
  const std::string path = std::format("{}/{}", run_dir, names::kRefusalFile);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return "";
  std::string text(names::kRefusalBytes, '\0');
  const ssize_t got = ::read(fd, text.data(), text.size());
  ::close(fd);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  while (text.ends_with('\n')) text.pop_back();
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

}  // namespace

Supervisor::Supervisor(Options options)
    : container_{.options = std::move(options)},
      sidecar_(container_.options.run_dir + "/control"),
      fence_(container_.options) {
  program_.restores = container_.options.restore;
  program_.awaits_start = container_.options.awaits_start;
}

int Supervisor::run() {
  sigset_t mask;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, SIGCHLD);
  for (const int signal : kForwarded) ::sigaddset(&mask, signal);
  // An image may specify any signal as its stop signal.
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) ::sigaddset(&mask, signal);
  ::sigprocmask(SIG_BLOCK, &mask, nullptr);
  signals_ = Fd(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  ::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);  // for tests, where this is not PID 1
  const bool waits = program_.restores || program_.awaits_start;
  program_.state = waits ? State::kWaiting : State::kRunning;

  if (auto ready = container_.prepare(); !ready) {
    end_.code = kExitBadSetting;
    could_not_start(ready.error());
  } else {
    // Delayed, so that the program's start needn't wait for what only its first move needs.
    warm_up_.begin_after(program_.restores ? std::chrono::seconds(0) : kWarmUpAfter);
    if (!waits) start_or_end();
  }
  while (program_.state != State::kExited && !end_.now) step();
  return finish();
}

void Supervisor::start_or_end() {
  program_.state = State::kRunning;
  if (auto started = start_program(); !started) could_not_start(started.error());
}

Result<void> Supervisor::start_program() {
  const Options& options = container_.options;
  const User& user = container_.user;
  const char* path = ::getenv("PATH");
  end_.code = kExitNotFound;
  BSP_TRY(const std::string file,
          find_command(options.command.front(), path != nullptr ? path : "", user).transform_error([this](Error error) {
            if (error.code == ErrorCode::kInvalid) end_.code = kExitNotExecutable;
            return error;
          }));
  end_.code = kExitNotExecutable;
  BSP_CHECK_OK(check_preloadable(file));
  std::string shim = container_.shim();
  if (::access(shim.c_str(), R_OK) != 0) {
    std::fprintf(stderr, "bsp-init: %s is missing: the program runs without it\n", shim.c_str());
    shim.clear();
  }
  BSP_CHECK_OK(container_.open_output());
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return fail_errno("opening /dev/null");
  Spawn what;
  what.argv = options.command;
  what.argv.front() = file;
  what.env = program_environment(environ, shim, user);
  program_.process.seen = container_.cpu;
  if (program_.level) {
    program_.process.seen = container_.cpu.and_in(*program_.level);
    keep_to_level(*program_.level, what.env);
  }
  what.env.push_back(std::string(names::kEnvInitPid) + "=" + std::to_string(::getpid()));
  what.user = user;
  what.descriptors = {null.get(), container_.out.write_end(), container_.err.write_end()};
  what.own_session = true;
  advance_pid_cursor(kFirstProgramPid);
  program_.process.begun_ns = container_.changes.since_ns();
  BSP_TRY(program_.process.pid, spawn(what));
  end_.code = 0;
  container_.close_output();
  return {};
}

void Supervisor::could_not_start(const Error& error) {
  std::fprintf(stderr, "bsp-init: %s\n", error.message.c_str());
  end_.message = error.message;
  program_.state = State::kExited;
}

// One iteration: handles whatever is ready, or the next thing that is due.
void Supervisor::step() {
  keep_connected();
  report_throttling();
  container_.changes.check();
  warm_up_.begin_if_due(container_);
  auto due = std::min(sidecar_.connected() ? throttling_.next : sidecar_.next_try(), fence_.due());
  for (const auto& at : {dump_ ? dump_->kill_at() : std::nullopt, warm_up_.due(), kill_deadline()})
    if (at) due = std::min(due, *at);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - Steady::now()).count();
  const int timeout = static_cast<int>(std::max<std::int64_t>(left, 0));
  OutputRelay &out = container_.out, &err = container_.err;
  pollfd polled[] = {{signals_.get(), POLLIN, 0},
                     {sidecar_.fd(), POLLIN, 0},
                     out.read_poll(),
                     out.write_poll(),
                     err.read_poll(),
                     err.write_poll(),
                     {dump_ ? dump_->found() : -1, POLLIN, 0}};
  if (::poll(polled, std::size(polled), timeout) < 0) return;
  if (polled[2].revents != 0) out.on_readable();
  if (polled[3].revents != 0) out.on_writable();
  if (polled[4].revents != 0) err.on_readable();
  if (polled[5].revents != 0) err.on_writable();
  if (polled[6].revents != 0) {
    dump_->on_found();
    settle_dump();
  }
  if (polled[0].revents != 0) take_signals();
  if (polled[1].revents != 0) take_requests();
  if (dump_) dump_->kill_if_due();
  if (const auto why = fence_.check(program_.process.pid, program_.state == State::kRunning)) kill_program(*why);
  kill_if_due();
}

void Supervisor::take_signals() {
  signalfd_siginfo info{};
  bool children = false;
  while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD) {
      children = true;
    } else {
      forward(static_cast<int>(info.ssi_signo));
    }
  }
  if (children) reap();
}

void Supervisor::forward(int signal) {
  const bool ends = signal == SIGTERM || signal == SIGINT || signal == SIGQUIT || signal >= SIGRTMIN;
  const bool never_ran =
      program_.state == State::kWaiting || program_.state == State::kRestoring || program_.state == State::kRestored;
  if (never_ran) {
    // No program runs here: the container may exit at once, with any stopped copy.
    if (ends) end_.now = 128 + signal;
    return;
  }
  if (program_.process.pid > 0) ::kill(program_.process.pid, signal);
  if (ends && !end_.requested_at) end_.requested_at = Steady::now();
}

// A program that handles the signal has the pod's grace period for it. One that can't use it ends sooner: at once, if
// it is a source that has moved away.
std::optional<Supervisor::Steady::time_point> Supervisor::kill_deadline() const {
  if (!end_.requested_at || program_.process.pid <= 0) return std::nullopt;
  if (program_.state == State::kDumped) return end_.requested_at;
  if (fence_.holds() || program_.state == State::kStopped || program_.state == State::kDumping)
    return std::max({*end_.requested_at, program_.stopped_at, fence_.held_at()}) + kStoppedGrace;
  if (program_.state != State::kRunning || container_.options.grace <= std::chrono::seconds(0)) return std::nullopt;
  const std::chrono::milliseconds grace = container_.options.grace;
  return *end_.requested_at + (grace - std::min(kShutdownReserve, grace / 4));
}

std::string Supervisor::why_due() const {
  if (program_.state == State::kDumped) return "its pod ended after its checkpoint was taken, as in every move";
  if (program_.state == State::kRunning && !fence_.holds())
    return "it did not end within the pod's terminationGracePeriodSeconds (" +
           std::to_string(container_.options.grace.count()) + ")";
  return "its pod had to end while it was stopped";
}

void Supervisor::kill_if_due() {
  if (const auto at = kill_deadline(); !at || Steady::now() < *at || !end_.kill_reason.empty()) return;
  kill_program(why_due());
}

void Supervisor::kill_program(const std::string& reason) {
  if (program_.process.pid <= 0) return;
  ::kill(program_.process.pid, SIGKILL);  // before anything that could take time
  if (reason.empty() || !end_.kill_reason.empty()) return;
  end_.kill_reason = reason;
  std::fprintf(stderr, "bsp-init: the program was killed: %s\n", reason.c_str());
}

void Supervisor::reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
    if (pid <= 0) return;
    on_child(pid, status);
  }
}

void Supervisor::on_child(pid_t pid, int status) {
  if (pid == program_.process.pid) {
    if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
      on_stopped_or_continued(status);
    } else {
      on_program(status);
    }
    return;
  }
  if (WIFSTOPPED(status) || WIFCONTINUED(status)) return;
  if (pid == warm_up_.pid()) {
    warm_up_.ended();
  } else if (dump_) {
    dump_->on_child(pid, status);
    settle_dump();
  } else if (program_.state == State::kRestoring) {
    if (const auto restored = restore_->on_child(pid, status)) on_restored(*restored);
  } else if (program_.state == State::kRestored && restore_->cuts(pid)) {
    if (const auto cut = restore_->on_cut(status); !cut) return on_restored(std::unexpected(cut.error()));
    report_restored();
  }
}

void Supervisor::on_stopped_or_continued(int status) {
  const pid_t pid = program_.process.pid;
  // Reports may be older than what has been done since; /proc has the current state.
  const auto stat = process_stat(pid);
  const bool stopped = stat ? stat->state == 'T' : WIFSTOPPED(status);
  const bool continued = WIFCONTINUED(status) && !stopped && (!stat || stat->state != 't');
  if (fence_.has_stopped(pid)) return;
  if (program_.state == State::kRunning && WIFSTOPPED(status) && stopped) {
    program_.stopped_at = Steady::now();
    container_.drain_output();
    program_.state = State::kStopped;
    fault_point("init.stopped", pid);
    report(control::Stopped{.pid = pid});
  } else if (continued && program_.state == State::kDumped) {
    // A copy may run elsewhere. The thread at the gate would stop again by itself, the others compute on.
    ::kill(pid, SIGSTOP);
    std::fprintf(stderr,
                 "bsp-init: SIGCONT from outside has continued the program after its checkpoint was taken: it is "
                 "stopped again\n");
  } else if (continued && program_.state == State::kStopped) {
    program_.state = State::kRunning;  // continued from outside, in the container; the sidecar must know
    report(control::Running{.pid = pid});
  }
}

void Supervisor::on_program(int status) {
  program_.process.pid = 0;
  if (dump_) {
    dump_->program_ended();
    dump_.reset();
    report(control::DumpFailed{.migration = migration_, .message = "the program ended during its dump"});
  }
  switch (std::exchange(program_.leaving, Leaving::kNo)) {
    case Leaving::kDiscarded:
      program_.state = State::kWaiting;
      report(control::Discarded{.migration = migration_});
      return;
    case Leaving::kVacated:
      if (become_vacant()) return;
      break;
    case Leaving::kNo:
      break;
  }
  if (WIFSIGNALED(status)) {
    end_.signal = WTERMSIG(status);
    end_.code = 128 + end_.signal;
    const char* name = ::sigabbrev_np(end_.signal);
    end_.message =
        "killed by SIG" + std::string(name != nullptr ? name : "?") + (WCOREDUMP(status) ? " (core dumped)" : "");
    if (end_.signal == SIGKILL && end_.kill_reason.empty() && memory_kills().value_or(0) > 0)
      end_.kill_reason = kMemoryLimit;
    if (end_.signal == SIGKILL && !end_.kill_reason.empty()) end_.message += ": " + end_.kill_reason;
  } else {
    end_.code = WEXITSTATUS(status);
    if (end_.code != 0) end_.message = refusal_in(container_.options.run_dir, container_.user);
  }
  program_.state = State::kExited;
}

// The program has ended, or this container must end: writes the last output and sends the last message to the
// sidecar.
int Supervisor::finish() {
  if (end_.now && program_.process.pid > 0) {
    ::kill(program_.process.pid, SIGKILL);
    while (::waitpid(program_.process.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  // The program's children end with it: once the sidecar reports the end, the rank may be started elsewhere.
  kill_descendants(warm_up_.pid());
  container_.drain_output();
  container_.out.flush(kFlushLimitMs);
  container_.err.flush(kFlushLimitMs);
  if (end_.now) return *end_.now;
  if (end_.code != 0) {
    note_finalized(container_.options.run_dir + "/ring", container_.options.termination_log);
    note_reason(end_.message, container_.options.termination_log);
  }
  report(control::Exited{.code = end_.code, .signal = end_.signal, .message = end_.message});
  if (::access(container_.options.run_dir.c_str(), F_OK) == 0) await_bye();
  return end_.code;
}

// The sidecar takes the message, and then needs this container no more.
void Supervisor::await_bye() {
  end_.bye_until = Steady::now() + (end_.requested_at && !sidecar_.connected() ? kByeLimitAlone : kByeLimit);
  while (!end_.bye && !end_.now && Steady::now() < end_.bye_until) {
    keep_connected();
    pollfd polled[] = {{sidecar_.fd(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    if (::poll(polled, 2, sidecar_.connected() ? 200 : 20) < 0) continue;
    if (polled[0].revents != 0) take_requests();
    if (polled[1].revents != 0) {
      signalfd_siginfo info{};
      while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
        // A second request to end doesn't wait for the sidecar.
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) end_.bye = true;
      }
    }
  }
}

}  // namespace bsp::init
