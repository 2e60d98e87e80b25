#include "operator/local/command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>

#include "base/core/fd.h"

extern char** environ;

namespace bsp::local {
namespace {

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return fail_errno("pipe");
  return Pipe{Fd(fds[0]), Fd(fds[1])};
}

// Reads once; closes the descriptor at the end of the stream.
void take(Fd& fd, std::string& into) {
  char buffer[16384];
  const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
  if (n > 0)
    into.append(buffer, static_cast<std::size_t>(n));
  else if (n == 0 || errno != EINTR)
    fd.reset();
}

}  // namespace

Result<CommandResult> run_command(const std::vector<std::string>& argv, const std::string& input, Shared shared) {
  BSP_TRY(Pipe out, make_pipe());
  BSP_TRY(Pipe err, make_pipe());
  // A socket instead of a pipe: if the tool exits without reading, we must not get SIGPIPE.
  int in[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0) return fail_errno("socketpair");
  Fd in_child(in[0]);
  Fd in_here(in[1]);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!shared.terminal || !input.empty()) posix_spawn_file_actions_adddup2(&actions, in_child.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), 1);
  if (!shared.errors) posix_spawn_file_actions_adddup2(&actions, err.write.get(), 2);
  // The tool starts with no signals blocked, and in its own process group unless it shares the terminal.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           static_cast<short>(POSIX_SPAWN_SETSIGMASK | (shared.terminal ? 0 : POSIX_SPAWN_SETPGROUP)));
  std::vector<char*> raw;
  for (const std::string& a : argv) raw.push_back(const_cast<char*>(a.c_str()));
  raw.push_back(nullptr);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, raw[0], &actions, &attributes, raw.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error == ENOENT) return fail(ErrorCode::kNotFound, argv[0] + " is not installed or not in PATH");
  if (error != 0) return fail_errno("starting " + argv[0], error);
  in_child.reset();
  out.write.reset();
  err.write.reset();

  CommandResult result;
  std::size_t sent = 0;
  if (input.empty()) in_here.reset();
  while (out.read || err.read) {
    pollfd fds[3] = {{out.read ? out.read.get() : -1, POLLIN, 0},
                     {err.read ? err.read.get() : -1, POLLIN, 0},
                     {in_here ? in_here.get() : -1, POLLOUT, 0}};
    if (::poll(fds, 3, -1) < 0) {
      if (errno == EINTR) continue;
      break;
    }
    if (fds[0].revents != 0) take(out.read, result.out);
    if (fds[1].revents != 0) take(err.read, result.err);
    if (fds[2].revents != 0) {
      const ssize_t n = ::send(in_here.get(), input.data() + sent, input.size() - sent, MSG_NOSIGNAL);
      if (n > 0) sent += static_cast<std::size_t>(n);
      if ((n < 0 && errno != EINTR) || sent == input.size()) in_here.reset();
    }
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return fail_errno("waiting for " + argv[0]);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace bsp::local
