// A small file as a whole: configuration, tokens, states, what /proc tells.
#pragma once

#include <string>

#include "base/core/error.h"

namespace bsp {

// kNotFound if there is none; else kFailed and the like with the path and the system's reason.
Result<std::string> read_file(const std::string& path);

}  // namespace bsp
