#include "sidecar/init/memory/unkept_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdio>
#include <format>
#include <sstream>

#include "base/core/read_file.h"
#include "sidecar/init/memory/borrowed_thread.h"
#include "sidecar/init/memory/guards.h"
#include "sidecar/init/process.h"

namespace bsp::init {
namespace {

constexpr std::uint64_t kDroppable = 0x08;  // MAP_DROPPABLE, Linux 6.11
constexpr std::uint64_t kNone = static_cast<std::uint64_t>(-1);

// Of a line VmFlags: two letters and a space for each. Droppable memory is wiped on fork, too.
std::vector<Property> properties_of(std::string_view flags) {
  std::vector<Property> found;
  if (flags.contains(" dp ")) found.push_back(Property::kDroppable);
  if (flags.contains(" wf ") && found.empty()) found.push_back(Property::kWipedOnFork);
  if (flags.contains(" lf ")) found.push_back(Property::kLockedOnFault);
  return found;
}

Result<std::int64_t> wipe_on_fork(BorrowedThread& thread, const UnkeptMemory& memory) {
  return thread.call(SYS_madvise, {memory.start, memory.end - memory.start, MADV_WIPEONFORK});
}

// On a kernel without such memory it is wiped on fork, as there; what lay in it goes likewise.
Result<std::int64_t> drop(BorrowedThread& thread, const UnkeptMemory& memory) {
  const std::uint64_t length = memory.end - memory.start;
  BSP_TRY(const std::int64_t mapped, thread.call(SYS_mmap, {memory.start, length, PROT_READ | PROT_WRITE,
                                                            kDroppable | MAP_ANONYMOUS | MAP_FIXED, kNone, 0}));
  if (mapped == static_cast<std::int64_t>(memory.start)) return 0;
  BSP_TRY(const std::int64_t dropped, thread.call(SYS_madvise, {memory.start, length, MADV_DONTNEED}));
  return dropped != 0 ? Result<std::int64_t>(dropped) : wipe_on_fork(thread, memory);
}

Result<std::int64_t> give_back(BorrowedThread& thread, const UnkeptMemory& memory) {
  switch (memory.property) {
    case Property::kDroppable:
      return drop(thread, memory);
    case Property::kWipedOnFork:
      return wipe_on_fork(thread, memory);
    case Property::kLockedOnFault:
      return thread.call(SYS_mlock2, {memory.start, memory.end - memory.start, MLOCK_ONFAULT});
  }
  return 0;
}

}  // namespace

// The kernel itself gives one to memory that can only be executed.
bool has_protection_key(std::string_view smaps) {
  std::istringstream lines{std::string(smaps)};
  bool only_executed = false;
  int key = 0;
  for (std::string line; std::getline(lines, line);) {
    char access[5] = "";
    if (std::sscanf(line.c_str(), "%*x-%*x %4s ", access) == 1) only_executed = std::string_view(access) == "--xp";
    if (std::sscanf(line.c_str(), "ProtectionKey: %d", &key) == 1 && key != 0 && !only_executed) return true;
  }
  return false;
}

UnkeptMemories unkept_in(std::string_view smaps) {
  std::istringstream lines{std::string(smaps)};
  UnkeptMemories found;
  UnkeptMemory here;
  for (std::string line; std::getline(lines, line);) {
    std::uint64_t start = 0, end = 0;
    if (line.starts_with("VmFlags:")) {
      for (const Property property : properties_of(line + ' '))
        found.push_back({.property = property, .start = here.start, .end = here.end});
    } else if (std::sscanf(line.c_str(), "%lx-%lx %*4s ", &start, &end) == 2) {
      here = {.start = start, .end = end};
    }
  }
  return found;
}

Result<UnkeptMemories> find_unkept(pid_t pid, const User& user) {
  const FsIdentity as_program(user);
  BSP_TRY(const std::string smaps, read_file("/proc/" + std::to_string(pid) + "/smaps"));
  if (has_protection_key(smaps))
    return fail(
        ErrorCode::kRefused,
        "not migratable now: the program has memory under a protection key (pkey_mprotect), which criu doesn't keep");
  return unkept_in(smaps);
}

Result<void> give_back(pid_t pid, const UnkeptMemories& memories) {
  if (memories.empty()) return {};
  BSP_TRY(BorrowedThread thread, BorrowedThread::of(pid));
  for (const UnkeptMemory& memory : memories) {
    BSP_TRY(const std::int64_t returned, give_back(thread, memory));
    if (returned != 0)
      return fail_errno(std::format("giving the memory at {:x} back its property '{}'", memory.start,
                                    static_cast<char>(memory.property)),
                        static_cast<int>(-returned));
  }
  return {};
}

std::string encode(const UnkeptMemories& memories) {
  std::string text;
  for (const UnkeptMemory& memory : memories)
    text += static_cast<char>(memory.property) + encode(Guards{{.start = memory.start, .end = memory.end}});
  return text;
}

Result<UnkeptMemories> decode_unkept(std::string_view text) {
  UnkeptMemories memories;
  while (!text.empty()) {
    const std::size_t length = std::min(text.size(), text.find('\n') + 1);
    const auto range = decode_guards(text.substr(1, length - 1));
    if (!std::string_view("dlw").contains(text[0]) || !range || range->size() != 1)
      return fail(ErrorCode::kInvalid, "the checkpoint's list of memory is damaged");
    memories.push_back({.property = Property{text[0]}, .start = range->front().start, .end = range->front().end});
    text.remove_prefix(length);
  }
  return memories;
}

}  // namespace bsp::init
