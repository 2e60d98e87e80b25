// Resolves host names that a user gives. Pods and the operator exchange IP addresses.
#pragma once

#include <string>

#include "base/core/error.h"

namespace bsp::net {

// The first address that the system's resolver returns for "host:port", in the format of address.h. May take seconds.
Result<std::string> resolve(const std::string& host_and_port);

}  // namespace bsp::net
