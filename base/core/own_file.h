// Files of ours in a directory where somebody else, hostile perhaps, may make, replace and remove any name at any time:
// a FIFO would hang who opens it, a link leads elsewhere, a file may be another's.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/core/error.h"
#include "base/core/fd.h"

namespace bsp {

// An existing regular file that this process' user owns; no link is followed and nothing is waited for. `flags` as of
// open(2). kNotFound if there is none, kRefused if it is something else.
Result<Fd> open_own_file(const std::string& path, int flags);
// As a whole, if it is at most so large.
Result<std::string> read_own_file(const std::string& path, std::size_t most);

// A new file that gets its name when it is whole; until then it has one that can't be guessed, so that nothing can be put
// in its place. Without publish() it is gone with this object.
class NewFile {
 public:
  static Result<NewFile> beside(const std::string& path);
  NewFile(NewFile&& other) noexcept = default;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  [[nodiscard]] int fd() const { return fd_.get(); }
  // Replaces what has the name, unless that is a directory.
  Result<void> publish(mode_t mode);

 private:
  NewFile(Fd fd, std::string temporary, std::string path)
      : fd_(std::move(fd)), temporary_(std::move(temporary)), path_(std::move(path)) {}
  Fd fd_;
  std::string temporary_, path_;
};

// A whole file, so that no reader sees half of it. Not synced to disk.
Result<void> replace_own_file(const std::string& path, std::string_view text, mode_t mode);

}  // namespace bsp
