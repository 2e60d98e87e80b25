#include "base/net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <charconv>
#include <cstring>

namespace bsp::net {

Result<Address> parse_address(std::string_view text) {
  auto wrong = [&] {
    return fail(ErrorCode::kInvalid, std::format("address \"{}\" is not ip:port or [ip]:port", text));
  };
  std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong();
  std::string host(text.substr(0, colon));
  std::string_view port_text = text.substr(colon + 1);
  std::uint16_t port = 0;
  auto [end, error] = std::from_chars(port_text.begin(), port_text.end(), port);
  if (error != std::errc{} || end != port_text.end()) return wrong();

  Address address;
  if (host.starts_with('[') && host.ends_with(']')) {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    if (inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6.sin6_addr) != 1) return wrong();
    std::memcpy(&address.storage, &v6, sizeof v6);
    address.size = sizeof v6;
  } else {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) != 1) return wrong();
    std::memcpy(&address.storage, &v4, sizeof v4);
    address.size = sizeof v4;
  }
  return address;
}

std::string to_string(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.storage.ss_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address.storage, sizeof v6);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return std::format("[{}]:{}", text, ntohs(v6.sin6_port));
  }
  sockaddr_in v4;
  std::memcpy(&v4, &address.storage, sizeof v4);
  inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  return std::format("{}:{}", text, ntohs(v4.sin_port));
}

Result<Fd> listen_on(const Address& address) {
  Fd socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno("socket");
  int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0)
    return fail_errno(std::format("listening on {}", to_string(address)));
  return socket;
}

std::uint16_t local_port(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  if (bound.ss_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &bound, sizeof v6);
    return ntohs(v6.sin6_port);
  }
  sockaddr_in v4;
  std::memcpy(&v4, &bound, sizeof v4);
  return ntohs(v4.sin_port);
}

void set_socket_options(int socket) {
  int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  int idle_s = 10, interval_s = 5, probes = 3;
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

Result<Fd> start_connect(const Address& address) {
  Fd socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno("socket");
  set_socket_options(socket.get());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 &&
      errno != EINPROGRESS)
    return fail_errno(std::format("connecting to {}", to_string(address)));
  return socket;
}

Result<void> finish_connect(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return fail_errno("getsockopt");
  if (error != 0) return fail_errno("connecting", error);
  return {};
}

}  // namespace bsp::net
