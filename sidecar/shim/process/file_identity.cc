#include "sidecar/shim/process/file_identity.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>
#include <vector>

#include "sidecar/shim/process/export.h"
#include "sidecar/shim/process/proc_files.h"

namespace bsp::shim {
namespace {

constexpr unsigned kElsewhere = 0x80000;  // of a device's major number, which the kernel keeps below 4096

struct Shown {
  FileIdentity here, to_program;
};
struct HeldFile {
  int fd;
  FileIdentity here, to_program;
};

// Replaced as a whole, since other threads read it at any time; what it replaces isn't freed. There is one for each move.
std::atomic<const std::vector<Shown>*> all_shown{nullptr};
std::vector<HeldFile> open_files;  // before the stop

FileIdentity shown(const FileIdentity& here) {
  const auto* const all = all_shown.load(std::memory_order_acquire);
  if (all == nullptr) return here;
  for (const Shown& one : *all)
    if (one.here == here) return one.to_program;
  if (std::ranges::contains(*all, here, &Shown::to_program))
    return {.device = makedev(major(here.device) | kElsewhere, minor(here.device)), .inode = here.inode};
  return here;
}

template <class Stat>
int show(int rc, Stat& info) {
  if (rc != 0) return rc;
  const FileIdentity identity = shown({info.st_dev, info.st_ino});
  info.st_dev = identity.device;
  info.st_ino = identity.inode;
  return 0;
}

bool look(int fd, FileIdentity& found) {
  static const auto next = BSP_NEXT(fstat);
  struct stat info{};
  const int before = errno;
  const bool is_there = next(fd, &info) == 0 && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode));
  errno = before;
  if (is_there) found = {info.st_dev, info.st_ino};
  return is_there;
}

}  // namespace

void identities_before_stop() {
  open_files.clear();
  const auto descriptors = numbers_in("/proc/self/fd");
  if (!descriptors) return;
  for (const int fd : *descriptors)
    if (HeldFile file{.fd = fd, .here = {}, .to_program = {}}; look(fd, file.here)) {
      file.to_program = shown(file.here);
      open_files.push_back(file);
    }
}

void identities_after_stop() {
  std::vector<Shown> all;
  bool moved = false;
  for (const HeldFile& file : open_files) {
    FileIdentity here;
    if (!look(file.fd, here)) continue;
    moved |= here != file.here;
    if (here != file.to_program) all.push_back({here, file.to_program});
  }
  open_files.clear();
  if (moved) all_shown.store(all.empty() ? nullptr : new std::vector(std::move(all)), std::memory_order_release);
}

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT

extern "C" {

// As programs of any age call them: those of before glibc 2.33 pass a version of the structure.
#define BSP_STATS(bits)                                                                                        \
  BSP_EXPORT int stat##bits(const char* path, struct stat##bits* info) noexcept {                              \
    static const auto next =                                                                                   \
        reinterpret_cast<int (*)(const char*, struct stat##bits*)>(dlsym(RTLD_NEXT, "stat" #bits));            \
    return show(next(path, info), *info);                                                                      \
  }                                                                                                            \
  BSP_EXPORT int lstat##bits(const char* path, struct stat##bits* info) noexcept {                             \
    static const auto next = BSP_NEXT(lstat##bits);                                                            \
    return show(next(path, info), *info);                                                                      \
  }                                                                                                            \
  BSP_EXPORT int fstat##bits(int fd, struct stat##bits* info) noexcept {                                       \
    static const auto next = BSP_NEXT(fstat##bits);                                                            \
    return show(next(fd, info), *info);                                                                        \
  }                                                                                                            \
  BSP_EXPORT int fstatat##bits(int fd, const char* path, struct stat##bits* info, int flags) noexcept {        \
    static const auto next = BSP_NEXT(fstatat##bits);                                                          \
    return show(next(fd, path, info, flags), *info);                                                           \
  }                                                                                                            \
  BSP_EXPORT int __xstat##bits(int version, const char* path, struct stat##bits* info) {                       \
    static const auto next = BSP_NEXT(__xstat##bits);                                                          \
    return show(next(version, path, info), *info);                                                             \
  }                                                                                                            \
  BSP_EXPORT int __lxstat##bits(int version, const char* path, struct stat##bits* info) {                      \
    static const auto next = BSP_NEXT(__lxstat##bits);                                                         \
    return show(next(version, path, info), *info);                                                             \
  }                                                                                                            \
  BSP_EXPORT int __fxstat##bits(int version, int fd, struct stat##bits* info) {                                \
    static const auto next = BSP_NEXT(__fxstat##bits);                                                         \
    return show(next(version, fd, info), *info);                                                               \
  }                                                                                                            \
  BSP_EXPORT int __fxstatat##bits(int version, int fd, const char* path, struct stat##bits* info, int flags) { \
    static const auto next = BSP_NEXT(__fxstatat##bits);                                                       \
    return show(next(version, fd, path, info, flags), *info);                                                  \
  }
BSP_STATS()
BSP_STATS(64)
#undef BSP_STATS

BSP_EXPORT int statx(int fd, const char* path, int flags, unsigned mask, struct statx* info) noexcept {
  static const auto next =
      reinterpret_cast<int (*)(int, const char*, int, unsigned, struct statx*)>(dlsym(RTLD_NEXT, "statx"));
  const int rc = next(fd, path, flags, mask, info);
  if (rc != 0) return rc;
  const FileIdentity identity = shown({makedev(info->stx_dev_major, info->stx_dev_minor), info->stx_ino});
  info->stx_dev_major = major(identity.device);
  info->stx_dev_minor = minor(identity.device);
  info->stx_ino = identity.inode;
  return 0;
}

}  // extern "C"
