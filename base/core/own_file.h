// Our files in a directory where an untrusted process may create, replace and remove any name at any time: opening a
// FIFO would hang, a symbolic link leads elsewhere, a file may belong to another user.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/core/error.h"
#include "base/core/fd.h"

namespace bsp {

// Opens an existing regular file that this process's user owns. Never follows a link, never blocks. `flags` as for
// open(2). kNotFound if the file doesn't exist, kRefused if it is anything else.
Result<Fd> open_own_file(const std::string& path, int flags);
// The whole file; kInvalid if it is larger than `most` bytes.
Result<std::string> read_own_file(const std::string& path, std::size_t most);

// A new file that gets its name once it is complete. Until then its name can't be guessed, so that no other process can put
// another file in its place. The destructor deletes it unless publish() was called.
class NewFile {
 public:
  static Result<NewFile> beside(const std::string& path);
  NewFile(NewFile&& other) noexcept = default;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  [[nodiscard]] int fd() const { return fd_.get(); }
  // Replaces whatever has that name, unless it is a directory.
  Result<void> publish(mode_t mode);

 private:
  NewFile(Fd fd, std::string temporary, std::string path)
      : fd_(std::move(fd)), temporary_(std::move(temporary)), path_(std::move(path)) {}
  Fd fd_;
  std::string temporary_, path_;
};

// Replaces the file atomically, so that no reader sees half of it. Not synced to disk.
Result<void> replace_own_file(const std::string& path, std::string_view text, mode_t mode);

}  // namespace bsp
