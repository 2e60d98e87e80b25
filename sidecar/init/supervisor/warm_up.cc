#include "sidecar/init/supervisor/warm_up.h"

#include <sys/wait.h>
#include <unistd.h>

namespace bsp::init {

void WarmUp::begin_if_due(const Container& container) {
  if (!due_ || Steady::now() < *due_) return;
  due_.reset();
  if (::access(container.options.run_dir.c_str(), F_OK) != 0) return;
  if (auto pid = start_criu(container.criu, "check", warm_up_arguments(container.criu), container.user, {}))
    pid_ = *pid;
  // A missing criu must not keep the program from running; the first dump will report it.
}

void WarmUp::end() {
  due_.reset();
  if (pid_ == 0) return;
  kill_session(pid_);
  ::waitpid(pid_, nullptr, 0);
  while (::waitpid(-pid_, nullptr, 0) > 0) {
  }
  pid_ = 0;
}

}  // namespace bsp::init
