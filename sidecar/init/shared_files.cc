#include "sidecar/init/shared_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <format>
#include <ranges>
#include <set>
#include <sstream>

#include "base/core/fd.h"
#include "base/core/first_few.h"
#include "base/core/mount_table.h"
#include "base/core/read_file.h"
#include "base/core/realtime.h"
#include "crds/names.h"
#include "sidecar/init/files.h"
#include "sidecar/init/inspect.h"

namespace bsp::init {
namespace {

constexpr std::int64_t kOneSecond = 1'000'000'000;
constexpr std::int64_t kClocksDiffer = 60 * kOneSecond;
constexpr std::size_t kEnd = 4096;  // bytes of each end that are compared
constexpr std::size_t kReadAtOnce = 256 << 10;
// Bytes of one rank's files that are compared whole. It takes some milliseconds of the pause.
constexpr std::uint64_t kMostWhole = 32 << 20;
constexpr unsigned kMask = STATX_BASIC_STATS | STATX_MNT_ID;
// Another rank may be cutting off the same file.
constexpr int kLooks = 40;
constexpr useconds_t kLookAgainUs = 50'000;

// Files of these have no numbers that last.
constexpr std::array<std::uint64_t, 3> kWithoutInodes = {0x65735546 /* FUSE */, 0x01021997 /* 9p */,
                                                         0xff534d42 /* CIFS */};

bool is_below(std::string_view path, std::string_view directory) {
  return directory == "/" || path == directory ||
         (path.starts_with(directory) && path.size() > directory.size() && path[directory.size()] == '/');
}

// FNV-1a of words, of which the last is filled up with zeros.
void add_words(std::uint64_t& sum, std::string_view bytes) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), sizeof(std::uint64_t)))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), std::min(bytes.size(), sizeof word));
    sum = (sum ^ word) * 1099511628211ull;
    sum ^= sum >> 29;  // a product's high bits never reach its low ones
  }
}

bool add_part(int file, std::uint64_t begin, std::uint64_t end, std::uint64_t& sum) {
  std::vector<char> bytes(std::min<std::uint64_t>(kReadAtOnce, end - begin));
  while (begin < end) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), end - begin));
    std::size_t done = 0;
    while (done < wanted) {
      const ssize_t n = ::pread(file, bytes.data() + done, wanted - done, static_cast<off_t>(begin + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      done += static_cast<std::size_t>(n);
    }
    add_words(sum, std::string_view(bytes.data(), wanted));
    begin += wanted;
  }
  return true;
}

// The checksum of the first `size` bytes: of all, or of their first and last kEnd.
std::uint64_t checksum_of(const std::string& path, std::uint64_t size, bool whole) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file) return 0;
  std::uint64_t sum = 14695981039346656037ull;
  if (whole || size <= 2 * kEnd) {
    if (!add_part(file.get(), 0, size, sum)) return 0;
  } else if (!add_part(file.get(), 0, kEnd, sum) || !add_part(file.get(), size - kEnd, size, sum)) {
    return 0;
  }
  return sum == 0 ? 1 : sum;
}

std::uint64_t kind_of(const std::string& path) {
  struct statfs info{};
  return ::statfs(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.f_type) & 0xffffffff : 0;
}

// The server's word, not what this machine remembers of it.
bool look(const std::string& path, struct statx& info) {
  return ::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, kMask, &info) == 0;
}

std::int64_t written_at(const struct statx& info) {
  return info.stx_mtime.tv_sec * kOneSecond + info.stx_mtime.tv_nsec;
}

NotedFile noted(const std::string& path, const struct statx& info) {
  NotedFile file;
  file.path = path;
  file.kind = kind_of(path);
  file.inode = info.stx_ino;
  file.size = info.stx_size;
  file.written_ns = written_at(info);
  file.checksum = checksum_of(path, file.size, false);
  return file;
}

