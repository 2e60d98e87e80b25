// Hosts' names, where a person gives one: pods and the operator give each other IP addresses.
#pragma once

#include <string>

#include "base/core/error.h"

namespace bsp::net {

// The first address of "host:port" that the system's resolver gives, as address.h writes it. May take seconds.
Result<std::string> resolve(const std::string& host_and_port);

}  // namespace bsp::net
