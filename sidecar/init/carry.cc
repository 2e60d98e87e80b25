#include "sidecar/init/carry.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <set>

#include "base/core/fd.h"
#include "base/core/read_file.h"
#include "crds/carry_path.h"
#include "crds/names.h"
#include "sidecar/init/carry_format.h"
#include "sidecar/init/files.h"

namespace bsp::init {
namespace {

using Entry = std::unique_ptr<archive_entry, decltype(&archive_entry_free)>;
constexpr std::size_t kHole = 64 << 20;

// Placeholder data for holes: libarchive counts it but never reads it.
const void* hole() {
  static const void* const nothing = ::mmap(nullptr, kHole, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return nothing;
}

struct Extent {
  std::int64_t begin;
  std::int64_t end;
};
// The ranges of the file that hold data; the whole file if the file system doesn't support SEEK_DATA.
std::vector<Extent> extents_of(int fd, std::int64_t size) {
  std::vector<Extent> out;
  for (std::int64_t at = 0; at < size;) {
    const std::int64_t begin = ::lseek(fd, at, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) break;
    const std::int64_t end = begin < 0 ? -1 : ::lseek(fd, begin, SEEK_HOLE);
    if (begin < 0 || end <= begin) return {{0, size}};
    out.push_back({begin, std::min(end, size)});
    at = end;
  }
  return out;
}

// The inodes within one archive.
class Packer {
 public:
  explicit Packer(archive* out) : out_(out) {}

  Result<void> directories(const std::vector<ChangedDirectory>& changed) {
    const std::string text = encode_directories(changed);
    const Entry entry(archive_entry_new(), archive_entry_free);
    archive_entry_copy_pathname(entry.get(), std::string(kDirectoriesEntry).c_str());
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0600);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(text.size()));
    if (archive_write_header(out_, entry.get()) < ARCHIVE_WARN ||
        archive_write_data(out_, text.data(), text.size()) != static_cast<la_ssize_t>(text.size()))
      return archive_error(out_, "archiving the names in changed directories");
    return {};
  }

  Result<void> tree(const std::string& path, int depth = 0) {
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0) {
      if (errno == ENOENT && depth == 0) return {};
      return fail_errno("carrying " + path);
    }
    BSP_CHECK_OK(one(path, info));
    if (!S_ISDIR(info.st_mode)) return {};
    if (::access(path.c_str(), R_OK | X_OK) != 0) return fail_errno("carrying " + path);
    BSP_TRY(const std::vector<std::string> names, list_dir(path));
    for (const std::string& name : names) BSP_CHECK_OK(tree(path + "/" + name, depth + 1));
    return {};
  }