std::uint64_t position_of(std::string_view fdinfo) {
  constexpr std::string_view kKey = "pos:\t";
  const std::size_t at = fdinfo.find(kKey);
  std::uint64_t position = 0;
  if (at != std::string_view::npos)
    std::from_chars(fdinfo.data() + at + kKey.size(), fdinfo.data() + fdinfo.size(), position);
  return position;
}

// The paths of mappings that others see, or that show what others write.
std::vector<std::string> shared_mappings(std::string_view maps) {
  std::vector<std::string> paths;
  std::istringstream lines{std::string(maps)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string range, mode, offset, device, inode, path;
    words >> range >> mode >> offset >> device >> inode >> std::ws;
    std::getline(words, path);
    if (mode.size() == 4 && mode[3] == 's' && path.starts_with('/')) paths.push_back(std::move(path));
  }
  return paths;
}

// Whether the program adds at the end of it only, as far as its descriptor says: not if it writes at any place.
bool only_adds(const NotedFile& file) {
  return file.open == 0 || (file.flags & O_ACCMODE) == O_RDONLY || (file.flags & O_APPEND) != 0 ||
         file.position == file.size;
}

// What this process's user has written since then on the mounts for writing.
class WrittenFiles {
 public:
  WrittenFiles(const Mounts& mounts, std::int64_t since_ns, const WalkLimits& limits)
      : mounts_(mounts),
        since_(since_ns),
        left_(limits.entries),
        until_(std::chrono::steady_clock::now() + std::chrono::nanoseconds(limits.ns)) {
    for (const SharedMount& mount : mounts.writable()) look_into(mount.path);
  }

  [[nodiscard]] const auto& found() const { return found_; }
  [[nodiscard]] bool incomplete() const { return incomplete_; }

 private:
  void look_into(const std::string& path) {
    const Fd dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!dir) {
      // What the program can't list, it has not written by a name that it found.
      incomplete_ = incomplete_ || errno != EACCES;
      return;
    }
    const auto names = list_dir_at(dir.get(), path);
    if (!names) incomplete_ = true;
    if (!names) return;
    for (const std::string& name : *names) {
      if (left_-- == 0 || std::chrono::steady_clock::now() > until_) incomplete_ = true;
      if (incomplete_) return;
      const std::string full = (path == "/" ? "" : path) + "/" + name;
      struct statx info{};
      if (mounts_.of(full) == nullptr || !look(full, info)) continue;
      if (S_ISDIR(info.stx_mode)) look_into(full);
      if (S_ISREG(info.stx_mode) && written_at(info) >= since_ &&
          (info.stx_uid == ::geteuid() || ::faccessat(dir.get(), name.c_str(), W_OK, 0) == 0))
        found_.emplace_back(full, info);
    }
  }

  const Mounts& mounts_;
  const std::int64_t since_;
  std::size_t left_;
  const std::chrono::steady_clock::time_point until_;
  std::vector<std::pair<std::string, struct statx>> found_;
  bool incomplete_ = false;
};

std::unexpected<Error> changed(const NotedFile& file, std::string_view how) {
  return fail(ErrorCode::kRefused,
              std::format("{}, on a shared volume, {} since the set was made; a job with spec.checkpoint.sharedFiles: "
                          "Ignore goes on with such files as they are",
                          file.path, how));
}

// What may be otherwise on another node, or in a moment.
std::unexpected<Error> out_of_reach(const NotedFile& file, std::string_view how) {
  return fail(ErrorCode::kUnavailable, std::format("{}, on a shared volume, {}", file.path, how));
}

// Where the file should be lies another kind of file system than when it was noted: its volume isn't mounted there.
bool lacks_volume(const NotedFile& file) {
  std::string place = file.path;
  struct statfs info{};
  do {
    place.erase(std::max<std::size_t>(place.rfind('/'), 1));
  } while (::statfs(place.c_str(), &info) != 0 && place != "/");
  return file.kind != 0 && kind_of(place) != file.kind;
}

