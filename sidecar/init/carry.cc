#include "sidecar/init/carry.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>

#include "base/core/fd.h"
#include "crds/names.h"
#include "sidecar/init/files.h"

namespace bsp::init {
namespace {

constexpr std::size_t kBlock = 64 * 1024;

using Writer = std::unique_ptr<archive, decltype(&archive_write_free)>;
using Reader = std::unique_ptr<archive, decltype(&archive_read_free)>;
using Entry = std::unique_ptr<archive_entry, decltype(&archive_entry_free)>;

std::unexpected<Error> archive_error(archive* a, const std::string& what) {
  const char* text = archive_error_string(a);
  const int number = archive_errno(a);
  if (number > 0) return fail_errno(what, number);
  return fail(ErrorCode::kFailed, what + ": " + (text != nullptr ? text : "unknown error"));
}

using Links = std::map<std::pair<dev_t, ino_t>, std::string>;

Result<void> add_content(archive* out, const std::string& path, std::int64_t size) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return fail_errno("carrying " + path);
  std::string piece(kBlock, '\0');
  std::int64_t left = size;
  while (left > 0) {
    const ssize_t n =
        ::read(fd.get(), piece.data(), std::min<std::size_t>(piece.size(), static_cast<std::size_t>(left)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("carrying " + path);
    if (n == 0) return fail(ErrorCode::kFailed, "carrying " + path + ": it shrank meanwhile");
    if (archive_write_data(out, piece.data(), static_cast<std::size_t>(n)) != n) {
      return archive_error(out, "carrying " + path);
    }
    left -= n;
  }
  return {};
}

Result<void> add(archive* out, const std::string& path, Links& links, int depth) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT && depth == 0) return {};
    return fail_errno("carrying " + path);
  }
  const bool file = S_ISREG(info.st_mode);
  const bool dir = S_ISDIR(info.st_mode);
  const bool link = S_ISLNK(info.st_mode);
  if (!file && !dir && !link && !S_ISFIFO(info.st_mode)) {
    return fail(ErrorCode::kRefused, "carrying " + path + ": sockets and devices cannot move");
  }
  const Entry entry(archive_entry_new(), archive_entry_free);
  archive_entry_copy_stat(entry.get(), &info);
  archive_entry_copy_pathname(entry.get(), path.c_str());
  if (link) {
    BSP_TRY(const std::string target, read_link(path));
    archive_entry_copy_symlink(entry.get(), target.c_str());
  }
  if (file && info.st_nlink > 1) {
    const auto [it, fresh] = links.emplace(std::pair(info.st_dev, info.st_ino), path);
    if (!fresh) {
      archive_entry_copy_hardlink(entry.get(), it->second.c_str());
      archive_entry_set_size(entry.get(), 0);
      info.st_size = 0;
    }
  }
  if (!file) archive_entry_set_size(entry.get(), 0);
  if (archive_write_header(out, entry.get()) < ARCHIVE_WARN) {
    return archive_error(out, "carrying " + path);
  }
  if (file) BSP_CHECK_OK(add_content(out, path, info.st_size));
  if (!dir) return {};
  if (::access(path.c_str(), R_OK | X_OK) != 0) return fail_errno("carrying " + path);
  for (const std::string& name : list_dir(path)) {
    BSP_CHECK_OK(add(out, path + "/" + name, links, depth + 1));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> parse_carry_paths(std::string_view text) {
  std::vector<std::string> paths;
  while (!text.empty()) {
    const std::size_t colon = text.find(':');
    std::string path(text.substr(0, colon));
    text = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    if (path.empty()) continue;
    const auto below = [&path](std::string_view dir) {
      return path == dir || path.starts_with(std::string(dir) + "/");
    };
    const bool special = path == "/" || below("/proc") || below("/sys") || below(names::kRunDir) ||
                         (below("/dev") && !below("/dev/shm"));
    const bool dots = (path + "/").find("/../") != std::string::npos;
    if (path[0] != '/' || special || dots) {
      return fail(ErrorCode::kInvalid, "carryPaths: '" + path +
                                           "' cannot be carried; name absolute "
                                           "paths of the program's own files");
    }
    paths.push_back(std::move(path));
  }
  return paths;
}

std::vector<std::string> shared_memory_files(uid_t uid, const std::string& dir) {
  std::vector<std::string> out;
  for (const std::string& name : list_dir(dir)) {
    struct stat info{};
    const std::string path = dir + "/" + name;
    if (::lstat(path.c_str(), &info) != 0 || info.st_uid != uid) continue;
    if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) out.push_back(path);
  }
  return out;
}

Result<void> write_carry(const std::vector<std::string>& paths, int fd) {
  const Writer out(archive_write_new(), archive_write_free);
  archive_write_set_format_pax(out.get());
  archive_write_set_bytes_per_block(out.get(), static_cast<int>(kBlock));
  if (archive_write_open_fd(out.get(), fd) != ARCHIVE_OK) {
    return archive_error(out.get(), "opening the archive of carried files");
  }
  Links links;
  for (const std::string& path : paths) BSP_CHECK_OK(add(out.get(), path, links, 0));
  if (archive_write_close(out.get()) != ARCHIVE_OK) {
    return archive_error(out.get(), "finishing the archive of carried files");
  }
  return {};
}

Result<void> read_carry(const std::string& file) {
  const Reader in(archive_read_new(), archive_read_free);
  archive_read_support_format_tar(in.get());
  if (archive_read_open_filename(in.get(), file.c_str(), kBlock) != ARCHIVE_OK) {
    return archive_error(in.get(), "opening " + file);
  }
  const Writer disk(archive_write_disk_new(), archive_write_free);
  // Not UNLINK: a file that the image has is overwritten in place only if the user may write it.
  archive_write_disk_set_options(disk.get(),
                                 ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_SECURE_NODOTDOT);
  for (;;) {
    archive_entry* entry = nullptr;
    const int next = archive_read_next_header(in.get(), &entry);
    if (next == ARCHIVE_EOF) return {};
    if (next < ARCHIVE_WARN) return archive_error(in.get(), "reading " + file);
    const std::string path = archive_entry_pathname(entry);
    const std::string what = "restoring carried " + path;
    struct stat there{};
    const bool dir = archive_entry_filetype(entry) == AE_IFDIR;
    // A directory of the image or a mount point: it is enough that it exists.
    if (dir && ::stat(path.c_str(), &there) == 0 && S_ISDIR(there.st_mode) && there.st_uid != ::geteuid()) {
      continue;
    }
    if (archive_write_header(disk.get(), entry) < ARCHIVE_WARN) {
      return archive_error(disk.get(), what);
    }
    for (;;) {
      const void* block = nullptr;
      std::size_t size = 0;
      la_int64_t offset = 0;
      const int read = archive_read_data_block(in.get(), &block, &size, &offset);
      if (read == ARCHIVE_EOF) break;
      if (read < ARCHIVE_WARN) return archive_error(in.get(), "reading " + file);
      if (archive_write_data_block(disk.get(), block, size, offset) < ARCHIVE_WARN) {
        return archive_error(disk.get(), what);
      }
    }
    if (archive_write_finish_entry(disk.get()) < ARCHIVE_WARN) {
      return archive_error(disk.get(), what);
    }
  }
}

}  // namespace bsp::init
