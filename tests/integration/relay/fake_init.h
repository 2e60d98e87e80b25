// bsp-init's end of a sidecar, played by the test: control messages.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/fd.h"
#include "sidecar/control/messages.h"

namespace bsp::test {

class FakeInit {
 public:
  // Connects to <run_dir>/control and sends hello.
  FakeInit(std::string run_dir, control::ProgramState state, uid_t program = 0);

  void say(std::string_view verb, std::map<std::string, std::string, std::less<>> fields = {});
  // The next message except `fresh`, which may come at any time. If none comes in 20 s, its verb describes the
  // problem.
  control::Message next();
  // The next message, which must have this verb.
  control::Message expect(std::string_view verb);

 private:
  std::string run_dir_;
  Fd socket_;
};

}  // namespace bsp::test