// Leaves it as noted, with the time of its last write, since other ranks compare it, too.
Result<void> cut_off(const NotedFile& file, Grown grown) {
  const Fd fd(::open(file.path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  if (fd && grown == Grown::kTold) return {};
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(file.size)) != 0) {
    const std::string how = std::format("has grown, and can't be cut off ({})", std::strerror(errno));
    if (errno != EACCES && errno != EPERM && errno != EROFS) return out_of_reach(file, how);
    return changed(file, how + ",");
  }
  const timespec times[2] = {{0, UTIME_OMIT}, {file.written_ns / kOneSecond, file.written_ns % kOneSecond}};
  if (::futimens(fd.get(), times) != 0)
    return changed(file, std::format("has grown, and its time can't be set ({}),", std::strerror(errno)));
  return {};
}

// True: it has grown.
Result<bool> check_file(const NotedFile& file, Grown grown) {
  const bool has_inode = std::ranges::find(kWithoutInodes, file.kind) == kWithoutInodes.end();
  for (int looks = 1;; ++looks) {
    struct statx now{};
    if (!look(file.path, now)) {
      if (errno != ENOENT && errno != ENOTDIR)
        return out_of_reach(file, std::format("can't be reached ({})", std::strerror(errno)));
      if (lacks_volume(file)) return out_of_reach(file, "isn't there; is its volume mounted on this node?");
      return changed(file, "was removed");
    }
    if (!S_ISREG(now.stx_mode) || (has_inode && now.stx_ino != file.inode && kind_of(file.path) == file.kind))
      return changed(file, "was replaced");
    if (now.stx_size < file.size) return changed(file, "has become shorter");
    if (now.stx_size == file.size && written_at(now) == file.written_ns) return false;
    const bool same = file.checksum != 0 && checksum_of(file.path, file.size, file.whole != 0) == file.checksum;
    if (now.stx_size > file.size) {
      if (!same || (file.whole == 0 && !only_adds(file))) return changed(file, "was rewritten in place and has grown");
      BSP_CHECK_OK(cut_off(file, grown));
      return true;
    }
    if (!same || looks == kLooks) return changed(file, "was rewritten in place");
    ::usleep(kLookAgainUs);
  }
}

}  // namespace

Mounts::Mounts(std::string_view mountinfo, std::vector<std::string> own) : own_(std::move(own)) {
  // The container's own: the kernel's, the runtime's, and what the operator adds.
  constexpr std::array<std::string_view, 8> kOwnPlaces = {
      "/proc", "/sys", "/dev", names::kRunDir, names::kRuntimeDir, "/etc", "/run/secrets", "/var/run/secrets"};
  constexpr std::array<std::string_view, 6> kOwnKinds = {"proc", "sysfs", "cgroup2", "devpts", "mqueue", "devtmpfs"};
  for (MountEntry& mount : mounts_in(mountinfo)) {
    const bool own_place =
        std::ranges::any_of(kOwnPlaces, [&](std::string_view at) { return is_below(mount.path, at); });
    const bool shared = mount.path != "/" && !own_place && std::ranges::find(kOwnKinds, mount.type) == kOwnKinds.end();
    mounts_.push_back({{std::move(mount.path), mount.writable}, shared});
  }
}

const SharedMount* Mounts::of(std::string_view path) const {
  if (std::ranges::any_of(own_, [&](const std::string& own) { return is_below(path, own); })) return nullptr;
  const Mount* innermost = nullptr;
  for (const Mount& mount : mounts_)
    if (is_below(path, mount.mount.path) &&
        (innermost == nullptr || mount.mount.path.size() >= innermost->mount.path.size()))
      innermost = &mount;
  return innermost != nullptr && innermost->shared ? &innermost->mount : nullptr;
}

std::vector<SharedMount> Mounts::writable() const {
  std::vector<SharedMount> out;
  for (const Mount& mount : mounts_)
    if (mount.mount.writable && of(mount.mount.path) == &mount.mount) out.push_back(mount.mount);
  return out;
}

