// Moves the calling thread into a network namespace for good. Local mode reaches its pods from the hub's namespace.
#pragma once

#include <string>

#include "base/core/error.h"

namespace bsp {

// `path`: the namespace's file, such as /proc/PID/ns/net. kNotFound, kFailed.
Result<void> enter_network_namespace(const std::string& path);

}  // namespace bsp
