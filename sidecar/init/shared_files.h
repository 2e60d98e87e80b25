// The program's files on shared volumes, which no image holds: they run ahead of a checkpoint set, and the ranks that go back to it
// would find what they have yet to write. So each set notes them as they were at its gate, and a restore from it compares:
//
//   as noted                                          fine
//   grown, and the rest as noted                      cut off at the noted size, and said
//   rewritten, replaced, shorter, removed             refused by name (spec.checkpoint.sharedFiles: Ignore doesn't compare)
//
// Noted are the files, on volumes mounted for writing, that the rank has open or mapped and, by one rank for all, those that the program's user has written since the
// program began, which may be closed: a log that is opened for each line. Of a file's content its two ends are compared, and
// all of it where the program writes at any place (the files of MPI_File_open): else it would not show that what it has overwritten lies
// before the place where the file has grown. Of such files that are too large for that only growth is refused.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "base/core/fields.h"
#include "sidecar/control/messages.h"

namespace bsp::init {

inline constexpr std::string_view kNotesFile = "bsp-shared-files";

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

// A file as it was at the gate.
struct NotedFile {
  static constexpr std::string_view kVerb = "file";
  std::string path;
  std::uint64_t kind = 0;  // of its file system: f_type of statfs(2)
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t written_ns = 0;  // mtime
  std::uint64_t checksum = 0;   // of its first and last bytes; 0: it could not be read
  int whole = 0;                // 1: of all its bytes
  int open = 0;                 // 1: the program has it open or mapped, with these
  std::uint32_t flags = 0;      // of open(2)
  std::uint64_t position = 0;
  bool operator==(const NotedFile&) const = default;
};
constexpr void fields_of(Of<NotedFile>, auto&& v) {
  v("path", &NotedFile::path);
  v("kind", &NotedFile::kind);
  v("inode", &NotedFile::inode);
  v("size", &NotedFile::size);
  v("written", &NotedFile::written_ns);
  v("checksum", &NotedFile::checksum);
  v("whole", &NotedFile::whole);
  v("open", &NotedFile::open);
  v("flags", &NotedFile::flags);
  v("position", &NotedFile::position);
}

struct Notes {
  static constexpr std::string_view kVerb = "notes";
  std::int64_t at_ns = 0;  // when, by the clock of the rank's machine
  int all = 0;             // 1: written ones too
  int incomplete = 0;      // 1: there are too many to look at all
  std::vector<NotedFile> files;
};
constexpr void fields_of(Of<Notes>, auto&& v) {
  v("at", &Notes::at_ns);
  v("all", &Notes::all);
  v("incomplete", &Notes::incomplete);
}

std::string encode(const Notes& notes);  // a packet of control.h in a line
Result<Notes> decode_notes(std::string_view text);

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

// Compares, and cuts off what has grown. Returns what people should know, "": nothing. kRefused: the first file that the ranks must
// not go on with. Several ranks may do it at once with the same files.
Result<std::string> check_shared_files(const Notes& notes, const Mounts& mounts);

}  // namespace bsp::init
