#include "sidecar/storage/client.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <format>
#include <utility>

namespace bsp::storage {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kLook = 100ms;  // between two looks at `given_up`
constexpr auto kToEnd = 3s;    // for a client that is asked to end
constexpr std::size_t kMostSaid = 8192;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> raw;
  for (const std::string& text : texts) raw.push_back(const_cast<char*>(text.c_str()));
  raw.push_back(nullptr);
  return raw;
}

void signal_to(const Fd& process, int signal) {
  if (process) ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
}

}  // namespace

Result<Client> Client::start(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                             Limits limits) {
  // A socket, not a pipe: a client that no longer reads must not cost us a SIGPIPE.
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail_errno("socketpair");
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  Fd errors(::memfd_create("bsp-client", MFD_CLOEXEC));
  if (!errors) return fail_errno("memfd_create");

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, errors.get(), 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> words = pointers(argv), variables = pointers(environment);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, words[0], &actions, &attributes, words.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return fail_errno("starting " + argv[0], error);
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) {
    const int why = errno;
    ::waitpid(pid, nullptr, WNOHANG);
    return fail_errno("watching " + argv[0], why);
  }
  return Client(pid, std::move(process), std::move(ours), std::move(errors), limits);
}

Client::~Client() {
  if (!process_) return;
  signal_to(process_, SIGKILL);
  reap();
}

void Client::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  process_.reset();
}

bool Client::ended_within(std::chrono::milliseconds most) {
  if (!process_) return true;
  pollfd entry{.fd = process_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&entry, 1, static_cast<int>(most.count())) <= 0) return false;
  reap();
  return true;
}

bool Client::await_end() { return ended_within(kToEnd); }

void Client::stop() {
  signal_to(process_, SIGTERM);
  if (ended_within(kToEnd)) return;
  signal_to(process_, SIGKILL);
  reap();
}

// Until the descriptor is ready.
Result<void> Client::wait(int fd, short events, steady_clock::time_point& since) const {
  for (;;) {
    pollfd entry{.fd = fd, .events = events, .revents = 0};
    if (::poll(&entry, 1, static_cast<int>(std::chrono::milliseconds(kLook).count())) > 0) return {};
    if (limits_.given_up && *limits_.given_up) return fail(ErrorCode::kUnavailable, "it was given up");
    if (steady_clock::now() - since > limits_.patience)
      return fail(ErrorCode::kTimeout,
                  std::format("no progress within {:.0f} s", std::chrono::duration<double>(limits_.patience).count()));
  }
}

Result<void> Client::write(std::span<const std::byte> bytes) {
  auto since = steady_clock::now();
  while (!bytes.empty()) {
    const ssize_t n = ::send(link_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
      since = steady_clock::now();
    } else if (n < 0 && errno == EAGAIN) {
      BSP_CHECK_OK(wait(link_.get(), POLLOUT, since));
    } else if (n < 0 && errno != EINTR) {
      return fail(ErrorCode::kFailed, "the storage's client no longer reads");
    }
  }
  return {};
}

Result<std::size_t> Client::read(std::span<std::byte> into) {
  auto since = steady_clock::now();
  for (;;) {
    const ssize_t n = ::recv(link_.get(), into.data(), into.size(), 0);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == ECONNRESET) return 0;  // it has ended without reading all of its input
    if (errno == EAGAIN)
      BSP_CHECK_OK(wait(link_.get(), POLLIN, since));
    else if (errno != EINTR)
      return fail_errno("reading from the storage's client");
  }
}

Result<int> Client::finish() {
  ::shutdown(link_.get(), SHUT_WR);
  if (process_) {
    auto since = steady_clock::now();
    BSP_CHECK_OK(wait(process_.get(), POLLIN, since));
    reap();
  }
  return status_;
}

std::string Client::said() const {
  struct stat status{};
  if (::fstat(errors_.get(), &status) != 0) return {};
  const auto size = static_cast<std::size_t>(status.st_size);
  std::string text(std::min(size, kMostSaid), '\0');
  const ssize_t n = ::pread(errors_.get(), text.data(), text.size(), static_cast<off_t>(size - text.size()));
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

std::chrono::nanoseconds Client::cpu_time() const {
  clockid_t clock = 0;
  timespec time{};
  if (!process_ || ::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return {};
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace bsp::storage
