// A call of criu that fills its cache of kernel features, when the program's start is over: it saves the first pause 10 ms.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

#include "sidecar/init/supervisor/container.h"

namespace bsp::init {

class WarmUp {
 public:
  using Steady = std::chrono::steady_clock;

  void begin_after(std::chrono::seconds wait) { due_ = Steady::now() + wait; }
  [[nodiscard]] std::optional<Steady::time_point> due() const { return due_; }
  void begin_if_due(const Container& container);
  // It isn't needed any more: the real criu begins.
  void end();

  [[nodiscard]] pid_t pid() const { return pid_; }  // 0: it doesn't run
  void ended() { pid_ = 0; }

 private:
  std::optional<Steady::time_point> due_;
  pid_t pid_ = 0;
};

}  // namespace bsp::init
