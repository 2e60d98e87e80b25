#include "sidecar/init/criu.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "base/core/fd.h"
#include "base/core/read_file.h"

namespace bsp::init {
namespace {

void add_common(std::vector<std::string>& argv, const CriuPaths& paths, std::string_view action) {
  argv.insert(argv.end(), {"--unprivileged", "-W", paths.work, "-o", std::string(action) + ".log", "-v1",
                           "--manage-cgroups=ignore", "--network-lock", "skip", "--file-locks", "--ghost-limit", "1G"});
}

}  // namespace

std::vector<std::string> dump_arguments(const CriuPaths& paths, pid_t pid, const std::string& images) {
  std::vector<std::string> argv{paths.binary,        "dump", "--stream", "-t",
                                std::to_string(pid), "-D",   images,     "--leave-stopped"};
  add_common(argv, paths, "dump");
  return argv;
}

std::vector<std::string> restore_arguments(const CriuPaths& paths, const std::string& images,
                                           const std::vector<InheritedPipe>& pipes) {
  std::vector<std::string> argv{paths.binary, "restore", "-d", "-D", images};
  for (const InheritedPipe& pipe : pipes) {
    argv.emplace_back("--inherit-fd");
    argv.push_back("fd[" + std::to_string(pipe.descriptor) + "]:" + pipe.was);
  }
  add_common(argv, paths, "restore");
  return argv;
}

std::vector<std::string> warm_up_arguments(const CriuPaths& paths) {
  return {paths.binary, "check", "--unprivileged", "--feature", "mem_dirty_track", "-W",
          paths.work,   "-o",    "check.log",      "-v1"};
}

Result<void> prepare_work_dir(const CriuPaths& paths) {
  if (::mkdir(paths.work.c_str(), 0777) != 0 && errno != EEXIST) {
    return fail_errno("making " + paths.work);
  }
  // The umask may have cleared mode bits; criu writes here as the program's user.
  if (::chmod(paths.work.c_str(), 0777) != 0 && errno != EPERM) {
    return fail_errno("opening " + paths.work + " for the program's user");
  }
  return {};
}

std::string log_file(const CriuPaths& paths, std::string_view action) {
  return paths.work + "/" + std::string(action) + ".log";
}

Result<pid_t> start_criu(const CriuPaths& paths, std::string_view action, const std::vector<std::string>& argv,
                         const User& user, const std::vector<int>& more) {
  BSP_CHECK_OK(prepare_work_dir(paths));
  const std::string out = paths.work + "/" + std::string(action) + ".out";
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  Fd log;
  {
    const FsIdentity as_program(user);
    // So that old logs aren't mistaken for this run's.
    ::unlink(log_file(paths, action).c_str());
    ::unlink(out.c_str());
    log = Fd(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  }
  if (!null || !log) return fail_errno("opening " + out);
  Spawn what;
  what.argv = argv;
  // criu caches what it has found out about the kernel there.
  what.env = {"XDG_RUNTIME_DIR=" + paths.work, "PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  what.user = user;
  what.privileges = Privileges::kCheckpoint;
  what.descriptors = {null.get(), log.get(), log.get()};
  what.descriptors.insert(what.descriptors.end(), more.begin(), more.end());
  what.own_session = true;
  return spawn(what);
}

std::string criu_errors(std::string_view log) {
  std::vector<std::string> found;
  while (!log.empty()) {
    const std::size_t newline = log.find('\n');
    const std::string_view line = log.substr(0, newline);
    log = newline == std::string_view::npos ? std::string_view() : log.substr(newline + 1);
    // (00.012345)   1234: Error (criu/files.c:123): text
    const std::size_t error = line.find("Error (");
    if (error == std::string_view::npos) continue;
    const std::size_t colon = line.find("): ", error);
    std::string_view text = line.substr(colon == std::string_view::npos ? error : colon + 3);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
      text.remove_suffix(1);
    }
    if (!text.empty() && std::ranges::find(found, text) == found.end()) found.emplace_back(text);
  }
  std::string out;
  for (std::size_t i = 0; i < found.size() && i < 3; ++i) {
    if (i > 0) out += "; ";
    out += found[i];
  }
  return out;
}

std::string criu_failure(const CriuPaths& paths, std::string_view action, const User& user, int wait_status) {
  const FsIdentity as_program(user);  // criu's log is readable only for its user
  const std::string name = "criu " + std::string(action);
  std::string errors = criu_errors(read_file(log_file(paths, action)).value_or(""));
  if (errors.empty()) {
    errors = criu_errors(read_file(paths.work + "/" + std::string(action) + ".out").value_or(""));
  }
  if (!errors.empty()) return name + " failed: " + errors;
  if (WIFSIGNALED(wait_status)) {
    return name + " was killed by signal " + std::to_string(WTERMSIG(wait_status));
  }
  return name + " failed with exit status " + std::to_string(WEXITSTATUS(wait_status)) + " and wrote no error";
}

}  // namespace bsp::init
