// The sidecar's end of the control socket, for one bsp-init at a time (sidecar/control/messages.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/core/error.h"
#include "base/core/fd.h"
#include "base/net/loop.h"
#include "sidecar/control/messages.h"

namespace bsp::sidecar {

class ControlServer {
 public:
  struct Events {
    std::function<void(const control::FromInit&)> message;
    std::function<void()> lost;
  };

  // Replaces a socket left by a killed sidecar. Only root and the sidecar's own user may connect: the program, under
  // its own uid, must not be able to pose as bsp-init.
  static Result<std::unique_ptr<ControlServer>> listen(net::Loop& loop, const std::string& path, Events events);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  [[nodiscard]] bool connected() const { return static_cast<bool>(connection_); }
  // kUnavailable while bsp-init isn't connected.
  Result<void> send(const control::ToInit& message);

 private:
  ControlServer(net::Loop& loop, std::string path, Fd listener, Events events);
  void accept_one();
  void read_messages();
  void drop();

  net::Loop& loop_;
  std::string path_;
  Fd listener_;
  Fd connection_;
  Events events_;
};

}  // namespace bsp::sidecar
