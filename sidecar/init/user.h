// BSP_USER (uid, uid:gid, name, name:group) to numbers, from the image's own /etc/passwd and
// /etc/group. Parsed here because the binary is static: no NSS.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "sidecar/init/process.h"

namespace bsp::init {

// passwd, group: contents of the two files ("" if the image has none). An empty spec is uid 0.
// A uid without group takes the group of its passwd entry, else 0 (as container runtimes do).
Result<User> parse_user(std::string_view spec, std::string_view passwd, std::string_view group);

// The supplementary groups that the program would have if its container ran as `user`, in ascending order. The container
// runs as root, so `held` (its groups) has root's own group and those that the image's /etc/group gives root: the
// program gets what /etc/group gives its own user instead. What the pod asks for (fsGroup, supplementalGroups) and what
// the kubelet adds stays. `asked`: BSP_GROUPS (crds/names.h). The runtimes put the primary group there too, so that
// permissions that a file denies its group can't be had by leaving it.
std::vector<gid_t> program_groups(const User& user, std::span<const gid_t> held, std::string_view asked,
                                  std::string_view passwd, std::string_view group);
// Numbers between spaces; other words are skipped.
std::vector<gid_t> parse_groups(std::string_view text);
std::string groups_text(std::span<const gid_t> groups);

// Both with /etc/passwd, /etc/group and this process' own groups.
Result<User> resolve_user(std::string_view spec, std::string_view asked_groups);

}  // namespace bsp::init
