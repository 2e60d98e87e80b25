// Which file the user's command is, and whether libbspmpi.so can be preloaded into it: checked before
// exec, because what the loader would say of a static or foreign binary helps nobody.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "sidecar/init/process.h"

namespace bsp::init {

// As a shell would exit: 127 command not found, 126 found but not executable.
inline constexpr int kExitNotFound = 127;
inline constexpr int kExitNotExecutable = 126;

// The file that `command` names for this user: as it is if it has a slash, else the first executable
// one in `path` (a PATH value). kNotFound, kInvalid (there, but not executable).
Result<std::string> find_command(const std::string& command, std::string_view path, const User& user);

// kInvalid if the file, or the interpreter of a #! script, is a statically linked ELF, is for another
// architecture, or is no program. A file that can't be read is let through: exec will tell.
Result<void> check_preloadable(const std::string& file);

}  // namespace bsp::init
