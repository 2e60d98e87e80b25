// Credentials and creation of the processes that bsp-init starts: the user's program (no capability at all), criu
// (three ambient capabilities under the program's uid) and small workers.
//
// bsp-init is root in its container with CHECKPOINT_RESTORE, SYS_PTRACE, SETPCAP, SETUID, SETGID and KILL, but
// without DAC capabilities: code that touches files or /proc entries of the program's user must run as that user. It
// uses raw system calls, because the binary is static and links no libcap.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/core/error.h"

namespace bsp::init {

struct User {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string home;             // "" if /etc/passwd has no entry for the uid
  std::vector<gid_t> groups{};  // supplementary, in ascending order

  bool operator==(const User&) const = default;
};

enum class Privileges {
  kNone,       // the program: no capability in any set, bounding set empty, no_new_privs
  kCheckpoint  // criu: CHECKPOINT_RESTORE, SYS_PTRACE, SETPCAP, ambient, so that exec keeps them
};

struct Spawn {
  std::vector<std::string> argv;  // argv[0] is the path that is executed
  std::vector<std::string> env;
  User user;
  Privileges privileges = Privileges::kNone;
  // Descriptors of the child: position i becomes descriptor i, all others are closed.
  std::vector<int> descriptors;
  bool own_session = false;
};

// Supplementary groups of this process, in ascending order.
std::vector<gid_t> own_groups();

// Starts the process and waits until exec has succeeded. kNotFound or kFailed with the reason of a failed exec.
Result<pid_t> spawn(const Spawn& what);
// Kills a process that was started with `own_session`, and its children: one that waits for a killed parent would run
// beside the program for ever, and hold its rank.
void kill_session(pid_t leader);

// Kills all descendants of this process, PID 1 of its container, but for one (0: none), and reaps them.
void kill_descendants(pid_t but);

// Forks a worker that runs `body` as `user` without capabilities and exits with its value; its standard error goes to
// `error_fd`. Only for short, self-contained work: archives.
Result<pid_t> fork_as(const User& user, int error_fd, const std::function<int()>& body);

// Sets this process's file-system identity while in scope: it opens, creates and looks up files and /proc entries as
// the program's user. Other capabilities, including SYS_PTRACE, stay.
class FsIdentity {
 public:
  explicit FsIdentity(const User& user);
  FsIdentity(const FsIdentity&) = delete;
  FsIdentity& operator=(const FsIdentity&) = delete;
  ~FsIdentity();
};

// Makes the next PID that the kernel assigns at least `at_least`, by starting and ending empty threads (ns_last_pid
// is read-only in containers). Restored processes come back under their old PIDs, so programs live above this line
// and criu's own helpers below it. A thread costs about 50 us of the pod's own quota; 300 is where the kernel
// continues when the numbers have wrapped around (RESERVED_PIDS).
void advance_pid_cursor(pid_t at_least);
inline constexpr pid_t kFirstProgramPid = 300;

}  // namespace bsp::init
