// The guard of the one process the operator starts of itself: a child that outlives nobody.
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

  // Forks and runs `work`; what it returns is the exit status. The calling process must have one thread only. The
  // child gets SIGTERM when its parent dies, and none of the terminal's Ctrl-C.
  Result<void> start(const std::function<int()>& work);
  // Its wait status (waitpid(2)), if it has ended since start().
  std::optional<int> ended();
  // SIGTERM, and SIGKILL 10 s later. Fine if there is none.
  void stop();

 private:
  pid_t pid_ = 0;
};

}  // namespace bsp::local
