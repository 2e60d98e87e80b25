// Reads small files and /proc entries, shared by the parts of bsp-init.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/core/error.h"

namespace bsp::init {

Result<std::string> read_link(const std::string& path);

// Names in a directory without "." and "..", sorted. kNotFound if it doesn't exist.
Result<std::vector<std::string>> list_dir(const std::string& path);
// The same, but a directory that doesn't exist has none.
Result<std::vector<std::string>> list_dir_if_any(const std::string& path);
// The same for an open directory; `path` is for the message.
Result<std::vector<std::string>> list_dir_at(int fd, const std::string& path);

struct ProcessStat {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';  // R S D T t Z X, see proc(5)
  std::string name;
};

// From /proc/<pid>/stat; kNotFound if there is no such process.
Result<ProcessStat> process_stat(pid_t pid);

// All descendants of this process, PID 1 of its container (so not processes started by `exec`).
Result<std::vector<ProcessStat>> descendants_of_init();

}  // namespace bsp::init
