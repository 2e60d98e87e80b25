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

// kRefused with the first reason found: an open socket, a perf, io_uring, … descriptor, a message
// queue, a file that can't be opened again under its name, a child process, a process that left the program's tree, a
// seccomp filter.
Result<void> check_movable(pid_t pid, const User& user);

}  // namespace bsp::init
