// Resolves BSP_USER (uid, uid:gid, name, name:group) to numbers with the image's own /etc/passwd and /etc/group.
// Parsed here, because the binary is static and has no NSS.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "sidecar/init/process.h"

namespace bsp::init {

// passwd, group: contents of the two files ("" if the image has none). An empty spec is uid 0. A uid without group
// gets the group of its passwd entry, else 0 (as in container runtimes).
Result<User> parse_user(std::string_view spec, std::string_view passwd, std::string_view group);

// The supplementary groups that the program would have if its container ran as `user`, in ascending order. The
// container runs as root, so `held` (its groups) includes root's own group and those that the image's /etc/group
// gives root: the program gets what /etc/group gives its own user instead. Groups that the pod requests (fsGroup,
// supplementalGroups) and that the kubelet adds stay. `asked`: BSP_GROUPS (crds/names.h). Container runtimes include
// the primary group too, so that a process can't evade a file's restrictions for its group by leaving that group.
std::vector<gid_t> program_groups(const User& user, std::span<const gid_t> held, std::string_view asked,
                                  std::string_view passwd, std::string_view group);
// Space-separated numbers; other words are skipped.
std::vector<gid_t> parse_groups(std::string_view text);
std::string groups_text(std::span<const gid_t> groups);

// Both with /etc/passwd, /etc/group and this process's own groups.
Result<User> resolve_user(std::string_view spec, std::string_view asked_groups);

// Which user to resolve: `setting` (BSP_USER), else what `bsp-init --note-user` has written to `file`, else "", which is root.
Result<std::string> user_spec(const std::string& setting, const std::string& file);

}  // namespace bsp::init
