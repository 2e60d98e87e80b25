// The mounts of a process, as /proc/PID/mountinfo lists them (proc_pid_mountinfo(5)).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bsp {

struct MountEntry {
  std::string path;  // of the mount point
  bool writable = false;
  std::string type;  // of its file system
};

// In the order of mounting: an inner mount comes after the outer one, one that covers another after that.
std::vector<MountEntry> mounts_in(std::string_view mountinfo);

}  // namespace bsp
