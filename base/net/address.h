// "ip:port" or "[ipv6]:port" and the sockets made from them. Names are not resolved: pods and the
// operator give each other IP addresses.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/core/error.h"
#include "base/core/fd.h"

namespace bsp::net {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

Result<Address> parse_address(std::string_view text);
std::string to_string(const Address& address);

// A non-blocking listening socket (port 0: the system chooses, see local_port).
Result<Fd> listen_on(const Address& address);
std::uint16_t local_port(int socket);

// A non-blocking socket on its way to `address`, with TCP_NODELAY and keepalive: a pod that vanished
// without a word is noticed after 25 s even when nothing is sent.
Result<Fd> start_connect(const Address& address);
// Sets the same options on an accepted socket.
void set_socket_options(int socket);
// How a non-blocking connect ended (SO_ERROR); only once the socket is writable.
Result<void> finish_connect(int socket);

}  // namespace bsp::net
