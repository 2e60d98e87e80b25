#include "sidecar/shim/process/leftovers.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

#include "crds/names.h"
#include "sidecar/shim/process/descriptors.h"
#include "sidecar/shim/process/message.h"
#include "sidecar/shim/process/proc_files.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {
namespace {

struct OpenFile {
  dev_t device;
  ino_t inode;
  mode_t mode;
  bool operator==(const OpenFile&) const = default;
};
using Descriptors = std::map<int, OpenFile>;

Descriptors open_before;  // all descriptors that were open before the session opened
Descriptors mpi_files;    // MPI's files opened since

std::optional<OpenFile> look_at(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0) return {};
  return OpenFile{info.st_dev, info.st_ino, info.st_mode};
}

// Nothing, with errno, if they can't be listed.
std::optional<Descriptors> list() {
  const auto numbers = numbers_in("/proc/self/fd");
  if (!numbers) return {};
  Descriptors found;
  for (const int fd : *numbers)
    if (const auto file = look_at(fd)) found[fd] = *file;
  return found;
}

Descriptors list_while_opening() {
  auto found = list();
  if (!found)
    die("epoch %llu can't be opened: %s", static_cast<unsigned long long>(state.epoch), why_unlisted().c_str());
  return *std::move(found);
}

// As btl/sm names them: sm_segment.<node>.<uid>.<job>.<rank of the node>
bool is_segment(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash != std::string_view::npos && path.substr(slash + 1).starts_with(names::kSharedSegment);
}

void remove_segments() {
  std::istringstream maps(text_needed("/proc/self/maps"));
  for (std::string line; std::getline(maps, line);) {
    // 7f0000000000-7f0001000000 rw-s 00000000 00:2f 12   /dev/shm/sm_segment.rank0.0.1f2e0001.0
    unsigned long begin = 0, end = 0;
    const std::size_t path = line.find('/');
    if (path == std::string::npos || std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    std::string name = line.substr(path);
    constexpr std::string_view kRemoved = " (deleted)";  // by a rank that was faster
    const bool removed = name.ends_with(kRemoved);
    if (removed) name.resize(name.size() - kRemoved.size());
    if (!is_segment(name)) continue;
    if (!removed) ::unlink(name.c_str());
    ::munmap(reinterpret_cast<void*>(begin), end - begin);
  }
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

void leftovers_before_open() { open_before = list_while_opening(); }

void leftovers_after_open() {
  mpi_files.clear();
  for (const auto& [fd, file] : list_while_opening()) {
    auto known = open_before.find(fd);
    if ((known == open_before.end() || known->second != file) && is_mpi_file(fd, file)) mpi_files[fd] = file;
  }
}

// Needs no list of descriptors, for which there may be none free.
void leftovers_after_close() {
  if (state.shares_memory) remove_segments();
  for (const int fd : descriptors_of(Owner::kMpi)) ::close(fd);
  for (const auto& [fd, file] : mpi_files)
    if (look_at(fd) == file) ::close(fd);
}

std::optional<std::vector<std::pair<int, FileIdentity>>> regular_files() {
  const auto all = list();
  if (!all) return {};
  std::vector<std::pair<int, FileIdentity>> found;
  for (const auto& [fd, file] : *all)
    if (S_ISREG(file.mode)) found.push_back({fd, {file.device, file.inode}});
  return found;
}

std::string program_socket() {
  const auto all = list();
  if (!all) return why_unlisted();
  for (const auto& [fd, file] : *all)
    if (S_ISSOCK(file.mode) && owner_of(fd) == Owner::kProgram)
      return "an open socket (descriptor " + std::to_string(fd) + ")";
  return "";
}

}  // namespace bsp::shim