Result<void> note_open_files(pid_t pid, const Mounts& mounts, Notes& notes) {
  notes.at_ns = static_cast<std::int64_t>(realtime_ns());
  const auto is_noted = [&](const std::string& path) { return mounts.of(path) != nullptr; };
  const std::string process = "/proc/" + std::to_string(pid);
  BSP_TRY(const std::vector<std::string> descriptors, list_dir(process + "/fd"));
  std::uint64_t compared = 0;  // bytes
  const auto note = [&](const std::string& path, unsigned flags, std::uint64_t position) {
    struct statx info{};
    // A removed file is part of the image.
    if (!is_noted(path) || !look(path, info) || !S_ISREG(info.stx_mode)) return;
    // Into a volume that is only read the program has written nothing, and each pod may have its own copy of it: a ConfigMap.
    const bool compares = mounts.of(path)->writable;
    NotedFile file = compares ? noted(path, info) : NotedFile{.path = path, .read_only = 1};
    file.open = 1;
    file.flags = flags;
    file.position = position;
    if (compares && !only_adds(file) && compared + file.size <= kMostWhole) {
      compared += file.size;
      file.whole = 1;
      file.checksum = checksum_of(path, file.size, true);
    }
    notes.files.push_back(std::move(file));
  };
  for (const std::string& fd : descriptors) {
    const auto target = read_link(process + "/fd/" + fd);
    if (!target && target.error().code == ErrorCode::kNotFound) continue;
    if (!target) return std::unexpected(target.error());
    if (!is_noted(*target)) continue;
    BSP_TRY(const std::string fdinfo, read_file(process + "/fdinfo/" + fd));
    note(*target, flags_of(fdinfo), position_of(fdinfo));
  }
  BSP_TRY(const std::string maps, read_file(process + "/maps"));
  std::set<std::string> mapped;
  for (const std::string& path : shared_mappings(maps))
    if (mapped.insert(path).second) note(path, O_RDWR, 0);
  return {};
}

Result<void> note_written_files(const Mounts& mounts, std::int64_t since_ns, Notes& notes, const WalkLimits& limits) {
  notes.all = 1;
  std::set<std::string> known;
  for (const NotedFile& file : notes.files) known.insert(file.path);
  WrittenFiles walk(mounts, since_ns - kClocksDiffer, limits);
  for (const auto& [path, info] : walk.found())
    if (known.insert(path).second) notes.files.push_back(noted(path, info));
  if (walk.incomplete()) notes.incomplete = 1;
  return {};
}

Result<Compared> check_shared_files(const Notes& notes, const Mounts& mounts, Grown grown) {
  FirstFew cut, later;
  std::set<std::string> known;
  for (const NotedFile& file : notes.files) {
    if (file.read_only != 0) continue;
    BSP_TRY(const bool has_grown, check_file(file, grown));
    if (has_grown) cut.add(std::format("{} to {} bytes", file.path, file.size));
    known.insert(file.path);
  }
  Compared compared{.ahead = !cut.empty() && grown == Grown::kTold, .said = {}};
  std::string& said = compared.said;
  if (!cut.empty()) said = std::format("files that had grown since the set are cut off: {}", cut.text());
  if (notes.all == 0) return compared;
  if (notes.incomplete != 0)
    said += std::format("{}there are too many files on shared volumes to compare those that no rank had open",
                        said.empty() ? "" : "; ");
  // Every file that was written before is known, so the clocks' difference matters only where some were not looked at.
  const WrittenFiles walk(mounts, notes.incomplete != 0 ? notes.at_ns : notes.at_ns - kClocksDiffer, WalkLimits());
  for (const auto& [path, info] : walk.found())
    if (!known.contains(path)) later.add(path);
  if (!later.empty())
    said += std::format("{}files that were written after the set stay as they are: {}", said.empty() ? "" : "; ",
                        later.text());
  return compared;
}

}  // namespace bsp::init
