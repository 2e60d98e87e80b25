// The program's files on shared volumes, which no image holds: they run ahead of a checkpoint set, and the ranks that go back to it
// would find what they have yet to write. So each set notes them as they were at its gate, and a restore from it compares:
//
//   as noted                                          fine
//   grown, and the rest as noted                      cut off at the noted size, and said, once every rank has accepted the set
//   rewritten, replaced, shorter, removed             refused by name (spec.checkpoint.sharedFiles: Ignore doesn't compare)
//
// Noted are the files, on volumes mounted for writing, that the rank has open or mapped and, by one rank for all, those that the
// program's user has written since the program began, which may be closed: a log that is opened for each line. Of a file's content its
// two ends are compared, and all of it where the program writes at any place (the files of MPI_File_open): else it would not show that
// what it has overwritten lies before the place where the file has grown. Of such files that are too large for that only growth is
// refused.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "sidecar/control/notes.h"

namespace bsp::init {

// A mount of the container that isn't its pod's own.
struct SharedMount {
  std::string path;
  bool writable = false;
  bool operator==(const SharedMount&) const = default;
};

// Of a /proc/self/mountinfo. Not shared: the root, the kernel's and the runtime's own file systems, those of `own` (which end with
// the pod, or whose content moves with the rank), and files that are mounted alone, as /etc/hosts.
class Mounts {
 public:
  Mounts(std::string_view mountinfo, std::vector<std::string> own);
  // The shared mount in which this absolute path lies; nullptr: it lies in none.
  [[nodiscard]] const SharedMount* of(std::string_view path) const;
  [[nodiscard]] std::vector<SharedMount> writable() const;

 private:
  struct Mount {
    SharedMount mount;
    bool shared = false;
  };
  std::vector<Mount> mounts_;  // the innermost last
  std::vector<std::string> own_;
};

using control::NotedFile;
using control::Notes;

// What the stopped process has open or mapped there.
Result<void> note_open_files(pid_t pid, const Mounts& mounts, Notes& notes);
// What this process's user has written there since then. Files whose time is a little older count too, since a server's clock may be
// behind.
struct WalkLimits {
  std::size_t entries = 50'000;
  std::int64_t ns = 2'000'000'000;
};
Result<void> note_written_files(const Mounts& mounts, std::int64_t since_ns, Notes& notes,
                                const WalkLimits& limits = {});

// Compares; with `kCut` it also cuts off what has grown. kRefused: the first file that the ranks must not go on with. Several ranks may
// do it at once with the same files. Of a set that one rank refuses, none may have cut off anything: the ranks go back to an older one, or
// to the beginning, and what was lost from a file would be noticed there by nobody.
enum class Grown { kTold, kCut };
struct Compared {
  bool ahead = false;  // some have grown, and are as they were found
  std::string said;    // what people should know, "": nothing
};
Result<Compared> check_shared_files(const Notes& notes, const Mounts& mounts, Grown grown);

}  // namespace bsp::init
