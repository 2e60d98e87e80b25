// Properties of memory that criu 4.1 doesn't keep: madvise(MADV_WIPEONFORK), MAP_DROPPABLE (Linux 6.11) and mlock2(MLOCK_ONFAULT). glibc
// from 2.41 on has the state of getrandom(2) in droppable memory: without the property a child draws its parent's random numbers. They are
// noted before criu dumps a stopped process, and given to the restored one before it runs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "sidecar/init/user.h"

namespace bsp::init {

inline constexpr std::string_view kUnkeptFile = "bsp-memory";  // of the image, if the process has any

enum class Property : char { kDroppable = 'd', kLockedOnFault = 'l', kWipedOnFork = 'w' };

struct UnkeptMemory {
  Property property = Property::kWipedOnFork;
  std::uint64_t start = 0, end = 0;
  bool operator==(const UnkeptMemory&) const = default;
};
using UnkeptMemories = std::vector<UnkeptMemory>;

// Of a stopped process. kRefused: it has memory under a protection key, which nobody gives back.
Result<UnkeptMemories> find_unkept(pid_t pid, const User& user);
// What lay in droppable memory is dropped, so that a set that is restored twice gives no random number twice.
Result<void> give_back(pid_t pid, const UnkeptMemories& memories);

UnkeptMemories unkept_in(std::string_view smaps);
bool has_protection_key(std::string_view smaps);
std::string encode(const UnkeptMemories& memories);
Result<UnkeptMemories> decode_unkept(std::string_view text);

}  // namespace bsp::init
