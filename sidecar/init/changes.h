// Finds what the program has created, changed or removed in its pod's own file systems, which don't move with it: the
// container's root, its /dev and the volumes that end with the pod. Only the kernel sets a file's change time (ctime), so a
// file with a ctime after bsp-init's start has been touched since. Each changed directory comes with the names in it:
// names that only the image has were removed.
//
// In an overlay, which every container's root is, only the directories that the container has copied up are read: a
// directory whose change time is older than the container has no changes below it. So the cost depends on what the
// program did, not on the image's size.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"

namespace bsp::init {

// When changes began, on the clock that file systems use.
class ChangeClock {
 public:
  ChangeClock();
  // Call periodically: if the clock has been set back, later changes look older than they are.
  void check();
  [[nodiscard]] std::int64_t since_ns() const { return start_ns_ - set_back_ns_; }

 private:
  std::int64_t start_ns_;
  std::int64_t ahead_ns_;  // relative to the steady clock
  std::int64_t set_back_ns_ = 0;
};

// Separates the image's files from the program's.
struct Age {
  std::int64_t image_ns = 0;    // anything changed before this belongs to the image
  std::int64_t program_ns = 0;  // anything changed since then may be the program's; between the two: the runtime's
  bool overlay = false;         // below an unchanged directory of the image nothing has changed
};
// For the file system at `root`.
Age age_of(const std::string& root, std::int64_t program_ns);

enum class NameKind : char { kRequired = 'E', kPossible = 'M', kSocket = 'S' };

struct ChangedDirectory {
  struct Name {
    NameKind kind;  // kPossible: created by the container runtime or another user; another pod need not have it
    std::string name;
    mode_t mode = 0;  // of a socket
  };
  std::string path;
  std::vector<Name> names;
};

struct Changes {
  std::vector<std::string> paths;             // a directory precedes its entries; sockets are only in `directories`
  std::vector<ChangedDirectory> directories;  // of the root file system
  std::uint64_t bytes = 0;
  std::string largest;
  std::uint64_t largest_bytes = 0;
};

enum class Place {
  kImage,    // with the names in its directories
  kVolume,   // without them
  kDevices,  // like a volume, but device nodes are the container runtime's
};

// Adds everything below `root`, on the same mount, that this process's user may have changed. kRefused names the
// first path that it has changed and can't read.
Result<void> find_changes(const std::string& root, const Age& age, Place place, Changes& out);

// The type of the file system that a /proc/self/mountinfo shows at this path; "" if none is mounted there.
std::string mounted_type(std::string_view mountinfo, std::string_view path);

// Applies find_changes to the root, if it is writable, to /dev, and to those of `volumes` (BSP_POD_VOLUMES).
Result<Changes> find_pod_changes(std::string_view volumes, std::int64_t program_ns);

// Approximate size of what criu will write for a process, from its /proc/<pid>/status.
std::uint64_t dumped_memory(std::string_view status);
// kRefused if both don't fit into the target's file system for checkpoints, which is as large as the one at
// `run_dir`.
Result<void> check_fits(const Changes& changes, std::uint64_t memory, std::uint64_t capacity);
// 0: not a file system of limited size.
std::uint64_t checkpoint_capacity(const std::string& run_dir);

// What can't be moved, with the remedy that always helps.
std::unexpected<Error> cannot_carry(const std::string& path, const std::string& why, const std::string& remedy);

}  // namespace bsp::init
