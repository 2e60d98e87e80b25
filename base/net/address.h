// "ip:port" or "[ipv6]:port", and sockets for it. Host names aren't resolved: pods and the operator exchange IP
// addresses.
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
// Whether a socket listens at all addresses of the machine: [::], which stands for IPv4 too (listen_on), or 0.0.0.0.
bool is_any(const Address& address);
std::uint16_t port_of(const Address& address);
// An IPv4 client of a socket of both families by its IPv4 address.
std::string to_string(const Address& address);

// A non-blocking listening socket (port 0: the kernel picks one, see local_port). [::] listens on the addresses of both
// families, or on those of IPv4 if the kernel has no IPv6: what a pod listens on must suit a cluster of either.
Result<Fd> listen_on(const Address& address);
std::uint16_t local_port(int socket);

// A non-blocking socket connecting to `address`, with TCP_NODELAY, and with keepalive: it detects a pod that vanished
// silently within 25 s, even when nothing is sent.
Result<Fd> start_connect(const Address& address);
// Sets the same options on an accepted socket.
void set_socket_options(int socket);
// The result of a non-blocking connect (SO_ERROR). Call it once the socket is writable.
Result<void> finish_connect(int socket);

}  // namespace bsp::net
