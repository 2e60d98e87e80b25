// A thread of a stopped process that makes system calls for this one, by ptrace(2), while all others stay stopped. The kernel takes some
// calls only from the process that they are about.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <cstdint>

#include "base/core/error.h"

namespace bsp::init {

class BorrowedThread {
 public:
  // kUnavailable: the process has ended. Once the thread is given back, its registers, its signals and the call that it may wait in are as
  // before, and the process is stopped again.
  static Result<BorrowedThread> of(pid_t process);
  BorrowedThread(BorrowedThread&& other) noexcept;
  BorrowedThread& operator=(BorrowedThread&&) = delete;
  BorrowedThread(const BorrowedThread&) = delete;
  BorrowedThread& operator=(const BorrowedThread&) = delete;
  ~BorrowedThread();

  // What the call returns: -errno if it fails.
  Result<std::int64_t> call(std::uint64_t number, const std::array<std::uint64_t, 6>& arguments);

 private:
  BorrowedThread(pid_t process, pid_t thread) : process_(process), thread_(thread) {}
  Result<bool> stop();  // false: it stands where no system call is made
  Result<void> run_to(int wanted);
  Result<int> next_stop() const;
  void give_back();

  pid_t process_;
  pid_t thread_;  // 0: it was given back
  user_regs_struct before_{};
  std::uint64_t signals_before_ = 0;  // that were blocked
  std::uint64_t instruction_ = 0;     // the address of a system call's
  bool called_ = false;
  bool held_stop_ = false;  // a SIGSTOP has come meanwhile
};

}  // namespace bsp::init
