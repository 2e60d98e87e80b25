// File operations for the store, the node and the network: a file is complete or doesn't exist.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "base/core/fd.h"

namespace bsp::local {

// Writes `temporary` (in the same directory) and renames it to `path`; mode 0600. kNoSpace, kFailed; a failure leaves
// `path` as it was and removes `temporary`.
Result<void> replace_file(const std::string& path, const std::string& temporary, std::string_view content);
// mkdir -p, mode 0700.
Result<void> make_directories(const std::string& path);
// rm -r; succeeds if there is nothing. Never follows a symbolic link or enters another mounted file system.
Result<void> remove_tree(const std::string& path);
// Opens or creates the file and takes an exclusive flock. Closing the Fd, or the process's death, releases it.
Result<Fd> lock_file(const std::string& path);
// The same, but returns kConflict at once if another process holds the lock.
Result<Fd> try_lock_file(const std::string& path);

}  // namespace bsp::local
