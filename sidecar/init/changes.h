// What the program has created, changed or removed in its pod's own file systems, which don't move with it: the
// container's root and the volumes that end with the pod. No one but the kernel sets a file's change time (ctime), so
// whatever has one after bsp-init's start has been touched since. Each changed directory comes with the names in it: what
// the image has beside them has been removed.
//
// In an overlay, where every container's root is one, only the directories that the container has copied up are read: one
// whose change time is older than the container has nothing changed below it. So the cost is the program's own doing, not
// the image's size.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"

namespace bsp::init {

// When changes began, by the clock that file systems use.
class ChangeClock {
 public:
  ChangeClock();
  // To be called while time passes: where the clock has been set back, later changes look older than they are.
  void check();
  [[nodiscard]] std::int64_t since_ns() const { return start_ns_ - set_back_ns_; }

 private:
  std::int64_t start_ns_;
  std::int64_t ahead_ns_;  // of the steady clock
  std::int64_t set_back_ns_ = 0;
};

// What tells the image's files from the program's.
struct Age {
  std::int64_t image_ns = 0;    // what has changed before that belongs to the image
  std::int64_t program_ns = 0;  // what has changed since then may be the program's; between the two: the runtime's
  bool overlay = false;         // below a directory of the image nothing has changed
};
// Of the file system at `root`.
Age age_of(const std::string& root, std::int64_t program_ns);

enum class NameKind : char { kRequired = 'E', kPossible = 'M', kSocket = 'S' };

struct ChangedDirectory {
  struct Name {
    NameKind kind;  // kPossible: of the container runtime or of another user; it need not be in another pod
    std::string name;
    mode_t mode = 0;  // of a socket
  };
  std::string path;
  std::vector<Name> names;
};

struct Changes {
  std::vector<std::string> paths;             // a directory before what is in it; sockets are in `directories` only
  std::vector<ChangedDirectory> directories;  // of the root file system
  std::uint64_t bytes = 0;
  std::string largest;
  std::uint64_t largest_bytes = 0;
};

// Adds what this process' user can have changed below `root`, on the same mount. kRefused names the first path that it
// has changed and can't read.
Result<void> find_changes(const std::string& root, const Age& age, bool with_directories, Changes& out);

// The root, if it can be written, and those of `volumes` (BSP_POD_VOLUMES), as find_changes does.
Result<Changes> find_pod_changes(std::string_view volumes, std::int64_t program_ns);

// What criu will write of a process, by its /proc/<pid>/status: about.
std::uint64_t dumped_memory(std::string_view status);
// kRefused if the target's file system for checkpoints, which is as large as that at `run_dir`, can't hold both.
Result<void> check_fits(const Changes& changes, std::uint64_t memory, std::uint64_t capacity);
// 0: it is not a file system of limited size.
std::uint64_t checkpoint_capacity(const std::string& run_dir);

// What can't be carried, with the remedy that always helps.
std::unexpected<Error> cannot_carry(const std::string& path, const std::string& why, const std::string& remedy);

}  // namespace bsp::init
