// The program's life as PID 1 sees it: start, output, signals, end. See supervisor.h.
#include "sidecar/init/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
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
#include "sidecar/init/carry.h"
#include "sidecar/init/cgroup.h"
#include "sidecar/init/cpu_level.h"
#include "sidecar/init/files.h"
#include "sidecar/init/last_words.h"
#include "sidecar/init/process.h"
#include "sidecar/init/program.h"
#include "sidecar/init/user.h"

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

Supervisor::Supervisor(Options options) : options_(std::move(options)) {}

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
  const bool waits = options_.restore || options_.awaits_start;
  state_ = waits ? State::kWaiting : State::kRunning;

  if (auto ready = prepare(); !ready) {
    exit_code_ = kExitBadSetting;
    could_not_start(ready.error());
  } else {
    // Delayed, so that the program's start needn't wait for what only its first move needs.
    warm_up_at_ = Steady::now() + (options_.restore ? std::chrono::seconds(0) : kWarmUpAfter);
    if (!waits) start_or_end();
  }
  while (state_ != State::kExited && !exit_now_) step();
  return finish();
}

Result<void> Supervisor::prepare() {
  BSP_TRY(const std::string spec, user_spec(options_.user, options_.run_dir + "/user"));
  BSP_TRY(user_, resolve_user(spec, options_.groups));
  BSP_TRY(carry_paths_, parse_carry_paths(options_.carry_paths));
  const auto machine = CpuFeatures::of_this_machine_or(options_.cpu_features);
  if (!machine)
    return fail(ErrorCode::kInvalid, std::format("{} must be names of CPU features between commas, not \"{}\"",
                                                 names::kEnvCpuFeatures, options_.cpu_features));
  cpu_.of_machine = *machine;
  // An emptyDir is writable for every user. The sticky bit prevents the program from renaming the sidecar's files
  // there, above all the control socket: only a file's owner, or root as the directory's, may.
  struct stat shared{};
  if (::stat(options_.run_dir.c_str(), &shared) == 0 && (shared.st_mode & S_IWOTH) != 0 &&
      (shared.st_mode & S_ISVTX) == 0)
    (void)::chmod(options_.run_dir.c_str(), (shared.st_mode & 07777) | S_ISVTX);
  criu_paths_ = {.binary = options_.criu, .work = options_.run_dir + "/criu"};
  return {};
}

void Supervisor::start_or_end() {
  state_ = State::kRunning;
  if (auto started = start_program(); !started) could_not_start(started.error());
}

Result<void> Supervisor::start_program() {
  const char* path = ::getenv("PATH");
  exit_code_ = kExitNotFound;
  BSP_TRY(
      const std::string file,
      find_command(options_.command.front(), path != nullptr ? path : "", user_).transform_error([this](Error error) {
        if (error.code == ErrorCode::kInvalid) exit_code_ = kExitNotExecutable;
        return error;
      }));
  exit_code_ = kExitNotExecutable;
  BSP_CHECK_OK(check_preloadable(file));
  std::string shim = options_.runtime_dir + "/libbspmpi.so";
  if (::access(shim.c_str(), R_OK) != 0) {
    std::fprintf(stderr, "bsp-init: %s is missing: the program runs without it\n", shim.c_str());
    shim.clear();
  }
  BSP_CHECK_OK(out_.open(user_));
  BSP_CHECK_OK(err_.open(user_));
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return fail_errno("opening /dev/null");
  Spawn what;
  what.argv = options_.command;
  what.argv.front() = file;
  what.env = program_environment(environ, shim, user_);
  cpu_.seen = cpu_.of_machine;
  if (cpu_.level) {
    cpu_.seen = cpu_.of_machine.and_in(*cpu_.level);
    keep_to_level(*cpu_.level, what.env);
  }
  what.env.push_back(std::string(names::kEnvInitPid) + "=" + std::to_string(::getpid()));
  what.user = user_;
  what.descriptors = {null.get(), out_.write_end(), err_.write_end()};
  what.own_session = true;
  advance_pid_cursor(kFirstProgramPid);
  begun_ns_ = changes_.since_ns();
  BSP_TRY(program_, spawn(what));
  exit_code_ = 0;
  out_.close_write_end();
  err_.close_write_end();
  return {};
}

void Supervisor::could_not_start(const Error& error) {
  std::fprintf(stderr, "bsp-init: %s\n", error.message.c_str());
  exit_message_ = error.message;
  state_ = State::kExited;
}

