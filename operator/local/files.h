// Files that are whole or not there: what the store, the node and the network need of a directory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "base/core/fd.h"

namespace bsp::local {

// Writes `temporary` (in the same directory) and renames it to `path`; mode 0600. kNoSpace, kFailed; on
// failure neither name is changed.
Result<void> replace_file(const std::string& path, const std::string& temporary, std::string_view content);
// mkdir -p, mode 0700.
Result<void> make_directories(const std::string& path);
// rm -r; fine if there is nothing. Never follows a symbolic link or crosses into a mounted file system.
Result<void> remove_tree(const std::string& path);
// Opens (and makes) the file and takes an exclusive flock; freed when the Fd closes or the process dies.
Result<Fd> lock_file(const std::string& path);
// The same, but kConflict at once if somebody else holds it.
Result<Fd> try_lock_file(const std::string& path);

}  // namespace bsp::local
