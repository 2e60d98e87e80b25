// Reads a small file whole: configuration, tokens, saved state, files in /proc.
#pragma once

#include <string>

#include "base/core/error.h"

namespace bsp {

// kNotFound if it doesn't exist. Every error's message has the path and the system's reason.
Result<std::string> read_file(const std::string& path);
// The same, but a file that doesn't exist is "".
Result<std::string> read_file_if_any(const std::string& path);

}  // namespace bsp
