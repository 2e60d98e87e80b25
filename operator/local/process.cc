#include "operator/local/process.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

namespace bsp::local {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

Result<void> ChildProcess::start(const std::function<int()>& work) {
  stop();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("starting a process");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);  // it died before the prctl
    ::signal(SIGINT, SIG_IGN);
    sigset_t none;  // don't inherit the parent's blocked signals
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::_exit(work());
  }
  pid_ = pid;
  return {};
}

std::optional<int> ChildProcess::ended() {
  int status = 0;
  if (pid_ <= 0 || ::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = 0;
  return status;
}

void ChildProcess::stop() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGTERM);
  for (const auto deadline = Clock::now() + 10s; Clock::now() < deadline;) {
    if (ended()) return;
    ::poll(nullptr, 0, 20);
  }
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

}  // namespace bsp::local
