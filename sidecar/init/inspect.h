// Finds what a stopped process holds that criu can't carry to another pod, and names it in the user's terms. Checked
// before criu runs, because a failed dump costs a pause and explains little.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/error.h"
#include "sidecar/init/process.h"

namespace bsp::init {

// Why a descriptor with this /proc/<pid>/fd target can't be moved, or nullopt.
std::optional<std::string> unmovable(std::string_view target);

// From a /proc/<pid>/status.
bool has_seccomp_filter(std::string_view status);

// What /proc/<pid>/fdinfo says of a descriptor: its flags, as open(2) takes them; whether it is an eventfd made with EFD_SEMAPHORE (Linux
// 6.5 or newer); the count of an eventfd, 0 of others.
unsigned flags_of(std::string_view fdinfo);
bool is_semaphore(std::string_view fdinfo);
std::uint64_t eventfd_count(std::string_view fdinfo);

// The access mode of an open file from its /proc/<pid>/fdinfo, as access(2) takes it.
int access_mode(std::string_view fdinfo);

// The identifier of the first System V object in a /proc/sysvipc/… that `uid` has created or owns.
std::optional<std::string> system_v_object(std::string_view table, uid_t uid);

// The first file in a /proc/<pid>/maps whose mapped name was removed while another link remains in `dir`, as after
// sem_open: criu takes a file by its name, or its content if it has none.
Result<std::optional<std::string>> mapped_unlinked_name(std::string_view maps, const std::string& dir = "/dev/shm");

// kRefused with the first reason found: an open socket; a perf, io_uring, inotify, … descriptor; a file that can't be
// reopened by its name; a working directory that can't be entered again; a message queue, semaphore set or segment of
// System V; a POSIX message queue; a child process; a process that left the program's tree; a seccomp filter. Another
// error if it couldn't look.
Result<void> check_movable(pid_t pid, const User& user);

}  // namespace bsp::init
