// Files that move with the program: what it keeps in /dev/shm and spec.carryPaths, as one pax archive
// (libarchive). Both functions run in a worker process under the program's uid: what that user may
// not read does not move, and what it may not write is not restored.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"

namespace bsp::init {

inline constexpr std::string_view kCarryFile = "bsp-carry.tar";

// BSP_CARRY_PATHS: absolute, ':'-separated. kInvalid names the path that is relative, "/" or under
// /proc, /sys, /dev (but /dev/shm) or the run directory.
Result<std::vector<std::string>> parse_carry_paths(std::string_view text);

// The regular files and directories of /dev/shm that belong to `uid`.
std::vector<std::string> shared_memory_files(uid_t uid, const std::string& dir = "/dev/shm");

// Writes everything below `paths` to `fd`. Missing paths are skipped; sockets, devices and what can't
// be read are errors that name the file.
Result<void> write_carry(const std::vector<std::string>& paths, int fd);

// Unpacks the archive over what is there, with modes and times.
Result<void> read_carry(const std::string& archive);

}  // namespace bsp::init
