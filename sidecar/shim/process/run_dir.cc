#include "sidecar/shim/process/run_dir.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "crds/names.h"
#include "sidecar/shim/process/message.h"

namespace bsp::shim {

std::string in_run_dir(std::string_view path) {
  // Asked for once, as the program may clear its environment; and kept to the end, as it may call MPI_Finalize when it exits.
  static const std::string& run_dir = *[] {
    const char* dir = std::getenv(names::kEnvRunDir.data());
    return new std::string(dir != nullptr && *dir != '\0' ? std::string_view(dir) : names::kRunDir);
  }();
  std::string result = run_dir;
  return result.append(path.substr(names::kRunDir.size()));
}

bool has_run_dir() {
  const std::string path = in_run_dir(names::kRunDir);
  struct stat info;
  if (stat(path.c_str(), &info) == 0) return S_ISDIR(info.st_mode);
  if (errno != ENOENT && errno != ENOTDIR) die("%s can't be read: %s", path.c_str(), std::strerror(errno));
  return false;
}

}  // namespace bsp::shim
