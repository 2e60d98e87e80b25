// Directories in the run directory. For files in it use base/core/own_file.h, because the program may create and
// remove names there.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/core/error.h"

namespace bsp::sidecar {

// Creates a directory unless it exists (a symbolic link doesn't count) and sets exactly this mode.
Result<void> make_directory(const std::string& path, mode_t mode);

}  // namespace bsp::sidecar
