#include "sidecar/init/process.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/core/fd.h"
#include "sidecar/init/files.h"

namespace bsp::init {
namespace {

constexpr int kCheckpointCaps[] = {CAP_CHECKPOINT_RESTORE, CAP_SYS_PTRACE, CAP_SETPCAP};

// Sets permitted, effective and inheritable to the given set.
bool set_capabilities(std::span<const int> caps) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  for (const int cap : caps) {
    data[cap / 32].permitted |= 1U << (cap % 32);
    data[cap / 32].effective |= 1U << (cap % 32);
    data[cap / 32].inheritable |= 1U << (cap % 32);
  }
  return ::syscall(SYS_capset, &header, data) == 0;
}

// Runs in the child, between fork and exec. Returns what failed, or nullptr.
const char* take_identity(const User& user, Privileges privileges) {
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  if (privileges == Privileges::kNone) {
    for (int cap = 0; cap <= 63; ++cap) {
      if (::prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1) ::prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    }
  }
  // setgroups fails without CAP_SETGID, as in unit tests; harmless if it would change nothing.
  if (::setgroups(user.groups.size(), user.groups.data()) != 0 && own_groups() != user.groups) {
    return "setting the program's supplementary groups";
  }
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return "keeping capabilities";
  if (::setresgid(user.gid, user.gid, user.gid) != 0) return "switching to the program's group";
  if (::setresuid(user.uid, user.uid, user.uid) != 0) return "switching to the program's user";
  if (privileges == Privileges::kNone) {
    if (!set_capabilities({})) return "dropping capabilities";
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "setting no_new_privs";
    return nullptr;
  }
  if (!set_capabilities(kCheckpointCaps)) {
    return "acquiring CHECKPOINT_RESTORE, SYS_PTRACE and SETPCAP (the container requires all three)";
  }
  for (const int cap : kCheckpointCaps) {
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) != 0) {
      return "raising ambient capabilities";
    }
  }
  return nullptr;
}

void default_signals() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Position i of `wanted` becomes descriptor i; `keep` survives just above them, close-on-exec.
int place_descriptors(const std::vector<int>& wanted, int keep) {
  const int base = static_cast<int>(wanted.size());
  std::vector<int> moved;
  // Move them above the targets first, so that no target is overwritten before it was copied.
  const int high = base + 16;
  for (const int fd : wanted) moved.push_back(::fcntl(fd, F_DUPFD_CLOEXEC, high));
  keep = ::fcntl(keep, F_DUPFD_CLOEXEC, high);
  for (int i = 0; i < base; ++i) ::dup2(moved[static_cast<std::size_t>(i)], i);
  ::dup3(keep, base, O_CLOEXEC);
  ::syscall(SYS_close_range, base + 1, ~0U, 0);
  return base;
}

struct ExecFailure {
  int error;
  char what[96];
};

[[noreturn]] void report_and_die(int fd, const char* what) {
  ExecFailure failure{errno, {}};
  std::strncpy(failure.what, what, sizeof(failure.what) - 1);
  [[maybe_unused]] const ssize_t n = ::write(fd, &failure, sizeof(failure));
  ::_exit(127);
}

std::vector<char*> c_strings(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

int end_thread(void*) {
  ::syscall(SYS_exit, 0);
  return 0;
}

}  // namespace

std::vector<gid_t> own_groups() {
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(count, 0)));
  std::ranges::sort(groups);
  return groups;
}

Result<pid_t> spawn(const Spawn& what) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("making a pipe");
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const std::vector<char*> argv = c_strings(what.argv);
  const std::vector<char*> env = c_strings(what.env);
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("starting " + what.argv[0]);
  if (pid == 0) {
    const int report = place_descriptors(what.descriptors, write_end.get());
    if (what.own_session) ::setsid();
    if (const char* step = take_identity(what.user, what.privileges)) report_and_die(report, step);
    default_signals();
    ::execve(argv[0], argv.data(), env.data());
    report_and_die(report, "");
  }
  write_end.reset();
  ExecFailure failure{};
  ssize_t n = 0;
  while ((n = ::read(read_end.get(), &failure, sizeof(failure))) < 0 && errno == EINTR) {
  }
  if (n == 0) return pid;
  ::waitpid(pid, nullptr, 0);
  const std::string step = failure.what[0] == '\0' ? what.argv[0] : failure.what;
  return fail_errno(step, failure.error);
}

void kill_session(pid_t leader) { ::kill(-leader, SIGKILL); }

Result<pid_t> fork_as(const User& user, int error_fd, const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("starting a worker");
  if (pid > 0) return pid;
  ::dup2(error_fd, STDERR_FILENO);
  if (const char* step = take_identity(user, Privileges::kNone)) {
    std::fprintf(stderr, "%s: %s\n", step, std::strerror(errno));
    ::_exit(1);
  }
  default_signals();
  const int code = body();
  std::fflush(stderr);
  ::_exit(code);
}

FsIdentity::FsIdentity(const User& user) {
  ::setfsgid(user.gid);
  ::setfsuid(user.uid);
}

FsIdentity::~FsIdentity() {
  ::setfsuid(::geteuid());
  ::setfsgid(::getegid());
}

void advance_pid_cursor(pid_t at_least) {
  constexpr std::size_t kStack = 16 * 1024;
  void* stack = ::mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) return;
  // A thread costs a PID like a process and needs no wait; VFORK lets them share one stack.
  constexpr int kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_VFORK;
  pid_t last = 0;
  for (;;) {
    const pid_t pid = ::clone(end_thread, static_cast<char*>(stack) + kStack, kFlags, nullptr);
    // Smaller than the previous one: the numbers have wrapped around, so all above are used up.
    if (pid < 0 || pid + 1 >= at_least || pid < last) break;
    last = pid;
  }
  ::munmap(stack, kStack);
}

void kill_descendants(pid_t but) {
  for (int round = 0; round < 1000; ++round) {
    const auto all = descendants_of_init();
    bool alive = !all;  // or it can't be known
    for (const ProcessStat& process : all.value_or(std::vector<ProcessStat>())) {
      if (process.pid == but) continue;
      ::kill(process.pid, SIGKILL);
      alive = true;
    }
    if (!alive) return;
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    ::usleep(1000);
  }
}

}  // namespace bsp::init