// One iteration: handles whatever is ready, or the next thing that is due.
void Supervisor::step() {
  keep_connected();
  report_throttling();
  const auto now = Steady::now();
  changes_.check();
  if (warm_up_at_ && now >= *warm_up_at_) warm_up();
  auto due = socket_ ? next_throttling_ : next_connect_;
  due = std::min(due, next_fence_);
  for (const auto& at : {kill_criu_at_, warm_up_at_, kill_deadline()})
    if (at) due = std::min(due, *at);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - now).count();
  const int timeout = static_cast<int>(std::max<std::int64_t>(left, 0));
  pollfd polled[] = {{signals_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}, out_.read_poll(),
                     out_.write_poll(),           err_.read_poll(),           err_.write_poll(),
                     {found_.get(), POLLIN, 0}};
  if (::poll(polled, std::size(polled), timeout) < 0) return;
  if (polled[2].revents != 0) out_.on_readable();
  if (polled[3].revents != 0) out_.on_writable();
  if (polled[4].revents != 0) err_.on_readable();
  if (polled[5].revents != 0) err_.on_writable();
  if (polled[6].revents != 0) on_found();
  if (polled[0].revents != 0) take_signals();
  if (polled[1].revents != 0) on_control();
  if (kill_criu_at_ && Steady::now() >= *kill_criu_at_) {
    kill_criu_at_.reset();
    // criu lifts the stop to run its code inside the program. A stop that is pending when criu dies takes effect
    // before the program's next instruction.
    if (criu_ > 0 && program_ > 0) ::kill(program_, SIGSTOP);
    if (criu_ > 0) kill_session(criu_);
    if (worker_ > 0) ::kill(worker_, SIGKILL);
  }
  watch_fence();
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
  const bool never_ran = state_ == State::kWaiting || state_ == State::kRestoring || state_ == State::kRestored;
  if (never_ran) {
    // No program runs here: the container may exit at once, with any stopped copy.
    if (ends) exit_now_ = 128 + signal;
    return;
  }
  if (program_ > 0) ::kill(program_, signal);
  if (ends && !end_requested_at_) end_requested_at_ = Steady::now();
}

// A program that handles the signal has the pod's grace period for it. One that can't use it ends sooner: at once, if
// it is a source that has moved away.
std::optional<Supervisor::Steady::time_point> Supervisor::kill_deadline() const {
  if (!end_requested_at_ || program_ <= 0) return std::nullopt;
  if (state_ == State::kDumped) return end_requested_at_;
  if (held_ || state_ == State::kStopped || state_ == State::kDumping)
    return std::max(*end_requested_at_, stopped_at_) + kStoppedGrace;
  if (state_ != State::kRunning || options_.grace <= std::chrono::seconds(0)) return std::nullopt;
  const std::chrono::milliseconds grace = options_.grace;
  return *end_requested_at_ + (grace - std::min(kShutdownReserve, grace / 4));
}

std::string Supervisor::why_due() const {
  if (state_ == State::kDumped) return "its pod ended after its checkpoint was taken, as in every move";
  if (state_ == State::kRunning && !held_)
    return "it did not end within the pod's terminationGracePeriodSeconds (" + std::to_string(options_.grace.count()) +
           ")";
  return "its pod had to end while it was stopped";
}

void Supervisor::kill_if_due() {
  if (const auto at = kill_deadline(); !at || Steady::now() < *at || !kill_reason_.empty()) return;
  kill_program(why_due());
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
  if (pid == program_) {
    on_program(status);
    return;
  }
  if (WIFSTOPPED(status) || WIFCONTINUED(status)) return;
  if (pid == warm_) {
    warm_ = 0;
  } else if (pid == criu_) {
    criu_ = 0;
    if (state_ == State::kRestoring) {
      on_restore_criu(status);
    } else {
      // criu may have been killed from outside: stop what it leaves behind before anything else.
      if (status != 0 && program_ > 0) ::kill(program_, SIGSTOP);
      if (status != 0 && failure_.empty()) {
        failure_ = criu_failure(criu_paths_, "dump", user_, status);
      }
      if (status != 0 && worker_ > 0) ::kill(worker_, SIGKILL);
      end_dump_if_ready();
    }
  } else if (pid == worker_) {
    worker_ = 0;
    if (state_ == State::kRestoring) {
      on_unpacked(status);
    } else {
      if (status != 0 && failure_.empty()) {
        failure_ = read_file(worker_log()).value_or("");
        if (failure_.empty()) failure_ = "archiving the carried files was interrupted";
      }
      end_dump_if_ready();
    }
  }
}