  Result<void> one(const std::string& path) {
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0) return fail_errno("carrying " + path);
    return one(path, info);
  }

 private:
  Result<void> one(const std::string& path, const struct stat& info) {
    if (!packed_.insert(path).second) return {};
    const bool file = S_ISREG(info.st_mode);
    if (!file && !S_ISDIR(info.st_mode) && !S_ISLNK(info.st_mode) && !S_ISFIFO(info.st_mode))
      return fail(ErrorCode::kRefused, "carrying " + path + ": sockets and devices can't be moved");
    const Entry entry(archive_entry_new(), archive_entry_free);
    archive_entry_copy_stat(entry.get(), &info);
    archive_entry_copy_pathname(entry.get(), path.c_str());
    if (!file) archive_entry_set_size(entry.get(), 0);
    if (S_ISLNK(info.st_mode)) {
      BSP_TRY(const std::string target, read_link(path));
      archive_entry_copy_symlink(entry.get(), target.c_str());
    } else {
      BSP_CHECK_OK(add_attributes(path, entry.get()));
    }
    if (file && info.st_nlink > 1) {
      const auto [it, fresh] = links_.emplace(std::pair(info.st_dev, info.st_ino), path);
      if (!fresh) {
        archive_entry_copy_hardlink(entry.get(), it->second.c_str());
        archive_entry_set_size(entry.get(), 0);
        return header(path, entry.get());
      }
    }
    return file ? content(path, entry.get(), info.st_size) : header(path, entry.get());
  }

  Result<void> header(const std::string& path, archive_entry* entry) {
    if (archive_write_header(out_, entry) < ARCHIVE_WARN) return archive_error(out_, "carrying " + path);
    return {};
  }

  // Attributes that a program without capabilities can set.
  static Result<void> add_attributes(const std::string& path, archive_entry* entry) {
    std::string names(64 << 10, '\0');  // XATTR_LIST_MAX
    const ssize_t length = ::llistxattr(path.c_str(), names.data(), names.size());
    if (length < 0 && errno != ENOTSUP) return fail_errno("carrying the attributes of " + path);
    names.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    for (std::size_t at = 0; at < names.size(); at += std::string_view(names.c_str() + at).size() + 1) {
      const char* name = names.c_str() + at;
      if (!std::string_view(name).starts_with("user.") && !std::string_view(name).starts_with("system.posix_acl_"))
        continue;
      std::string value(64 << 10, '\0');  // XATTR_SIZE_MAX
      const ssize_t size = ::lgetxattr(path.c_str(), name, value.data(), value.size());
      if (size < 0) return fail_errno("carrying " + path + ", " + name);
      archive_entry_xattr_add_entry(entry, name, value.data(), static_cast<std::size_t>(size));
    }
    return {};
  }

  Result<void> content(const std::string& path, archive_entry* entry, std::int64_t size) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) return fail_errno("carrying " + path);
    const std::vector<Extent> extents = extents_of(fd.get(), size);
    const bool whole = extents.size() == 1 && extents[0].begin == 0 && extents[0].end == size;
    if (!whole && size > 0) {
      for (const Extent& e : extents) archive_entry_sparse_add_entry(entry, e.begin, e.end - e.begin);
      if (extents.empty()) archive_entry_sparse_add_entry(entry, 0, 0);
    }
    BSP_CHECK_OK(header(path, entry));
    std::int64_t at = 0;
    for (const Extent& e : extents) {
      BSP_CHECK_OK(skip(path, e.begin - at));
      BSP_CHECK_OK(copy(path, fd.get(), e));
      at = e.end;
    }
    return skip(path, size - at);
  }

  Result<void> skip(const std::string& path, std::int64_t left) {
    while (left > 0) {
      const auto n = std::min<std::int64_t>(left, kHole);
      if (archive_write_data(out_, hole(), static_cast<std::size_t>(n)) != n)
        return archive_error(out_, "carrying " + path);
      left -= n;
    }
    return {};
  }

  Result<void> copy(const std::string& path, int fd, const Extent& extent) {
    for (std::int64_t at = extent.begin; at < extent.end;) {
      const auto wanted = std::min<std::int64_t>(static_cast<std::int64_t>(piece_.size()), extent.end - at);
      const ssize_t n = ::pread(fd, piece_.data(), static_cast<std::size_t>(wanted), at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail_errno("carrying " + path);
      if (n == 0) return fail(ErrorCode::kFailed, "carrying " + path + ": it shrank while it was read");
      if (archive_write_data(out_, piece_.data(), static_cast<std::size_t>(n)) != n)
        return archive_error(out_, "carrying " + path);
      at += n;
    }
    return {};
  }

  archive* out_;
  std::map<std::pair<dev_t, ino_t>, std::string> links_;
  std::set<std::string> packed_;
  std::string piece_ = std::string(kArchiveBlock, '\0');
};

}  // namespace

std::unexpected<Error> archive_error(archive* a, const std::string& what) {
  const char* text = archive_error_string(a);
  const int number = archive_errno(a);
  if (number > 0) return fail_errno(what, number);
  return fail(ErrorCode::kFailed, what + ": " + (text != nullptr ? text : "unknown error"));
}

std::string encode_directories(const std::vector<ChangedDirectory>& directories) {
  std::string out;
  for (const ChangedDirectory& directory : directories) {
    out += "D" + directory.path + '\0';
    for (const ChangedDirectory::Name& name : directory.names) {
      out += static_cast<char>(name.kind);
      if (name.kind == NameKind::kSocket) out += std::to_string(name.mode) + " ";
      out += name.name + '\0';
    }
  }
  return out;
}

