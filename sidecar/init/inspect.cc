#include "sidecar/init/inspect.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/core/read_file.h"
#include "sidecar/init/files.h"

namespace bsp::init {
namespace {

struct Rule {
  std::string_view prefix;
  std::string_view reason;
};

// As /proc/<pid>/fd names them. eventfd, eventpoll, timerfd, signalfd, inotify and pipes do move.
constexpr Rule kRules[] = {
    {"socket:", "an open socket"},
    {"anon_inode:[perf_event]", "a perf event"},
    {"anon_inode:[io_uring]", "an io_uring"},
    {"anon_inode:[userfaultfd]", "a userfaultfd"},
    {"anon_inode:[fanotify]", "a fanotify descriptor"},
    {"anon_inode:bpf", "a BPF object"},
    {"anon_inode:kvm", "a KVM object"},
    {"anon_inode:[secretmem]", "secret memory"},
    {"/dev/mqueue/", "a POSIX message queue"},
    {"/dev/nvidia", "a GPU"},
    {"/dev/dri/", "a GPU"},
    {"/dev/kfd", "a GPU"},
    {"/dev/infiniband/", "an InfiniBand device"},
};

// criu opens files again under their names, with the program's rights.
std::optional<std::string> not_to_be_opened_again(const std::string& process, const std::string& fd,
                                                  const std::string& target) {
  constexpr std::string_view kDeleted = " (deleted)";
  struct stat info{};
  if (!target.starts_with('/') || ::stat((process + "/fd/" + fd).c_str(), &info) != 0 || !S_ISREG(info.st_mode))
    return std::nullopt;
  if (target.ends_with(kDeleted)) {
    if (info.st_nlink == 0) return std::nullopt;  // its content is part of the checkpoint
    return "a file of which this name was removed and another is left; close it";
  }
  const int mode = access_mode(read_file(process + "/fdinfo/" + fd).value_or(""));
  if (::faccessat(AT_FDCWD, target.c_str(), mode, AT_EACCESS) == 0 || errno != EACCES) return std::nullopt;
  return "open for what the mode of the file no longer permits; change the mode when it has been closed";
}

}  // namespace

std::optional<std::string> unmovable(std::string_view target) {
  for (const Rule& rule : kRules) {
    if (target.starts_with(rule.prefix)) return std::string(rule.reason);
  }
  return std::nullopt;
}

int access_mode(std::string_view fdinfo) {
  constexpr std::string_view kKey = "flags:\t";
  const std::size_t at = fdinfo.find(kKey);
  unsigned flags = 0;
  if (at != std::string_view::npos)
    std::from_chars(fdinfo.data() + at + kKey.size(), fdinfo.data() + fdinfo.size(), flags, 8);
  if ((flags & O_PATH) != 0) return F_OK;
  const unsigned mode = flags & O_ACCMODE;
  return mode == O_RDONLY ? R_OK : mode == O_WRONLY ? W_OK : R_OK | W_OK;
}

bool has_seccomp_filter(std::string_view status) {
  constexpr std::string_view kKey = "\nSeccomp:\t";
  const std::size_t at = status.find(kKey);
  return at != std::string_view::npos && status.substr(at + kKey.size(), 1) != "0";
}

Result<void> check_movable(pid_t pid, const User& user) {
  for (const ProcessStat& other : descendants_of_init()) {
    if (other.pid == pid || other.state == 'Z' || other.state == 'X') continue;
    return fail(ErrorCode::kRefused, "not migratable now: another process, " + std::to_string(other.pid) + " (" +
                                         other.name + "), runs beside the program's own");
  }
  const FsIdentity as_program(user);
  const std::string process = "/proc/" + std::to_string(pid);
  for (const std::string& thread : list_dir(process + "/task"))
    if (has_seccomp_filter(read_file(process + "/task/" + thread + "/status").value_or("")))
      return fail(ErrorCode::kRefused,
                  "not migratable now: the program runs under a seccomp filter, which criu can't suspend");
  const std::string dir = process + "/fd";
  const auto descriptors = list_dir(dir);
  for (const std::string& fd : descriptors) {
    const auto target = read_link(dir + "/" + fd);
    if (!target) continue;
    if (const auto what = unmovable(*target)) {
      return fail(ErrorCode::kRefused, "not migratable now: descriptor " + fd + " is " + *what + " (" + *target + ")");
    }
    if (const auto what = not_to_be_opened_again(process, fd, *target))
      return fail(ErrorCode::kRefused, "not migratable now: descriptor " + fd + ", " + *target + ", is " + *what);
  }
  return {};
}

}  // namespace bsp::init
