// Which of a container's paths can move with a rank (spec.carryPaths).
#pragma once

#include <string>
#include <string_view>

#include "crds/names.h"

namespace bsp::crds {

// Absolute paths of the program's own files: not the whole container, what the kernel or the operator mounts, or a way
// around that by `..`.
inline bool can_be_carried(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const auto below = [&path](std::string_view dir) {
    return path == dir || (path.starts_with(dir) && path[dir.size()] == '/');
  };
  if (!path.starts_with('/') || path == "/" || below("/proc") || below("/sys") || below(names::kRunDir)) return false;
  if (below("/dev") && !below("/dev/shm")) return false;
  return (std::string(path) + "/").find("/../") == std::string::npos;
}

}  // namespace bsp::crds
