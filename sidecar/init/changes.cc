#include "sidecar/init/changes.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <format>
#include <utility>

#include "base/core/fd.h"
#include "base/core/mount_table.h"
#include "base/core/read_file.h"
#include "sidecar/init/files.h"

namespace bsp::init {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kBlock = 512;  // st_blocks
// Both ends hold the paths in memory, within the container's limit.
constexpr std::size_t kMaxPaths = 250'000;
constexpr unsigned kStatxMask = STATX_BASIC_STATS | STATX_MNT_ID | STATX_BTIME;

std::int64_t now_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

std::int64_t ns_of(const statx_timestamp& time) { return time.tv_sec * kSecond + time.tv_nsec; }

std::string mebibytes(std::uint64_t bytes) { return std::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }

class Walk {
 public:
  Walk(const Age& age, Place place, Changes& out) : age_(age), place_(place), out_(out) {}

  Result<void> run(const std::string& root) {
    struct statx info{};
    if (::statx(AT_FDCWD, root.c_str(), AT_NO_AUTOMOUNT, kStatxMask, &info) != 0) return fail_errno(root);
    mount_ = info.stx_mnt_id;
    return directory(root, info, may_be_programs(AT_FDCWD, root.c_str(), info));
  }

 private:
  // Whether the program may have created it as it is. It can't have changed another user's file without write
  // permission.
  bool may_be_programs(int dir, const char* name, const struct statx& info) const {
    if (ns_of(info.stx_ctime) < age_.program_ns) return false;
    if (info.stx_uid == user_) return true;
    return !S_ISLNK(info.stx_mode) && ::faccessat(dir, name, W_OK, 0) == 0;
  }

  Result<void> directory(const std::string& path, const struct statx& info, bool owned) {
    if (age_.overlay && ns_of(info.stx_ctime) < age_.image_ns) return {};
    ChangedDirectory changed{.path = path, .names = {}};
    BSP_TRY(const std::vector<Below> below, entries(path, info, owned, changed));
    if (owned && place_ == Place::kImage) out_.directories.push_back(std::move(changed));
    for (const Below& next : below) BSP_CHECK_OK(directory(next.path, next.info, next.owned));
    return {};
  }

  struct Below {
    std::string path;
    struct statx info;
    bool owned;
  };
  // The subdirectories; everything else in the directory has been handled.
  Result<std::vector<Below>> entries(const std::string& path, const struct statx& info, bool owned,
                                     ChangedDirectory& changed) {
    std::vector<Below> below;
    const Fd dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!dir) {
      BSP_CHECK_OK(unreadable_directory(path, info, owned));
      return below;
    }
    // What isn't listed would be lost, and removed from the target's image.
    BSP_TRY(const std::vector<std::string> names, list_dir_at(dir.get(), path));
    for (const std::string& name : names) {
      const std::string full = (path == "/" ? "" : path) + "/" + name;
      struct statx entry{};
      constexpr int kFlags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
      if (::statx(dir.get(), name.c_str(), kFlags, kStatxMask, &entry) != 0) {
        if (errno == ENOENT) continue;
        return fail_errno(full);
      }
      const bool here = entry.stx_mnt_id == mount_;
      const bool its = here && may_be_programs(dir.get(), name.c_str(), entry);
      if (owned && place_ == Place::kImage) changed.names.push_back(listed(name, entry, here, its));
      if (its) BSP_CHECK_OK(add(dir.get(), name, full, entry));
      if (here && S_ISDIR(entry.stx_mode)) below.push_back({full, entry, its});
    }
    return below;
  }

  // A directory that the program can't enter holds nothing of its own.
  [[nodiscard]] Result<void> unreadable_directory(const std::string& path, const struct statx& info, bool owned) const {
    if (errno != EACCES) return fail_errno(path);
    const bool was_changed = ns_of(info.stx_ctime) >= age_.program_ns && ::access(path.c_str(), X_OK) == 0;
    if (!owned && !was_changed) return {};
    return cannot_carry(path, "the program's user can't read it", "make it readable");
  }

  ChangedDirectory::Name listed(const std::string& name, const struct statx& info, bool here, bool its) const {
    if (its && S_ISSOCK(info.stx_mode)) return {NameKind::kSocket, name, static_cast<mode_t>(info.stx_mode & 07777)};
    const bool required = here && (its || ns_of(info.stx_ctime) < age_.image_ns);
    return {required ? NameKind::kRequired : NameKind::kPossible, name};
  }

  Result<void> add(int dir, const std::string& name, const std::string& path, const struct statx& info) {
    if (S_ISSOCK(info.stx_mode)) return {};
    if (place_ == Place::kDevices && (S_ISCHR(info.stx_mode) || S_ISBLK(info.stx_mode))) return {};
    if (out_.paths.size() == kMaxPaths)
      return cannot_carry(path, std::format("it is one of more than {} that the program has written", kMaxPaths),
                          "write fewer");
    out_.paths.push_back(path);
    if (!S_ISREG(info.stx_mode)) return {};
    if (::faccessat(dir, name.c_str(), R_OK, 0) != 0)
      return cannot_carry(path, "the program's user can't read it", "make it readable");
    const std::uint64_t bytes = std::min<std::uint64_t>(info.stx_size, info.stx_blocks * kBlock);
    out_.bytes += bytes;
    if (bytes > out_.largest_bytes) {
      out_.largest = path;
      out_.largest_bytes = bytes;
    }
    return {};
  }

