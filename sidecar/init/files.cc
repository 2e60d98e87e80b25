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

std::vector<std::string> list_dir(const std::string& path) {
  struct CloseDir {
    void operator()(DIR* d) const { ::closedir(d); }
  };
  std::vector<std::string> names;
  const std::unique_ptr<DIR, CloseDir> dir(::opendir(path.c_str()));
  if (!dir) return names;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

Result<ProcessStat> process_stat(pid_t pid) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return fail(ErrorCode::kNotFound, "no process " + std::to_string(pid));
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

std::vector<ProcessStat> descendants_of_init() {
  const pid_t self = ::getpid();
  std::map<pid_t, ProcessStat> all;
  for (const std::string& name : list_dir("/proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (auto stat = process_stat(std::atoi(name.c_str()))) all.emplace(stat->pid, *stat);
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
