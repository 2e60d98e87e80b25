#include "sidecar/storage/directory.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <format>
#include <optional>

#include "base/core/fault.h"
#include "base/core/fd.h"
#include "base/core/write_all.h"

namespace bsp::storage {
namespace {

// Of the storage. What the codes kNotFound and kRefused say of an image (storage.h), a volume that isn't mounted or that nobody may
// read doesn't.
std::unexpected<Error> away(std::unexpected<Error> failed) {
  if (ErrorCode& code = failed.error().code; code == ErrorCode::kNotFound || code == ErrorCode::kRefused)
    code = ErrorCode::kFailed;
  return failed;
}

std::unexpected<Error> unusable(const std::string& path, int error) {
  auto failed = away(fail_errno("the checkpoint storage " + path, error));
  if (error == EACCES || error == EPERM || error == EROFS)
    failed.error().message += std::format(
        "; the sidecar runs as user {}: make the volume writable for it, for example by "
        "spec.template.spec.securityContext.fsGroup",
        ::getuid());
  if (error == ENOSPC || error == EDQUOT) failed.error().message += "; enlarge it, or lower spec.checkpoint.keep";
  return failed;
}

Result<Fd> open_directory(int at, const std::string& name, const std::string& path, bool create) {
  if (create && ::mkdirat(at, name.c_str(), 0700) != 0 && errno != EEXIST) return unusable(path, errno);
  Fd fd(::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd && errno == ENOENT) return fail(ErrorCode::kNotFound, "there is no " + path);
  if (!fd) return unusable(path, errno);
  return fd;
}

Result<Fd> directory_of(const std::string& root, const ImageName& name, bool create) {
  if (!is_name(name.job_uid)) return fail(ErrorCode::kInvalid, "the job's uid is unusable as a directory's name");
  Fd top(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!top) return unusable(root, errno);
  const std::string of_job = root + "/" + name.job_uid;
  BSP_TRY(const Fd job, open_directory(top.get(), name.job_uid, of_job, create));
  return open_directory(job.get(), set_name(name.set), of_job + "/" + set_name(name.set), create);
}

// Some file systems can't refuse to replace a name, others have no hard links.
Result<void> name_without_replacing(int directory, const std::string& from, const std::string& to) {
  const auto taken = [&] { return fail(ErrorCode::kConflict, to + " is stored already"); };
  if (::renameat2(directory, from.c_str(), directory, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == EEXIST) return taken();
  if (errno != EINVAL && errno != ENOSYS) return fail_errno("naming " + to);
  if (::linkat(directory, from.c_str(), directory, to.c_str(), 0) == 0) {
    ::unlinkat(directory, from.c_str(), 0);
    return {};
  }
  if (errno == EEXIST) return taken();
  return fail_errno("naming " + to);
}

class NewFile final : public NewImage {
 public:
  NewFile(Fd directory, Fd file, std::string temporary, std::string name)
      : directory_(std::move(directory)),
        file_(std::move(file)),
        temporary_(std::move(temporary)),
        name_(std::move(name)) {}
  ~NewFile() override {
    if (file_) ::unlinkat(directory_.get(), temporary_.c_str(), 0);
  }

  Result<void> write(std::span<const std::byte> bytes) override {
    fault_point("storage.write");
    if (!write_all(file_.get(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}))
      return unusable("", errno);
    return {};
  }

  Result<void> publish() override {
    if (::fsync(file_.get()) != 0) return unusable("", errno);
    fault_point("storage.written");
    BSP_CHECK_OK(name_without_replacing(directory_.get(), temporary_, name_));
    file_.reset();
    // The name too must survive the node.
    if (::fsync(directory_.get()) != 0 && errno != EINVAL) return unusable("", errno);
    return {};
  }

 private:
  Fd directory_, file_;
  std::string temporary_, name_;
};

class StoredFile final : public StoredImage {
 public:
  explicit StoredFile(Fd file) : file_(std::move(file)) {}
  Result<std::size_t> read(std::span<std::byte> into) override {
    for (;;) {
      const ssize_t n = ::read(file_.get(), into.data(), into.size());
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) return away(fail_errno("reading an image from the checkpoint storage"));
    }
  }

 private:
  Fd file_;
};

}  // namespace

Result<std::unique_ptr<NewImage>> Directory::create(const ImageName& name, std::uint64_t, GivenUp) const {
  BSP_TRY(Fd directory, directory_of(root_, name, true));
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) return fail_errno("getting a random number");
  std::string temporary = std::format(".{}.{:016x}", file_name(name), random);
  Fd file(::openat(directory.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return unusable(root_ + "/" + name.job_uid, errno);
  return std::make_unique<NewFile>(std::move(directory), std::move(file), std::move(temporary), file_name(name));
}

Result<std::unique_ptr<StoredImage>> Directory::open(const ImageName& name, GivenUp) const {
  const auto opened = directory_of(root_, name, false);
  // Whoever has stored it has made the job's directory: this is another volume, or none.
  struct stat of_job{};
  if (!opened && opened.error().code == ErrorCode::kNotFound &&
      ::stat((root_ + "/" + name.job_uid).c_str(), &of_job) != 0)
    return fail(ErrorCode::kUnavailable,
                std::format("the checkpoint storage {} has nothing of job {}; is its volume mounted on this node?",
                            root_, name.job_uid));
  if (!opened) return std::unexpected(opened.error());
  const Fd& directory = *opened;
  const std::string file = file_name(name);
  // Not blocking, should somebody have put a pipe there.
  Fd fd(::openat(directory.get(), file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  const std::string path = std::format("{}/{}/{}/{}", root_, name.job_uid, set_name(name.set), file);
  if (!fd && errno == ENOENT) return fail(ErrorCode::kNotFound, "there is no " + path);
  if (!fd && errno == ELOOP) return fail(ErrorCode::kRefused, path + " is a link");
  if (!fd) return unusable(path, errno);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return unusable(path, errno);
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::kRefused, path + " is not a file");
  return std::make_unique<StoredFile>(std::move(fd));
}

Result<void> Directory::mark_whole(const ImageName& name, GivenUp) const {
  BSP_TRY(const Fd directory, directory_of(root_, name, true));
  const Fd file(::openat(directory.get(), mark_name(name).c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return unusable(root_ + "/" + name.job_uid, errno);
  return {};
}

Result<std::vector<std::uint64_t>> Directory::remove_sets(const std::string& job_uid, std::uint64_t below,
                                                          const std::vector<std::uint64_t>& keep, GivenUp) const {
  if (!is_name(job_uid)) return fail(ErrorCode::kInvalid, "the job's uid is unusable as a directory's name");
  const std::string path = root_ + "/" + job_uid;
  std::error_code error;
  std::filesystem::directory_iterator entries(path, error);
  if (error == std::errc::no_such_file_or_directory) return std::vector<std::uint64_t>{};
  if (error) return unusable(path, error.value());
  const ListFiles list = [&](std::uint64_t set) -> Result<std::vector<std::string>> {
    std::vector<std::string> files;
    std::error_code failed;
    for (std::filesystem::directory_iterator in(path + "/" + set_name(set), failed), end; in != end;
         in.increment(failed))
      files.push_back(in->path().filename().string());
    if (failed && failed != std::errc::no_such_file_or_directory) return unusable(path, failed.value());
    return files;
  };
  std::vector<std::uint64_t> removed;
  for (; entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const auto set = set_of(entries->path().filename().string());
    if (!set || *set >= below || std::ranges::contains(keep, *set)) continue;
    const auto goes = removable(*set, keep, list);
    if (!goes) continue;
    // None of these follows links.
    std::error_code failed;
    if (goes->all) {
      std::filesystem::remove_all(entries->path(), failed);
      if (!failed) removed.push_back(*set);
      continue;
    }
    for (const std::string& file : goes->files) std::filesystem::remove_all(entries->path() / file, failed);
    if (std::filesystem::remove(entries->path(), failed)) removed.push_back(*set);  // once it is empty
  }
  std::ranges::sort(removed);
  return removed;
}

// --- Orphans -------------------------------------------------------------------------------------------

namespace {

// nullopt: it isn't there, or nobody can tell.
std::optional<std::int64_t> written_at(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
  return status.st_mtim.tv_sec;
}

// The last time that anything of it was.
std::optional<std::int64_t> last_written(const std::string& directory) {
  auto last = written_at(directory);
  std::error_code error;
  std::filesystem::recursive_directory_iterator entries(directory, error);  // follows no links
  for (; last && !error && entries != std::filesystem::recursive_directory_iterator(); entries.increment(error)) {
    const auto at = written_at(entries->path());
    last = at ? std::optional(std::max(*last, *at)) : std::nullopt;
  }
  return error ? std::nullopt : last;
}

}  // namespace

Result<void> Directory::mark_job(const std::string& job_uid, const std::string& owner, GivenUp) const {
  if (!is_name(job_uid) || (!owner.empty() && !is_name(owner)))
    return fail(ErrorCode::kInvalid, "the job's uid or its owner is unusable as a name");
  const std::string path = root_ + "/" + job_uid;
  const Fd top(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!top) return unusable(root_, errno);
  const auto directory = open_directory(top.get(), job_uid, path, !owner.empty());
  if (!directory && owner.empty() && directory.error().code == ErrorCode::kNotFound) return {};
  if (!directory) return std::unexpected(directory.error());
  if (owner.empty()) {
    std::error_code error;
    std::filesystem::directory_iterator entries(path, error);
    for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
      const std::string name = entries->path().filename();
      if (name.starts_with(kOwner) && ::unlinkat(directory->get(), name.c_str(), 0) != 0 && errno != ENOENT)
        return unusable(path, errno);
    }
    if (error) return unusable(path, error.value());
    return {};
  }
  const std::string name = std::string(kOwner) + owner;
  const Fd file(::openat(directory->get(), name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  // A write, so that the time is the server's.
  if (!file || !write_all(file.get(), "\n")) return unusable(path, errno);
  return {};
}

Result<std::vector<std::string>> Directory::remove_orphans(const std::string& job_uid, const Orphans& orphans,
                                                           GivenUp given_up) const {
  const std::string mark = std::string(kOwner) + orphans.owner;
  const auto now = written_at(root_ + "/" + job_uid + "/" + mark);
  if (!now) return fail(ErrorCode::kFailed, "the checkpoint storage " + root_ + " doesn't show the job's own mark");
  std::error_code error;
  std::filesystem::directory_iterator entries(root_, error);
  std::vector<std::string> found, removed;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string uid = entries->path().filename();
    if (uid == job_uid || !is_name(uid) || std::ranges::contains(orphans.jobs, uid)) continue;
    std::error_code unknown;
    if (entries->is_symlink(unknown) || unknown || !written_at(entries->path() / mark)) continue;
    found.push_back(uid);
  }
  if (error) return unusable(root_, error.value());
  for (const std::string& uid : found) {
    if (removed.size() == kMostOrphans || (given_up && *given_up)) break;
    const auto last = last_written(root_ + "/" + uid);
    if (last && *now - *last >= orphans.age.count() && remove_job(uid, given_up)) removed.push_back(uid);
  }
  return removed;
}

Result<void> Directory::remove_job(const std::string& job_uid, GivenUp) const {
  if (!is_name(job_uid)) return fail(ErrorCode::kInvalid, "the job's uid is unusable as a directory's name");
  const std::string path = root_ + "/" + job_uid;
  std::error_code failed;
  std::filesystem::remove_all(path, failed);  // follows no links, and takes what is gone for removed
  if (failed) return unusable(path, failed.value());
  return {};
}

}  // namespace bsp::storage
