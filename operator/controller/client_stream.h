// A client's connection to one of the operator's ports, with or without TLS. It never blocks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/core/fd.h"
#include "base/net/tls.h"

namespace bsp::controller {

class ClientStream {
 public:
  enum class State { kGoesOn, kReadable, kWritable, kEnded };  // goes on at once, or once the socket is ready
  ClientStream(Fd socket, const std::optional<net::TlsContext>& tls);

  [[nodiscard]] int fd() const { return tls_ ? tls_->fd() : plain_.get(); }
  // Adds some bytes to `into`.
  State read(std::string& into);
  // Removes from `from` what it has sent.
  State write(std::string& from);
  // The client reads an end; it may still send. False if the connection is broken.
  bool end_write();

 private:
  State shake_hands();
  Fd plain_;
  std::optional<net::TlsSocket> tls_;
  bool open_;  // TLS: the handshake is done
};

}  // namespace bsp::controller
