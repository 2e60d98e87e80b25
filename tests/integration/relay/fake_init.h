// bsp-init's end of a sidecar, played by the test: control messages, and files into the capture socket.
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

  // Acts as criu and bsp-init: connects to the capture socket and sends one file after the other.
  class Capture {
   public:
    explicit Capture(const std::string& run_dir);
    // Writes `size` bytes; false if the reader has closed the pipe.
    bool file(std::string_view name, std::size_t size, char fill);

   private:
    Fd socket_;
  };

 private:
  std::string run_dir_;
  Fd socket_;
};

}  // namespace bsp::test
