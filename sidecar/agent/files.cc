#include "sidecar/agent/files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/core/fd.h"

namespace bsp::sidecar {

Result<void> make_directory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return fail_errno("making " + path);
  const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd && errno != EACCES) return fail_errno("making " + path);
  // The umask restricts mkdir's mode. A directory of another user already has the right one.
  if (fd && ::fchmod(fd.get(), mode) != 0 && errno != EPERM) return fail_errno("making " + path);
  return {};
}

}  // namespace bsp::sidecar
