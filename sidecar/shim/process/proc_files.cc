#include "sidecar/shim/process/proc_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "sidecar/shim/process/message.h"

namespace bsp::shim {

std::optional<std::string> read_text(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text;
  char part[1024];
  ssize_t got = 0;
  while ((got = ::read(fd, part, sizeof part)) > 0) text.append(part, static_cast<std::size_t>(got));
  const int error = errno;
  ::close(fd);
  if (got == 0) return text;
  errno = error;
  return {};
}

std::optional<std::vector<int>> numbers_in(const char* directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(directory), closedir);
  if (entries == nullptr) return {};
  std::vector<int> found;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(entries.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') found.push_back(std::atoi(entry->d_name));
  }
  if (errno != 0) return {};
  return found;
}

std::string why_unlisted() {
  if (errno == EMFILE || errno == ENFILE) return "no free file descriptor";
  return "a list of file descriptors that can't be read (" + std::string(std::strerror(errno)) + ")";
}

std::vector<int> numbers_needed(const char* directory) {
  auto found = numbers_in(directory);
  if (!found) die("%s can't be read: %s", directory, std::strerror(errno));
  return *std::move(found);
}

std::string text_needed(const std::string& path) {
  auto text = read_text(path);
  if (!text && errno != ENOENT && errno != ESRCH) die("%s can't be read: %s", path.c_str(), std::strerror(errno));
  return std::move(text).value_or("");
}

}  // namespace bsp::shim