void Supervisor::on_program(int status) {
  if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
    // Reports may be older than what has been done since; /proc has the current state.
    const auto stat = process_stat(program_);
    const bool stopped = stat ? stat->state == 'T' : WIFSTOPPED(status);
    if (held_processes_.contains(program_)) return;
    if (state_ == State::kRunning && WIFSTOPPED(status) && stopped) {
      stopped_at_ = Steady::now();
      out_.drain();
      err_.drain();
      state_ = State::kStopped;
      fault_point("init.stopped", program_);
      report(control::Stopped{.pid = program_});
    } else if (WIFCONTINUED(status) && !stopped && (!stat || stat->state != 't') && state_ == State::kDumped) {
      // A copy may run elsewhere. The thread at the gate would stop again by itself, the others compute on.
      ::kill(program_, SIGSTOP);
      std::fprintf(stderr,
                   "bsp-init: SIGCONT from outside has continued the program after its checkpoint was taken: it is "
                   "stopped again\n");
    } else if (WIFCONTINUED(status) && !stopped && (!stat || stat->state != 't') && state_ == State::kStopped) {
      state_ = State::kRunning;  // continued from outside, in the container; the sidecar must know
      report(control::Running{.pid = program_});
    }
    return;
  }
  program_ = 0;
  if (state_ == State::kDumping) {
    if (criu_ > 0) kill_session(criu_);
    report(control::DumpFailed{.migration = migration_, .message = "the program ended during its dump"});
  }
  switch (std::exchange(leaving_, Leaving::kNo)) {
    case Leaving::kDiscarded:
      state_ = State::kWaiting;
      report(control::Discarded{.migration = migration_});
      return;
    case Leaving::kVacated:
      if (become_vacant()) return;
      break;
    case Leaving::kNo:
      break;
  }
  if (WIFSIGNALED(status)) {
    exit_signal_ = WTERMSIG(status);
    exit_code_ = 128 + exit_signal_;
    const char* name = ::sigabbrev_np(exit_signal_);
    exit_message_ =
        "killed by SIG" + std::string(name != nullptr ? name : "?") + (WCOREDUMP(status) ? " (core dumped)" : "");
    if (exit_signal_ == SIGKILL && kill_reason_.empty() && memory_kills().value_or(0) > 0) kill_reason_ = kMemoryLimit;
    if (exit_signal_ == SIGKILL && !kill_reason_.empty()) exit_message_ += ": " + kill_reason_;
  } else {
    exit_code_ = WEXITSTATUS(status);
    if (exit_code_ != 0) exit_message_ = refusal_in(options_.run_dir, user_);
  }
  state_ = State::kExited;
}

// The program has ended, or this container must end: writes the last output and sends the last message to the
// sidecar.
int Supervisor::finish() {
  if (exit_now_ && program_ > 0) {
    ::kill(program_, SIGKILL);
    while (::waitpid(program_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  // The program's children end with it: once the sidecar reports the end, the rank may be started elsewhere.
  kill_descendants();
  out_.drain();
  err_.drain();
  out_.flush(kFlushLimitMs);
  err_.flush(kFlushLimitMs);
  if (exit_now_) return *exit_now_;
  if (exit_code_ != 0) {
    note_finalized(options_.run_dir + "/ring", options_.termination_log);
    note_aborted(exit_message_, options_.termination_log);
  }
  report(control::Exited{.code = exit_code_, .signal = exit_signal_, .message = exit_message_});
  const bool in_pod = ::access(options_.run_dir.c_str(), F_OK) == 0;
  bye_until_ = Steady::now() + (end_requested_at_ && !socket_ ? kByeLimitAlone : kByeLimit);
  while (in_pod && !bye_ && !exit_now_ && Steady::now() < bye_until_) {
    keep_connected();
    pollfd polled[] = {{socket_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    if (::poll(polled, 2, socket_ ? 200 : 20) < 0) continue;
    if (polled[0].revents != 0) on_control();
    if (polled[1].revents != 0) {
      signalfd_siginfo info{};
      while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
        // A second request to end doesn't wait for the sidecar.
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) bye_ = true;
      }
    }
  }
  return exit_code_;
}

}  // namespace bsp::init
