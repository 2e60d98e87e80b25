// Moves the calling thread into a network namespace, for good: the pods of local mode are reached from the hub's.
#pragma once

#include <string>

#include "base/core/error.h"

namespace bsp {

// `path`: what the namespace is bound to, such as /proc/PID/ns/net. kNotFound, kFailed.
Result<void> enter_network_namespace(const std::string& path);

}  // namespace bsp
