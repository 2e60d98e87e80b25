#include "operator/local/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <format>

#include "base/core/write_all.h"

namespace bsp::local {
namespace fs = std::filesystem;

Result<void> replace_file(const std::string& path, const std::string& temporary, std::string_view content) {
  auto clean_up = [&](const std::string& what) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return fail_errno(what, error);
  };
  {
    const Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd) return fail_errno(temporary);
    if (!write_all(fd.get(), content)) return clean_up("writing " + path);
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return clean_up("renaming to " + path);
  return {};
}

Result<void> make_directories(const std::string& path) {
  std::string sofar;
  for (const fs::path& part : fs::path(path)) {
    sofar = sofar.empty() ? part.string() : (fs::path(sofar) / part).string();
    if (sofar.empty() || sofar == "/") continue;
    if (::mkdir(sofar.c_str(), 0700) != 0 && errno != EEXIST) return fail_errno("creating directory " + sofar);
  }
  return {};
}

namespace {

Result<void> remove_below(const fs::path& path, dev_t device) {
  struct stat st{};
  if (::lstat(path.c_str(), &st) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno(path.string());
  }
  if (S_ISDIR(st.st_mode)) {
    if (st.st_dev != device)
      return fail(ErrorCode::kRefused, std::format("{} is a mounted file system; unmount it first", path.string()));
    std::error_code error;
    std::vector<fs::path> children;
    for (const auto& entry : fs::directory_iterator(path, error)) children.push_back(entry.path());
    if (error && error != std::errc::no_such_file_or_directory) return fail_errno(path.string(), error.value());
    for (const fs::path& child : children) BSP_CHECK_OK(remove_below(child, device));
    if (::rmdir(path.c_str()) != 0 && errno != ENOENT) return fail_errno("removing " + path.string());
    return {};
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail_errno("removing " + path.string());
  return {};
}

Result<Fd> lock(const std::string& path, int operation) {
  for (;;) {
    Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!fd) return fail_errno(path);
    while (::flock(fd.get(), operation) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return fail(ErrorCode::kConflict, path + " is locked by another process", true);
      return fail_errno("locking " + path);
    }
    // The file may have been removed (`local delete --all`) while this process waited. A lock on an unlinked file
    // excludes no other process, so open it again.
    struct stat held{};
    struct stat named{};
    if (::fstat(fd.get(), &held) != 0) return fail_errno(path);
    if (::stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino && held.st_dev == named.st_dev) return fd;
  }
}

}  // namespace

Result<void> remove_tree(const std::string& path) {
  struct stat st{};
  if (::lstat(path.c_str(), &st) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno(path);
  }
  return remove_below(path, st.st_dev);
}

Result<Fd> lock_file(const std::string& path) { return lock(path, LOCK_EX); }
Result<Fd> try_lock_file(const std::string& path) { return lock(path, LOCK_EX | LOCK_NB); }

}  // namespace bsp::local
