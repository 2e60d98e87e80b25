// Small files of the run directory, written so that a reader never sees half of one.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/core/error.h"

namespace bsp::sidecar {

// Writes beside and renames. Not synced to disk: the run directory is a tmpfs.
Result<void> write_file(const std::string& path, const std::string& text, mode_t mode);
// Makes a directory unless it is there and gives it exactly this mode.
Result<void> make_directory(const std::string& path, mode_t mode);

}  // namespace bsp::sidecar
