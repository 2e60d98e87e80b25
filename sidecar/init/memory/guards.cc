#include "sidecar/init/memory/guards.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <format>
#include <functional>

#include "base/core/fd.h"
#include "sidecar/init/memory/borrowed_thread.h"

namespace bsp::init {
namespace {

constexpr int kInstall = 102, kRemove = 103;    // MADV_GUARD_INSTALL, MADV_GUARD_REMOVE
constexpr std::uint64_t kGuardPages = 1U << 8;  // PAGE_IS_GUARD, Linux 6.15
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kEndOfMemory = 0x7ffffffff000;  // of a process of x86-64

bool kernel_has_guards() {
  void* const page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return true;  // it may
  const bool has = ::madvise(page, kPage, kInstall) == 0;
  ::munmap(page, kPage);
  return has;
}

// Calls `found` with each range of pages of one of the categories, until it returns false. False: the kernel doesn't know them.
Result<bool> scan(int pagemap, std::uint64_t categories, const std::function<bool(const page_region&)>& found) {
  std::vector<page_region> regions(256);
  pm_scan_arg scan{};
  scan.size = sizeof scan;
  scan.end = kEndOfMemory;
  scan.vec = reinterpret_cast<std::uintptr_t>(regions.data());
  scan.vec_len = regions.size();
  scan.category_mask = scan.return_mask = categories;
  while (scan.start < scan.end) {
    const int count = ::ioctl(pagemap, PAGEMAP_SCAN, &scan);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EINVAL || errno == ENOTTY)) return false;
    if (count < 0) return fail_errno("reading the program's page map");
    for (int i = 0; i < count; ++i)
      if (!found(regions[static_cast<std::size_t>(i)])) return true;
    scan.start = scan.walk_end;
  }
  return true;
}

Result<void> advise(pid_t pid, const Guards& guards, int advice) {
  if (guards.empty()) return {};
  BSP_TRY(BorrowedThread thread, BorrowedThread::of(pid));
  for (const Guard& guard : guards) {
    BSP_TRY(const std::int64_t returned,
            thread.call(SYS_madvise, {guard.start, guard.end - guard.start, static_cast<std::uint64_t>(advice)}));
    if (returned != 0)
      return fail_errno(std::format("madvise({}) of the guard pages at {:x}",
                                    advice == kInstall ? "MADV_GUARD_INSTALL" : "MADV_GUARD_REMOVE", guard.start),
                        static_cast<int>(-returned));
  }
  return {};
}

}  // namespace

Result<bool> has_unlisted_guards(int pagemap, int memory) {
  bool unreadable = false;
  BSP_TRY(const bool known, scan(pagemap, PAGE_IS_SWAPPED, [&](const page_region& region) {
            for (std::uint64_t at = region.start; at < region.end && !unreadable; at += kPage) {
              char byte = 0;
              unreadable = ::pread(memory, &byte, 1, static_cast<off_t>(at)) != 1;
            }
            return !unreadable;
          }));
  return known && unreadable;
}

// An installed one that is installed again is unchanged: so whether it can be is known while nothing has been removed.
Result<Guards> find_guards(pid_t pid, const User& user) {
  if (!kernel_has_guards()) return Guards();
  const std::string process = "/proc/" + std::to_string(pid);
  Fd pagemap, memory;
  {
    const FsIdentity as_program(user);
    pagemap = Fd(::open((process + "/pagemap").c_str(), O_RDONLY | O_CLOEXEC));
    memory = Fd(::open((process + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
  }
  if (!pagemap || !memory) return fail_errno("reading the program's page map");
  Guards guards;
  BSP_TRY(const bool listed, scan(pagemap.get(), kGuardPages, [&](const page_region& region) {
            guards.push_back({.start = region.start, .end = region.end});
            return true;
          }));
  if (!listed) {
    BSP_TRY(const bool unlisted, has_unlisted_guards(pagemap.get(), memory.get()));
    if (unlisted)
      return fail(ErrorCode::kRefused,
                  "not migratable now: the program has guard pages (MADV_GUARD_INSTALL), which this node's kernel "
                  "doesn't list; it needs Linux 6.15");
  }
  if (auto again = put_on(pid, guards); !again) {
    if (again.error().code == ErrorCode::kUnavailable) return std::unexpected(std::move(again).error());
    return fail(
        ErrorCode::kRefused,
        std::format("not migratable now: {}; if their memory is locked, unlock it (munlock)", again.error().message));
  }
  return guards;
}

Result<void> take_off(pid_t pid, const Guards& guards) { return advise(pid, guards, kRemove); }
Result<void> put_on(pid_t pid, const Guards& guards) { return advise(pid, guards, kInstall); }

std::string encode(const Guards& guards) {
  std::string text;
  for (const Guard& guard : guards) text += std::format("{:x}-{:x}\n", guard.start, guard.end);
  return text;
}

Result<Guards> decode_guards(std::string_view text) {
  Guards guards;
  while (!text.empty()) {
    Guard guard;
    const char* const end = text.data() + text.size();
    const auto [dash, first] = std::from_chars(text.data(), end, guard.start, 16);
    const auto [line_end, second] = std::from_chars(dash == end ? end : dash + 1, end, guard.end, 16);
    if (first != std::errc() || second != std::errc() || *dash != '-' || line_end == end || *line_end != '\n' ||
        guard.start >= guard.end || guard.end > kEndOfMemory || guard.start % kPage != 0 || guard.end % kPage != 0)
      return fail(ErrorCode::kInvalid, "the checkpoint's list of guard pages is damaged");
    guards.push_back(guard);
    text.remove_prefix(static_cast<std::size_t>(line_end + 1 - text.data()));
  }
  return guards;
}

}  // namespace bsp::init
