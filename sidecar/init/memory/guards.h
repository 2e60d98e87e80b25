// Guard pages (madvise(MADV_GUARD_INSTALL), Linux 6.13), which glibc 2.42 puts below threads' stacks and criu before 4.2 can't dump. They
// are taken off a stopped process before criu dumps it, and put on again before it runs, here and where it is restored.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "sidecar/init/process.h"

namespace bsp::init {

inline constexpr std::string_view kGuardsFile = "bsp-guards";  // of the image, if the process has any

struct Guard {
  std::uint64_t start = 0, end = 0;
  bool operator==(const Guard&) const = default;
};
using Guards = std::vector<Guard>;

// Those of a stopped process. kRefused: it has some that can't be found or put on again.
Result<Guards> find_guards(pid_t pid, const User& user);
Result<void> take_off(pid_t pid, const Guards& guards);
Result<void> put_on(pid_t pid, const Guards& guards);

std::string encode(const Guards& guards);
Result<Guards> decode_guards(std::string_view text);

// For kernels that have guard pages but don't list them (6.13, 6.14): whether a page that counts as swapped out can't be read.
Result<bool> has_unlisted_guards(int pagemap, int memory);

}  // namespace bsp::init
