#include "sidecar/shim/leftovers.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
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

// While the session opens, other threads of the program may open files. MPI's own bear its name.
bool is_program_file(int fd, const File& file) {
  if (S_ISSOCK(file.mode)) return is_program_socket(fd);
  if (!S_ISREG(file.mode) && !S_ISDIR(file.mode)) return false;
  char path[4096];
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  for (const char* name : {"open_mpi", "ompi", "pmix", "prte"})
    if (std::strstr(path, name) != nullptr) return false;
  return true;
}

}  // namespace

void leftovers_before_open() { before = list(); }

void leftovers_after_open() {
  mpi.clear();
  for (const auto& [fd, file] : list()) {
    auto known = before.find(fd);
    const bool made_meanwhile = known == before.end() || known->second != file;
    if (made_meanwhile && !is_program_file(fd, file)) mpi[fd] = file;
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
    if (S_ISSOCK(file.mode) && is_program_socket(fd)) return "an open socket (descriptor " + std::to_string(fd) + ")";
  return "";
}

}  // namespace bsp::shim