  const Age& age_;
  Place place_;
  Changes& out_;
  uid_t user_ = ::geteuid();
  std::uint64_t mount_ = 0;
};

}  // namespace

// The coarse clock, which file systems use: the fine clock may be a tick ahead of it.
ChangeClock::ChangeClock()
    : start_ns_(now_ns(CLOCK_REALTIME_COARSE)), ahead_ns_(now_ns(CLOCK_REALTIME) - now_ns(CLOCK_MONOTONIC)) {}

void ChangeClock::check() {
  constexpr std::int64_t kMaxPreemption = 100'000'000;  // this process may be preempted between the calls
  const std::int64_t back = ahead_ns_ - (now_ns(CLOCK_REALTIME) - now_ns(CLOCK_MONOTONIC));
  if (back > set_back_ns_ + kMaxPreemption) set_back_ns_ = back + kMaxPreemption;
}

Age age_of(const std::string& root, std::int64_t program_ns) {
  Age age{.image_ns = program_ns, .program_ns = program_ns, .overlay = false};
  struct statfs kind{};
  struct statx info{};
  if (::statfs(root.c_str(), &kind) != 0 || kind.f_type != OVERLAYFS_SUPER_MAGIC) return age;
  if (::statx(AT_FDCWD, root.c_str(), 0, kStatxMask, &info) != 0 || (info.stx_mask & STATX_BTIME) == 0) return age;
  // The root of an overlay is its upper directory, which was created with the container.
  const std::int64_t made = ns_of(info.stx_btime);
  if (made <= 0 || made > program_ns) return age;
  age.image_ns = made;
  age.overlay = true;
  return age;
}

Result<void> find_changes(const std::string& root, const Age& age, Place place, Changes& out) {
  return Walk(age, place, out).run(root);
}

std::string mounted_type(std::string_view mountinfo, std::string_view path) {
  std::string type;
  for (MountEntry& mount : mounts_in(mountinfo))
    if (mount.path == path) type = std::move(mount.type);
  return type;
}

Result<Changes> find_pod_changes(std::string_view volumes, std::int64_t program_ns) {
  Changes changes;
  struct statvfs root{};
  if (::statvfs("/", &root) != 0) return fail_errno("/");
  if ((root.f_flag & ST_RDONLY) == 0) BSP_CHECK_OK(find_changes("/", age_of("/", program_ns), Place::kImage, changes));
  // The runtime's own, and not the machine's, which a volume may mount there: a devtmpfs.
  BSP_TRY(const std::string mounts, read_file("/proc/self/mountinfo"));
  if (mounted_type(mounts, "/dev") == "tmpfs")
    BSP_CHECK_OK(find_changes("/dev", {.program_ns = program_ns}, Place::kDevices, changes));
  while (!volumes.empty()) {
    const std::size_t colon = volumes.find(':');
    const std::string volume(volumes.substr(0, colon));
    volumes = colon == std::string_view::npos ? std::string_view() : volumes.substr(colon + 1);
    struct stat info{};
    if (::stat(volume.c_str(), &info) != 0) {
      // Absent, or the program can't reach it either.
      if (errno == ENOENT || errno == ENOTDIR || errno == EACCES) continue;
      return fail_errno(volume);
    }
    if (!S_ISDIR(info.st_mode)) continue;
    BSP_CHECK_OK(find_changes(volume, {.program_ns = program_ns}, Place::kVolume, changes));
  }
  return changes;
}

std::uint64_t dumped_memory(std::string_view status) {
  std::uint64_t kibibytes = 0;
  for (const std::string_view key : {"\nRssAnon:", "\nRssShmem:", "\nVmSwap:"}) {
    const std::size_t at = status.find(key);
    if (at == std::string_view::npos) continue;
    const std::size_t digit = status.find_first_not_of(" \t", at + key.size());
    std::uint64_t value = 0;
    if (digit != std::string_view::npos) std::from_chars(status.data() + digit, status.data() + status.size(), value);
    kibibytes += value;
  }
  return kibibytes << 10;
}

std::uint64_t checkpoint_capacity(const std::string& run_dir) {
  struct statfs info{};
  if (::statfs(run_dir.c_str(), &info) != 0 || info.f_type != TMPFS_MAGIC) return 0;
  return info.f_blocks * static_cast<std::uint64_t>(info.f_bsize);
}

Result<void> check_fits(const Changes& changes, std::uint64_t memory, std::uint64_t capacity) {
  if (capacity == 0 || changes.bytes == 0 || changes.bytes + memory <= capacity) return {};
  return cannot_carry(changes.largest,
                      std::format("the program has written {} there, which with {} of memory exceeds "
                                  "spec.checkpoint.sizeLimit, {}",
                                  mebibytes(changes.bytes), mebibytes(memory), mebibytes(capacity)),
                      "raise the limit");
}

std::unexpected<Error> cannot_carry(const std::string& path, const std::string& why, const std::string& remedy) {
  return fail(ErrorCode::kRefused, std::format("not migratable now: {}, which the program has written in its pod, "
                                               "can't be moved: {}; {}, or write it to a volume that all pods mount",
                                               path, why, remedy));
}

}  // namespace bsp::init
