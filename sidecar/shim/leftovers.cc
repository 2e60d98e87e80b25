#include "sidecar/shim/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "sidecar/shim/descriptors.h"

namespace bsp::shim {
namespace {

struct OpenFile {
  dev_t device;
  ino_t inode;
  mode_t mode;
  bool operator==(const OpenFile&) const = default;
};
using Descriptors = std::map<int, OpenFile>;

Descriptors before;     // all descriptors that were open before the session opened
Descriptors mpi_files;  // MPI's files opened since

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

bool is_mpi_file(int fd, const OpenFile& file) {
  if (!S_ISREG(file.mode) && !S_ISDIR(file.mode)) return false;
  char path[4096];
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  for (const char* name : {"open_mpi", "ompi", "pmix", "prte"})
    if (std::strstr(path, name) != nullptr) return true;
  return false;
}

}  // namespace

void leftovers_before_open() { before = list(); }

void leftovers_after_open() {
  mpi_files.clear();
  for (const auto& [fd, file] : list()) {
    auto known = before.find(fd);
    if ((known == before.end() || known->second != file) && is_mpi_file(fd, file)) mpi_files[fd] = file;
  }
}

void leftovers_after_close() {
  for (const auto& [fd, file] : list()) {
    auto known = mpi_files.find(fd);
    if (owner_of(fd) == Owner::kMpi || (known != mpi_files.end() && known->second == file)) ::close(fd);
  }
}

std::vector<std::pair<int, FileIdentity>> regular_files() {
  std::vector<std::pair<int, FileIdentity>> found;
  for (const auto& [fd, file] : list())
    if (S_ISREG(file.mode)) found.push_back({fd, {file.device, file.inode}});
  return found;
}

std::string program_socket() {
  const int trial = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (trial < 0 && (errno == EMFILE || errno == ENFILE)) return "no free file descriptor";
  if (trial >= 0) ::close(trial);
  for (const auto& [fd, file] : list())
    if (S_ISSOCK(file.mode) && owner_of(fd) == Owner::kProgram)
      return "an open socket (descriptor " + std::to_string(fd) + ")";
  return "";
}

}  // namespace bsp::shim
