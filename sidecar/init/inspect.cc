#include "sidecar/init/inspect.h"

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

}  // namespace

std::optional<std::string> unmovable(std::string_view target) {
  for (const Rule& rule : kRules) {
    if (target.starts_with(rule.prefix)) return std::string(rule.reason);
  }
  return std::nullopt;
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
  }
  return {};
}

}  // namespace bsp::init
