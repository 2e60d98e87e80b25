#include "sidecar/shim/leftovers.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <utility>

#include "sidecar/shim/message.h"
#include "sidecar/shim/sockets.h"

namespace bsp::shim {
namespace {

struct File {
  dev_t device;
  ino_t inode;
  mode_t mode;
  bool operator==(const File&) const = default;
};
using Descriptors = std::map<int, File>;

Descriptors before;  // the program's, when the session began to open
Descriptors mpi;     // opened by MPI since

Descriptors list() {
  Descriptors found;
  DIR* dir = opendir("/proc/self/fd");
  if (dir == nullptr) return found;
  while (const dirent* entry = readdir(dir)) {
    if (entry->d_name[0] == '.') continue;
    const int fd = std::atoi(entry->d_name);
    struct stat info;
    if (fd == dirfd(dir) || fstat(fd, &info) != 0) continue;
    found[fd] = {info.st_dev, info.st_ino, info.st_mode};
  }
  closedir(dir);
  return found;
}

}  // namespace

void leftovers_before_open() { before = list(); }

void leftovers_after_open() {
  mpi.clear();
  for (const auto& [fd, file] : list()) {
    auto known = before.find(fd);
    if (known == before.end() || known->second != file) mpi[fd] = file;
  }
}

void leftovers_after_close() {
  for (const auto& [fd, file] : list()) {
    auto known = mpi.find(fd);
    if (known != mpi.end() && known->second == file)
      ::close(fd);
    else if (S_ISSOCK(file.mode) && !is_program_socket(fd) && before.find(fd) == before.end())
      ::close(fd);  // a connection to another rank that MPI made later
  }
}

std::string program_socket() {
  for (const auto& [fd, file] : list())
    if (S_ISSOCK(file.mode) && is_program_socket(fd))
      return "an open socket (descriptor " + std::to_string(fd) + ")";
  return "";
}

}  // namespace bsp::shim
