// Files that move with the program, as one pax archive (libarchive): what it has written in its pod (changes.h), its
// files in /dev/shm, and spec.carryPaths. Both ends run in a worker process under the program's uid: files that this
// user can't read aren't moved, and files that it can't write aren't restored.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "sidecar/init/changes.h"

namespace bsp::init {

inline constexpr std::string_view kCarryFile = "bsp-carry.tar";

// BSP_CARRY_PATHS: absolute, ':'-separated. kInvalid names a path that is relative, "/", or under /proc, /sys, /dev
// (except /dev/shm) or the run directory.
Result<std::vector<std::string>> parse_carry_paths(std::string_view text);

// The regular files and directories in /dev/shm that belong to `uid`.
Result<std::vector<std::string>> shared_memory_files(uid_t uid, const std::string& dir = "/dev/shm");

// Those of them that the process has open or mapped. The ranks of a pod share /dev/shm, and each takes only its own along.
Result<std::vector<std::string>> shared_memory_files_of(pid_t pid, uid_t uid, const std::string& dir = "/dev/shm");

// Writes `changes` and everything below `trees` to `fd`, preserving holes. Missing trees are skipped; within them,
// sockets, devices and unreadable files are errors that name the file.
Result<void> write_carry(const std::vector<std::string>& trees, const Changes& changes, int fd);

// Whether nothing of it is the program's own: Open MPI leaves directories of its sessions behind in /tmp.
bool holds_only_sessions(const std::vector<std::string>& trees, const Changes& changes);
// Removes these directories, as the program's user.
Result<void> remove_sessions(const std::string& temporary = "/tmp");

// Unpacks the archive over the existing files, with groups, modes, extended attributes and times, and removes what
// the program has removed. `age` is this pod's. kRefused: an unchanged file of the source's image is missing in this
// one; or, with `keep` (a directory that other programs use too), a file is there already.
Result<void> read_carry(const std::string& archive, const Age& age, const std::string& keep = "");

}  // namespace bsp::init
