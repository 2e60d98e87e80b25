// Finds the file of the user's command, checks that libbspmpi.so can be preloaded into it, and makes the environment in
// which it is. Checked before exec, because the loader's own message about a static or foreign binary doesn't help.
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

// The command without an init in front of it (tini, dumb-init, catatonit): bsp-init is one, a rank that another process has
// started can't move, and a static init couldn't have the shim preloaded. As it is if an option of the init means more.
std::vector<std::string> without_init(std::vector<std::string> command);

// The file that `command` names for this user: unchanged if it contains a slash, else the first executable one in
// `path` (a PATH value). kNotFound, kInvalid (exists but isn't executable).
Result<std::string> find_command(const std::string& command, std::string_view path, const User& user);

// kInvalid if the file, or the interpreter of a #! script, is a statically linked ELF, is built for another
// architecture, or is not a program. A file that can't be read passes: exec will report it.
Result<void> check_preloadable(const std::string& file);

// The program's environment: bsp-init's own, `environment`, with the shim preloaded ("": none) and the program user's
// HOME. The user's own libraries come first, as they would come before MPI: an MPI tool then calls the shim, where the
// shim would call none of it, and a sanitizer's runtime must be the first library.
std::vector<std::string> program_environment(const char* const* environment, const std::string& shim, const User& user);

}  // namespace bsp::init
