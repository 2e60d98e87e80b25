#include "sidecar/init/inspect.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <format>
#include <limits>
#include <ranges>
#include <vector>

#include "base/core/read_file.h"
#include "sidecar/init/files.h"

namespace bsp::init {
namespace {

struct Rule {
  std::string_view prefix;
  std::string_view reason;
};

// As named in /proc/<pid>/fd. eventfd, eventpoll, timerfd, signalfd, memfd and pipes can be moved.
constexpr Rule kRules[] = {
    {"socket:", "an open socket"},
    {"anon_inode:[perf_event]", "a perf event"},
    {"anon_inode:[io_uring]", "an io_uring"},
    {"anon_inode:[userfaultfd]", "a userfaultfd"},
    {"anon_inode:[fanotify]", "a fanotify descriptor"},
    {"anon_inode:bpf", "a BPF object"},
    {"anon_inode:kvm", "a KVM object"},
    {"anon_inode:[secretmem]", "secret memory"},
    {"anon_inode:[landlock-ruleset]", "a Landlock ruleset"},
    {"/dev/nvidia", "a GPU"},
    {"/dev/dri/", "a GPU"},
    {"/dev/kfd", "a GPU"},
    {"/dev/infiniband/", "an InfiniBand device"},
};

constexpr std::int64_t kQueueFileSystem = 0x19800202;     // MQUEUE_MAGIC
constexpr std::int64_t kHugePageFileSystem = 0x958458f6;  // HUGETLBFS_MAGIC
constexpr const char* kQueues = "/dev/mqueue";
constexpr std::string_view kDeleted = " (deleted)";

// The lines of a string, and the words of a line.
std::vector<std::string_view> parts(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    if (end != 0) out.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return out;
}

std::string unreadable(std::string_view what, const std::string& why) {
  return std::format("{} that can't be read ({})", what, why);
}

// Blockers that only the object itself shows, not its name.
std::optional<std::string> unmovable_object(const std::string& process, const std::string& fd,
                                            std::string_view target) {
  struct statfs kind{};
  if (target.starts_with('/')) {
    if (::statfs((process + "/fd/" + fd).c_str(), &kind) != 0) return unreadable("a file", std::strerror(errno));
    if (kind.f_type == kQueueFileSystem) return "a POSIX message queue";
    if (kind.f_type == kHugePageFileSystem)
      return "a file of huge pages, which criu can't reopen; use madvise(MADV_HUGEPAGE)";
  }
  if (target == "anon_inode:[eventfd]" || target.starts_with("pipe:")) {
    const auto info = read_file(process + "/fdinfo/" + fd);
    if (!info) return unreadable(target.starts_with("pipe:") ? "a pipe" : "an eventfd", info.error().message);
    if (is_semaphore(*info)) return "an eventfd made with EFD_SEMAPHORE, which criu makes an ordinary one";
    if (eventfd_count(*info) > std::numeric_limits<std::uint32_t>::max())
      return "an eventfd whose count has more than 32 bits, of which criu keeps 32; read it";
    if (target.starts_with("pipe:") && (flags_of(*info) & O_DIRECT) != 0)
      return "a pipe made with O_DIRECT, whose packets criu can't tell apart";
  }
  // The kernel reports the place of a watch as a file handle, which can't be opened in a container.
  if (target == "anon_inode:inotify") {
    const auto info = read_file(process + "/fdinfo/" + fd);
    if (!info) return unreadable("an inotify", info.error().message);
    if (info->contains("\ninotify wd:")) return "an inotify watch";
  }
  return std::nullopt;
}

// What this thread doesn't share with the process; criu looks at the process alone. Nothing of a thread that has just ended.
std::optional<std::string> own_of_thread(pid_t process, const std::string& thread) {
  const auto differs = [&](int what) {
    return ::syscall(SYS_kcmp, process, static_cast<pid_t>(std::atoi(thread.c_str())), what, 0, 0) > 0;
  };
  if (differs(KCMP_FILES)) return "descriptors";
  if (differs(KCMP_FS)) return "a working directory and umask";
  return std::nullopt;
}

// They belong to the pod, not to the process, which holds only their identifiers.
Result<void> check_ipc(uid_t uid) {
  struct Table {
    const char* file;
    const char* what;
  };
  for (const Table& table :
       {Table{"shm", "shared memory segment"}, {"sem", "semaphore set"}, {"msg", "message queue"}}) {
    BSP_TRY(const std::string text, read_file_if_any(std::string("/proc/sysvipc/") + table.file));
    if (const auto id = system_v_object(text, uid))
      return fail(ErrorCode::kRefused, std::format("not migratable now: the program's user owns a System V {} ({}, "
                                                   "as listed by ipcs); use the POSIX equivalent, or remove it",
                                                   table.what, *id));
  }
  BSP_TRY(const std::vector<std::string> queues, list_dir_if_any(kQueues));
  for (const std::string& name : queues) {
    struct stat info{};
    const std::string path = std::format("{}/{}", kQueues, name);
    if (::lstat(path.c_str(), &info) != 0) {
      if (errno == ENOENT) continue;
      return fail_errno("reading " + path);
    }
    if (info.st_uid == uid)
      return fail(
          ErrorCode::kRefused,
          std::format("not migratable now: the program's user owns a POSIX message queue, /{}; unlink it", name));
  }
  return {};
}

// criu reopens files by name, with the program's permissions.
std::optional<std::string> cannot_reopen(const std::string& process, const std::string& fd, const std::string& target) {
  struct stat info{};
  if (!target.starts_with('/')) return std::nullopt;
  if (::stat((process + "/fd/" + fd).c_str(), &info) != 0) return unreadable("a file", std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return std::nullopt;
  if (target.ends_with(kDeleted)) {
    if (info.st_nlink == 0) return std::nullopt;  // its content is part of the checkpoint
    return "a file whose name was removed while another link to it remains; close it";
  }
  const auto fdinfo = read_file(process + "/fdinfo/" + fd);
  if (!fdinfo) return unreadable("a file whose mode", fdinfo.error().message);
  if (::faccessat(AT_FDCWD, target.c_str(), access_mode(*fdinfo), AT_EACCESS) == 0 || errno != EACCES)
    return std::nullopt;
  return "open with access that the file's mode no longer permits; change the mode after closing it";
}

// The kernel tells no name of more than PATH_MAX characters.
Result<std::string> name_of(const std::string& link, const std::string& what) {
  auto name = read_link(link);
  if (!name && ::access(link.c_str(), F_OK) == 0)
    return fail(ErrorCode::kRefused, std::format("not migratable now: {} has a name by which criu can't open it ({})",
                                                 what, name.error().message));
  return name;
}

}  // namespace

std::optional<std::string> unmovable(std::string_view target) {
  for (const Rule& rule : kRules) {
    if (target.starts_with(rule.prefix)) return std::string(rule.reason);
  }
  return std::nullopt;
}

bool is_semaphore(std::string_view fdinfo) { return fdinfo.contains("\neventfd-semaphore: 1"); }

std::uint64_t eventfd_count(std::string_view fdinfo) {
  constexpr std::string_view kKey = "\neventfd-count:";
  const std::size_t at = fdinfo.find(kKey);
  if (at == std::string_view::npos) return 0;
  const std::size_t digits = fdinfo.find_first_not_of(' ', at + kKey.size());
  std::uint64_t count = 0;
  if (digits != std::string_view::npos)
    std::from_chars(fdinfo.data() + digits, fdinfo.data() + fdinfo.size(), count, 16);
  return count;
}

unsigned flags_of(std::string_view fdinfo) {
  constexpr std::string_view kKey = "flags:\t";
  const std::size_t at = fdinfo.find(kKey);
  unsigned flags = 0;
  if (at != std::string_view::npos)
    std::from_chars(fdinfo.data() + at + kKey.size(), fdinfo.data() + fdinfo.size(), flags, 8);
  return flags;
}

int access_mode(std::string_view fdinfo) {
  const unsigned flags = flags_of(fdinfo);
  if ((flags & O_PATH) != 0) return F_OK;
  const unsigned mode = flags & O_ACCMODE;
  return mode == O_RDONLY ? R_OK : mode == O_WRONLY ? W_OK : R_OK | W_OK;
}

std::optional<std::string> system_v_object(std::string_view table, uid_t uid) {
  const auto lines = parts(table, '\n');
  if (lines.empty()) return std::nullopt;
  const auto names = parts(lines[0], ' ');
  for (const std::string_view line : lines | std::views::drop(1)) {
    const auto values = parts(line, ' ');
    for (std::size_t i = 0; i < std::min(names.size(), values.size()); ++i)
      if ((names[i] == "uid" || names[i] == "cuid") && values[i] == std::to_string(uid)) return std::string(values[1]);
  }
  return std::nullopt;
}

Result<std::optional<std::string>> mapped_unlinked_name(std::string_view maps, const std::string& dir) {
  for (const std::string_view line : parts(maps, '\n')) {
    const auto words = parts(line, ' ');  // range, mode, offset, device, inode, path
    const std::size_t at = line.find(dir + "/");
    if (words.size() < 6 || at == std::string_view::npos || !line.ends_with(kDeleted)) continue;
    BSP_TRY(const std::vector<std::string> names, list_dir_if_any(dir));
    for (const std::string& name : names) {
      struct stat info{};
      if (::lstat((dir + "/" + name).c_str(), &info) == 0 && std::to_string(info.st_ino) == words[4])
        return std::string(line.substr(at, line.size() - at - kDeleted.size()));
    }
  }
  return std::nullopt;
}

bool has_seccomp_filter(std::string_view status) {
  constexpr std::string_view kKey = "\nSeccomp:\t";
  const std::size_t at = status.find(kKey);
  return at != std::string_view::npos && status.substr(at + kKey.size(), 1) != "0";
}

Result<void> check_movable(pid_t pid, const User& user) {
  BSP_TRY(const std::vector<ProcessStat> others, descendants_of_init());
  for (const ProcessStat& other : others) {
    if (other.pid == pid || other.state == 'Z' || other.state == 'X') continue;
    return fail(ErrorCode::kRefused, "not migratable now: another process, " + std::to_string(other.pid) + " (" +
                                         other.name + "), runs beside the program");
  }
  const FsIdentity as_program(user);
  const std::string process = "/proc/" + std::to_string(pid);
  BSP_TRY(const std::vector<std::string> threads, list_dir(process + "/task"));
  for (const std::string& thread : threads) {
    BSP_TRY(const std::string status, read_file(process + "/task/" + thread + "/status"));
    if (has_seccomp_filter(status))
      return fail(ErrorCode::kRefused,
                  "not migratable now: the program runs under a seccomp filter, which criu can't suspend");
    if (const auto own = own_of_thread(pid, thread))
      return fail(ErrorCode::kRefused, "not migratable now: thread " + thread + " has " + *own +
                                           " of its own (unshare), which criu takes for the process's");
  }
  BSP_TRY(const std::string directory, name_of(process + "/cwd", "the working directory"));
  if (!directory.ends_with(kDeleted) && ::faccessat(AT_FDCWD, directory.c_str(), R_OK | X_OK, AT_EACCESS) != 0 &&
      errno == EACCES)
    return fail(ErrorCode::kRefused, "not migratable now: the working directory, " + directory +
                                         ", is one that the program's user may not read and enter; change its mode, or "
                                         "chdir() to another");
  const std::string dir = process + "/fd";
  BSP_TRY(const std::vector<std::string> descriptors, list_dir(dir));
  for (const std::string& fd : descriptors) {
    BSP_TRY(const std::string target, name_of(dir + "/" + fd, "descriptor " + fd));
    auto what = unmovable(target);
    if (!what) what = unmovable_object(process, fd, target);
    if (what)
      return fail(ErrorCode::kRefused, "not migratable now: descriptor " + fd + " is " + *what + " (" + target + ")");
    if (const auto why = cannot_reopen(process, fd, target))
      return fail(ErrorCode::kRefused, "not migratable now: descriptor " + fd + ", " + target + ", is " + *why);
  }
  BSP_TRY(const std::string maps, read_file(process + "/maps"));
  BSP_TRY(const std::optional<std::string> name, mapped_unlinked_name(maps));
  if (name)
    return fail(ErrorCode::kRefused,
                "not migratable now: " + *name +
                    " is mapped, but this name was removed while another link remains (as after sem_open); "
                    "unmap it (sem_close), or unlink the other name");
  return check_ipc(user.uid);
}

}  // namespace bsp::init
