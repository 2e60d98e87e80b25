// Directories of the run directory. Files in it: base/core/own_file.h, for the program may make and remove names there.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/core/error.h"

namespace bsp::sidecar {

// Makes a directory unless it is there (a link to one is not) and gives it exactly this mode.
Result<void> make_directory(const std::string& path, mode_t mode);

}  // namespace bsp::sidecar
