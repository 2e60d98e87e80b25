// The target's end of carry.h.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <ranges>
#include <set>

#include "base/core/fd.h"
#include "sidecar/init/carry.h"
#include "sidecar/init/carry_format.h"
#include "sidecar/init/files.h"

namespace bsp::init {
namespace {

bool denied() { return errno == EACCES || errno == EPERM; }

std::unexpected<Error> cannot_restore(const std::string& path) { return fail_errno("restoring carried " + path); }

Result<void> remove_tree(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR) return cannot_restore(path);
  (void)::chmod(path.c_str(), 0700);  // it is removed in any case
  BSP_TRY(const std::vector<std::string> names, list_dir(path));
  for (const std::string& name : names) BSP_CHECK_OK(remove_tree(path + "/" + name));
  if (::rmdir(path.c_str()) != 0) return cannot_restore(path);
  return {};
}

std::int64_t changed_ns(const struct stat& info) {
  return info.st_ctim.tv_sec * 1'000'000'000LL + info.st_ctim.tv_nsec;
}

class Unpacker {
 public:
  Unpacker(archive* in, const std::string& file, const Age& age, const std::string& keep)
      : in_(in), file_(file), age_(age), keep_(keep) {}

  Result<void> run() {
    ::umask(0);
    for (;;) {
      archive_entry* entry = nullptr;
      const int next = archive_read_next_header(in_, &entry);
      if (next == ARCHIVE_EOF) break;
      if (next < ARCHIVE_WARN) return archive_error(in_, "reading " + file_);
      BSP_CHECK_OK(take(entry));
    }
    for (const ChangedDirectory& directory : directories_) BSP_CHECK_OK(as_listed(directory));
    // Inner directories first: nothing is created in a directory after its time was set.
    for (const auto& entry : std::views::reverse(finished_last_)) BSP_CHECK_OK(finish(entry.get()));
    return {};
  }

 private:
  using Entry = std::unique_ptr<archive_entry, decltype(&archive_entry_free)>;

  Result<void> take(archive_entry* entry) {
    std::string path = archive_entry_pathname(entry);
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();  // trailing slash of a directory
    if (path == kDirectoriesEntry) return read_directories();
    if (!path.starts_with('/') || (path + "/").find("/../") != std::string::npos)
      return fail(ErrorCode::kInvalid, "restoring carried " + path + ": it is not an absolute path");
    carried_.insert(path);
    if (struct stat there{}; !keep_.empty() && path.starts_with(keep_ + "/") && ::lstat(path.c_str(), &there) == 0)
      return fail(ErrorCode::kRefused,
                  "restoring carried " + path + ": another rank of this pod has a file of that name");
    if (archive_entry_filetype(entry) == AE_IFDIR) return make_directory(path, entry);
    if (const char* first = archive_entry_hardlink(entry))
      return make(path, [&] { return ::link(first, path.c_str()); });
    if (archive_entry_filetype(entry) == AE_IFREG) return write_file(path, entry);
    if (archive_entry_filetype(entry) == AE_IFLNK) {
      BSP_CHECK_OK(make(path, [&] { return ::symlink(archive_entry_symlink(entry), path.c_str()); }));
    } else {
      BSP_CHECK_OK(make(path, [&] { return ::mkfifo(path.c_str(), 0600); }));
    }
    return finish(entry);
  }

  Result<void> read_directories() {
    std::string text;
    std::string piece(kArchiveBlock, '\0');
    for (;;) {
      const la_ssize_t n = archive_read_data(in_, piece.data(), piece.size());
      if (n < 0) return archive_error(in_, "reading " + file_);
      if (n == 0) break;
      text.append(piece, 0, static_cast<std::size_t>(n));
    }
    BSP_TRY(directories_, decode_directories(text));
    return {};
  }

  // Replaces whatever is there.
  template <class Create>
  static Result<void> make(const std::string& path, const Create& create) {
    if (create() == 0) return {};
    if (errno == ENOENT) {
      BSP_CHECK_OK(make_parents(path));
    } else if (errno == EEXIST) {
      BSP_CHECK_OK(remove_tree(path));
    } else {
      return cannot_restore(path);
    }
    if (create() != 0) return cannot_restore(path);
    return {};
  }

  static Result<void> make_parents(const std::string& path) {
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
      if (::mkdir(path.substr(0, slash).c_str(), 0755) != 0 && errno != EEXIST) return cannot_restore(path);
    return {};
  }

  // A directory of the image or a volume stays, and may have to be made writable temporarily.
  Result<void> make_directory(const std::string& path, archive_entry* entry) {
    struct stat there{};
    if (::lstat(path.c_str(), &there) != 0 || !S_ISDIR(there.st_mode)) {
      BSP_CHECK_OK(make(path, [&] { return ::mkdir(path.c_str(), 0700); }));
    } else if (there.st_uid != ::geteuid()) {
      return {};
    } else if ((there.st_mode & S_IRWXU) != S_IRWXU && ::chmod(path.c_str(), 0700) != 0) {
      return cannot_restore(path);
    }
    finished_last_.emplace_back(archive_entry_clone(entry), archive_entry_free);
    return {};
  }

