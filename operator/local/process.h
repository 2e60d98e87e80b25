// Guards the operator's forked child process: it never outlives its parent.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>

#include "base/core/error.h"

namespace bsp::local {

class ChildProcess {
 public:
  ChildProcess() = default;
  ~ChildProcess() { stop(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Forks and runs `work`, which returns the exit status. The calling process must have only one thread. The child gets
  // SIGTERM when its parent dies, and ignores Ctrl-C in the terminal.
  Result<void> start(const std::function<int()>& work);
  // Its wait status (waitpid(2)) if it has exited since start().
  std::optional<int> ended();
  // Sends SIGTERM, and SIGKILL 10 s later. Does nothing if there is no child.
  void stop();

 private:
  pid_t pid_ = 0;
};

}  // namespace bsp::local
