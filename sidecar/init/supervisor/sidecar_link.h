// bsp-init's end of the control socket (sidecar/control/messages.h). Either side may be the first to run, and the sidecar may restart.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/core/fd.h"
#include "sidecar/control/messages.h"
#include "sidecar/init/process.h"

namespace bsp::init {

class SidecarLink {
 public:
  using Steady = std::chrono::steady_clock;
  explicit SidecarLink(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] int fd() const { return socket_.get(); }  // -1: no sidecar listens
  [[nodiscard]] bool connected() const { return static_cast<bool>(socket_); }
  [[nodiscard]] Steady::time_point next_try() const { return next_; }

  // True: it has just connected, so the complete state must be sent. The peer can have a program restored with criu's capabilities, so
  // it must not be one of `program`'s user.
  bool connect_if_due(const User& program);
  // A message that can't be delivered is dropped: the next connection starts with the complete state.
  void send(const control::FromInit& message);
  // Passes on what waits in the socket.
  void receive(const std::function<void(const control::ToInit&)>& handle);

 private:
  void lost();

  const std::string path_;
  Fd socket_;
  Steady::time_point next_{};
  int failures_ = 0;
};

}  // namespace bsp::init