Result<std::vector<ChangedDirectory>> decode_directories(std::string_view text) {
  std::vector<ChangedDirectory> out;
  while (!text.empty()) {
    const std::size_t end = text.find('\0');
    std::string_view word = text.substr(0, end);
    if (end == std::string_view::npos || word.size() < 2 || (out.empty() && word[0] != 'D'))
      return fail(ErrorCode::kInvalid, "cannot parse the names in changed directories");
    text.remove_prefix(end + 1);
    const char kind = word[0];
    word.remove_prefix(1);
    if (kind == 'D') {
      out.push_back({.path = std::string(word), .names = {}});
      continue;
    }
    ChangedDirectory::Name name{static_cast<NameKind>(kind), std::string(word)};
    if (name.kind == NameKind::kSocket) {
      std::from_chars(word.data(), word.data() + word.size(), name.mode);
      name.name = word.substr(std::min(word.find(' '), word.size() - 1) + 1);
    }
    out.back().names.push_back(std::move(name));
  }
  return out;
}

Result<std::vector<std::string>> parse_carry_paths(std::string_view text) {
  std::vector<std::string> paths;
  while (!text.empty()) {
    const std::size_t colon = text.find(':');
    std::string path(text.substr(0, colon));
    text = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    if (path.empty()) continue;
    if (!crds::can_be_carried(path)) {
      return fail(ErrorCode::kInvalid, "carryPaths: '" + path +
                                           "' cannot be carried; name absolute "
                                           "paths of the program's own files");
    }
    paths.push_back(std::move(path));
  }
  return paths;
}

Result<std::vector<std::string>> shared_memory_files(uid_t uid, const std::string& dir) {
  std::vector<std::string> out;
  BSP_TRY(const std::vector<std::string> names, list_dir_if_any(dir));
  for (const std::string& name : names) {
    // Another rank of this pod may have one still; none is left of a rank that has closed its epoch.
    if (name.starts_with(names::kSharedSegment)) continue;
    struct stat info{};
    const std::string path = dir + "/" + name;
    if (::lstat(path.c_str(), &info) != 0) {
      if (errno == ENOENT) continue;
      return fail_errno("carrying " + path);
    }
    if (info.st_uid != uid) continue;
    if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) out.push_back(path);
  }
  return out;
}

Result<std::vector<std::string>> shared_memory_files_of(pid_t pid, uid_t uid, const std::string& dir) {
  BSP_TRY(std::vector<std::string> files, shared_memory_files(uid, dir));
  if (files.empty()) return files;
  const std::string process = "/proc/" + std::to_string(pid);
  BSP_TRY(const std::string maps, read_file(process + "/maps"));
  BSP_TRY(const std::vector<std::string> descriptors, list_dir(process + "/fd"));
  std::set<std::string> open;
  for (const std::string& fd : descriptors)
    if (auto target = read_link(process + "/fd/" + fd)) open.insert(*std::move(target));
  std::erase_if(files,
                [&](const std::string& path) { return !open.contains(path) && !maps.contains(" " + path + "\n"); });
  return files;
}

bool holds_only_sessions(const std::vector<std::string>& trees, const Changes& changes) {
  const auto of_session = [](const std::string& path) { return path == "/tmp" || path.starts_with("/tmp/ompi."); };
  return trees.empty() && std::ranges::all_of(changes.paths, of_session) &&
         std::ranges::all_of(changes.directories, of_session, &ChangedDirectory::path);
}

Result<void> write_carry(const std::vector<std::string>& trees, const Changes& changes, int fd) {
  const ArchiveWriter out(archive_write_new(), archive_write_free);
  archive_write_set_format_pax(out.get());
  archive_write_set_bytes_per_block(out.get(), static_cast<int>(kArchiveBlock));
  if (archive_write_open_fd(out.get(), fd) != ARCHIVE_OK) {
    return archive_error(out.get(), "opening the archive of carried files");
  }
  Packer packer(out.get());
  if (!changes.directories.empty()) BSP_CHECK_OK(packer.directories(changes.directories));
  for (const std::string& path : changes.paths) BSP_CHECK_OK(packer.one(path));
  for (const std::string& path : trees) BSP_CHECK_OK(packer.tree(path));
  if (archive_write_close(out.get()) != ARCHIVE_OK) {
    return archive_error(out.get(), "finishing the archive of carried files");
  }
  return {};
}

}  // namespace bsp::init