  Result<void> write_file(const std::string& path, archive_entry* entry) {
    BSP_TRY(const Fd fd, open_file(path, archive_entry_uid(entry) == static_cast<la_int64_t>(::geteuid())));
    for (;;) {
      const void* block = nullptr;
      std::size_t size = 0;
      la_int64_t offset = 0;
      const int read = archive_read_data_block(in_, &block, &size, &offset);
      if (read == ARCHIVE_EOF) break;
      if (read < ARCHIVE_WARN) return archive_error(in_, "reading " + file_);
      for (std::size_t done = 0; done < size;) {
        const ssize_t n = ::pwrite(fd.get(), static_cast<const char*>(block) + done, size - done,
                                   offset + static_cast<la_int64_t>(done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return cannot_restore(path);
        done += static_cast<std::size_t>(n);
      }
    }
    if (::ftruncate(fd.get(), archive_entry_size(entry)) != 0) return cannot_restore(path);
    return finish(entry);
  }

  // The program's own file is created again, so that other hard links to the image's file keep their content. Another
  // user's file, which the program could write, is written in place.
  static Result<Fd> open_file(const std::string& path, bool own) {
    const auto in_place = [&] { return ::open(path.c_str(), O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC); };
    struct stat there{};
    const bool is_file = ::lstat(path.c_str(), &there) == 0 && S_ISREG(there.st_mode);
    Fd fd;
    if (is_file && !own) fd = Fd(in_place());
    if (fd) return fd;
    const auto made = make(path, [&] {
      fd = Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
      return fd ? 0 : -1;
    });
    if (made) return fd;
    if (is_file && own && denied()) fd = Fd(in_place());
    if (!fd) return std::unexpected(made.error());
    return fd;
  }

  // Group before mode, because changing the group may clear mode bits; times last.
  static Result<void> finish(archive_entry* entry) {
    const std::string path = archive_entry_pathname(entry);
    struct stat is{};
    if (::lstat(path.c_str(), &is) != 0) return cannot_restore(path);
    if (is.st_uid != ::geteuid()) return {};
    const bool own = archive_entry_uid(entry) == static_cast<la_int64_t>(is.st_uid);
    const auto group = static_cast<gid_t>(archive_entry_gid(entry));
    if (own && is.st_gid != group && ::lchown(path.c_str(), static_cast<uid_t>(-1), group) != 0)
      return cannot_restore(path);
    if (!S_ISLNK(is.st_mode)) {
      if (::chmod(path.c_str(), archive_entry_perm(entry)) != 0) return cannot_restore(path);
      BSP_CHECK_OK(set_attributes(path, entry));
    }
    const timespec times[2] = {{archive_entry_atime(entry), archive_entry_atime_nsec(entry)},
                               {archive_entry_mtime(entry), archive_entry_mtime_nsec(entry)}};
    if (::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0) return cannot_restore(path);
    return {};
  }

  static Result<void> set_attributes(const std::string& path, archive_entry* entry) {
    archive_entry_xattr_reset(entry);
    const char* name = nullptr;
    const void* value = nullptr;
    std::size_t size = 0;
    while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK)
      if (::lsetxattr(path.c_str(), name, value, size, 0) != 0) return cannot_restore(path + ", " + name);
    return {};
  }

  // The program has removed names that the image has and this list doesn't. Names younger than the image and older
  // than bsp-init are the container runtime's.
  Result<void> as_listed(const ChangedDirectory& directory) {
    const std::string below = directory.path == "/" ? "" : directory.path;
    std::set<std::string> names;
    for (const ChangedDirectory::Name& name : directory.names) {
      names.insert(name.name);
      BSP_CHECK_OK(is_there(below + "/" + name.name, name));
    }
    BSP_TRY(const std::vector<std::string> present, list_dir_if_any(directory.path));
    for (const std::string& name : present) {
      if (names.contains(name)) continue;
      const std::string path = below + "/" + name;
      struct stat info{};
      if (::lstat(path.c_str(), &info) != 0) {
        if (errno == ENOENT) continue;
        return cannot_restore(path);
      }
      if (changed_ns(info) < age_.image_ns || changed_ns(info) >= age_.program_ns) BSP_CHECK_OK(remove_tree(path));
    }
    return {};
  }

  [[nodiscard]] Result<void> is_there(const std::string& path, const ChangedDirectory::Name& name) const {
    if (name.kind == NameKind::kSocket) {
      BSP_CHECK_OK(make(path, [&] { return ::mknod(path.c_str(), S_IFSOCK | 0600, 0); }));
      if (::chmod(path.c_str(), name.mode) != 0) return cannot_restore(path);
      return {};
    }
    struct stat info{};
    if (name.kind == NameKind::kPossible || carried_.contains(path) || ::lstat(path.c_str(), &info) == 0) return {};
    return fail(
        ErrorCode::kRefused,
        "restoring carried files: " + path +
            " was in the image that the program started from, but is missing from this pod's; specify an image that "
            "doesn't change, by its digest");
  }

  archive* in_;
  const std::string& file_;
  const Age& age_;
  const std::string& keep_;
  std::vector<ChangedDirectory> directories_;
  std::set<std::string> carried_;
  std::vector<Entry> finished_last_;
};

}  // namespace

Result<void> remove_sessions(const std::string& temporary) {
  BSP_TRY(const std::vector<std::string> names, list_dir_if_any(temporary));
  for (const std::string& name : names)
    if (name.starts_with("ompi.")) BSP_CHECK_OK(remove_tree(temporary + "/" + name));
  return {};
}

Result<void> read_carry(const std::string& file, const Age& age, const std::string& keep) {
  const ArchiveReader in(archive_read_new(), archive_read_free);
  archive_read_support_format_tar(in.get());
  if (archive_read_open_filename(in.get(), file.c_str(), kArchiveBlock) != ARCHIVE_OK) {
    return archive_error(in.get(), "opening " + file);
  }
  return Unpacker(in.get(), file, age, keep).run();
}

}  // namespace bsp::init
