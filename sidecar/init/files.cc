#include "sidecar/init/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <map>
#include <memory>

#include "base/core/fd.h"
#include "base/core/read_file.h"

namespace bsp::init {

Result<std::string> read_link(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t n = ::readlink(path.c_str(), target, sizeof(target));
  if (n < 0) return fail_errno(path);
  return std::string(target, static_cast<std::size_t>(n));
}

namespace {

struct CloseDir {
  void operator()(DIR* d) const { ::closedir(d); }
};
using Dir = std::unique_ptr<DIR, CloseDir>;

Result<std::vector<std::string>> names_in(const Dir& dir, const std::string& path) {
  if (!dir) return fail_errno("listing " + path);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(dir.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return fail_errno("listing " + path);
  std::ranges::sort(names);
  return names;
}

}  // namespace

Result<std::vector<std::string>> list_dir_at(int fd, const std::string& path) {
  const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  return names_in(Dir(own < 0 ? nullptr : ::fdopendir(own)), path);
}

Result<std::vector<std::string>> list_dir(const std::string& path) {
  return names_in(Dir(::opendir(path.c_str())), path);
}

Result<std::vector<std::string>> list_dir_if_any(const std::string& path) {
  auto names = list_dir(path);
  if (!names && names.error().code == ErrorCode::kNotFound) return std::vector<std::string>();
  return names;
}

Result<ProcessStat> process_stat(pid_t pid) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!text && text.error().code == ErrorCode::kNotFound)
    return fail(ErrorCode::kNotFound, "no process " + std::to_string(pid));
  if (!text) return std::unexpected(text.error());
  // pid (name) state ppid …; the name may contain any character, so it ends at the last parenthesis.
  const std::size_t open = text->find('(');
  const std::size_t close = text->rfind(')');
  ProcessStat stat;
  stat.pid = pid;
  if (open == std::string::npos || close == std::string::npos ||
      std::sscanf(text->c_str() + close + 1, " %c %d", &stat.state, &stat.parent) != 2) {
    return fail(ErrorCode::kFailed, "cannot read /proc/" + std::to_string(pid) + "/stat");
  }
  stat.name = text->substr(open + 1, close - open - 1);
  return stat;
}

Result<std::vector<ProcessStat>> descendants_of_init() {
  const pid_t self = ::getpid();
  std::map<pid_t, ProcessStat> all;
  BSP_TRY(const std::vector<std::string> names, list_dir("/proc"));
  for (const std::string& name : names) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto stat = process_stat(std::atoi(name.c_str()));
    if (stat) all.emplace(stat->pid, *stat);
    if (!stat && stat.error().code != ErrorCode::kNotFound) return std::unexpected(stat.error());
  }
  std::vector<ProcessStat> out;
  for (const auto& [pid, stat] : all) {
    pid_t at = stat.parent;
    while (at != self && all.contains(at)) at = all.at(at).parent;
    if (pid != self && at == self) out.push_back(stat);
  }
  return out;
}

}  // namespace bsp::init
