// What a stopped process holds that criu cannot carry to another pod, named in the user's words and
// found before criu is asked: a failed dump costs a pause and explains little.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/core/error.h"
#include "sidecar/init/process.h"

namespace bsp::init {

// The reason why a descriptor with this /proc/<pid>/fd target cannot move, or nothing.
std::optional<std::string> unmovable(std::string_view target);

// Of a /proc/<pid>/status.
bool has_seccomp_filter(std::string_view status);

// The access mode of an open file, by its /proc/<pid>/fdinfo, as access(2) wants it.
int access_mode(std::string_view fdinfo);

// The identifier of the first System V object in a /proc/sysvipc/… that `uid` has made or been given.
std::optional<std::string> system_v_object(std::string_view table, uid_t uid);

// The first file in a /proc/<pid>/maps of which the mapped name was removed and another one is left in `dir`, as sem_open
// leaves it: criu takes a file by its name, or its content where it has none.
std::optional<std::string> mapped_under_a_removed_name(std::string_view maps, const std::string& dir = "/dev/shm");

// kRefused with the first reason found: an open socket, a perf, io_uring, inotify, … descriptor, a file that can't be
// opened again under its name, a message queue, semaphore set or segment of System V, a POSIX message queue, a child
// process, a process that left the program's tree, a seccomp filter.
Result<void> check_movable(pid_t pid, const User& user);

}  // namespace bsp::init
