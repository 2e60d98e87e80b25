// BSP_USER (uid, uid:gid, name, name:group) to numbers, from the image's own /etc/passwd and
// /etc/group. Parsed here because the binary is static: no NSS.
#pragma once

#include <string>
#include <string_view>

#include "base/core/error.h"
#include "sidecar/init/process.h"

namespace bsp::init {

// passwd, group: contents of the two files ("" if the image has none). An empty spec is uid 0.
// A uid without group takes the group of its passwd entry, else 0 (as container runtimes do).
Result<User> parse_user(std::string_view spec, std::string_view passwd, std::string_view group);

// The same with /etc/passwd and /etc/group.
Result<User> resolve_user(std::string_view spec);

}  // namespace bsp::init
