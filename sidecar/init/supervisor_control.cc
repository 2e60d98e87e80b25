// bsp-init's end of the messages with the sidecar (sidecar/control/messages.h). See supervisor.h.
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/core/fault.h"
#include "base/core/rank_line.h"
#include "base/core/read_file.h"
#include "crds/names.h"
#include "sidecar/init/cgroup.h"
#include "sidecar/init/supervisor.h"

namespace bsp::init {

// Connects if it is time to; a new connection starts with the complete state.
void Supervisor::keep_connected() {
  if (socket_ || Steady::now() < next_connect_) return;
  // Frequently at the beginning, because both containers start together, then less often.
  next_connect_ = Steady::now() + std::chrono::milliseconds(connect_failures_++ < 250 ? 20 : 200);
  const std::string path = options_.run_dir + "/control";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return;
  std::memcpy(address.sun_path, path.data(), path.size());
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return;
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return;
  // A peer on this socket can have a program restored with criu's capabilities, so it must not be the program itself.
  // (A program that runs as root can't be distinguished from a sidecar that does.)
  ucred listener{};
  socklen_t size = sizeof listener;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &listener, &size) != 0) return;
  if (listener.uid == user_.uid && listener.uid != ::geteuid()) return;
  socket_ = std::move(socket);
  connect_failures_ = 0;
  send_hello();
}

void Supervisor::send_hello() {
  report(control::Hello{.mode = options_.restore ? control::Mode::kRestore : control::Mode::kRun,
                        .uid = user_.uid,
                        .gid = user_.gid,
                        .pid = program_,
                        .state = state_,
                        .code = exit_code_,
                        .signal = exit_signal_,
                        .message = exit_message_,
                        .migration = migration_,
                        .features = cpu_.seen.bits()});
}

// Not while ranks wait for criu: it isn't urgent.
void Supervisor::report_throttling() {
  const auto now = Steady::now();
  if (!socket_ || now < next_throttling_) return;
  next_throttling_ = now + std::chrono::seconds(1);
  if (state_ != State::kRunning) return;
  const auto sum = throttled_ns();
  if (!sum || *sum == throttled_ns_) return;
  throttled_ns_ = *sum;
  report(control::Throttled{.ns = *sum});
}

// An undelivered message is dropped: the next hello reports the complete state.
void Supervisor::report(const control::FromInit& message) {
  if (!socket_) return;
  if (auto sent = control::send(socket_.get(), control::packet_of(message)); !sent) {
    socket_.reset();
    next_connect_ = Steady::now();
  }
}

void Supervisor::on_control() {
  while (socket_) {
    const auto packet = control::receive(socket_.get());
    if (packet) {
      if (const auto message = control::to_init(*packet)) handle(*message);
    } else if (packet.error().code == ErrorCode::kTimeout) {
      return;
    } else if (packet.error().code == ErrorCode::kUnavailable) {
      socket_.reset();
      next_connect_ = Steady::now();
      return;
    }
    // kInvalid: ignores an unreadable packet; the next one may be valid.
  }
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
                   if (state_ == State::kExited) bye_ = true;
                 },
                 [this](const control::Stay&) {
                   // The kubelet would end a pod that is being deleted anyway, one grace period later.
                   if (end_requested_at_)
                     bye_ = true;
                   else
                     bye_until_ = Steady::now() + kByeLimit;
                 },
                 [this](const control::Fresh& m) { vouched(static_cast<std::int64_t>(m.ns)); },
                 [this](const control::Quit& m) { exit_now_ = m.code; },
             },
             message);
}

void Supervisor::start(CpuFeatures level) {
  // A program that has left for another pod is not started again here (vacate()).
  if (options_.restore || state_ != State::kWaiting || !std::exchange(options_.awaits_start, false)) return;
  cpu_.level = level;
  start_or_end();
  // Of a program that could not be started, finish() reports the end.
  if (state_ == State::kRunning) send_hello();
}

// THE place that continues a stopped or restored program. The only other SIGCONT, release(), undoes hold().
void Supervisor::continue_program() {
  if (state_ == State::kDumping) {
    // The epoch that lets it run here is open: the dump is no longer needed.
    continue_after_dump_ = true;
    abandon();
    return;
  }
  const bool may = state_ == State::kStopped || state_ == State::kDumped || state_ == State::kRestored;
  if (may && program_ > 0) {
    fault_point("init.continue", program_);
    if (vacated_ && state_ == State::kRestored) name_rank();
    state_ = State::kRunning;
    ::kill(program_, SIGCONT);
  }
  if (state_ == State::kRunning) {
    report(control::Running{.pid = program_});
  }
}

// Before the rank's first output here: the container's log begins with that of the rank that has left.
void Supervisor::name_rank() const {
  const auto descriptor = read_file(options_.run_dir + "/epoch");
  if (const auto rank = descriptor ? number_in(*descriptor, names::kEpochRank) : std::nullopt)
    std::fprintf(stderr, "%s\n", line_of_rank(*rank).c_str());
}

void Supervisor::kill_program(const std::string& reason) {
  if (program_ <= 0) return;
  ::kill(program_, SIGKILL);  // before anything that could take time
  if (reason.empty() || !kill_reason_.empty()) return;
  kill_reason_ = reason;
  std::fprintf(stderr, "bsp-init: the program was killed: %s\n", reason.c_str());
}

}  // namespace bsp::init
