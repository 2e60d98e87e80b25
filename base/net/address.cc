#include "base/net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <expected>

namespace bsp::net {
namespace {

bool is_v6(const Address& address) { return address.storage.ss_family == AF_INET6; }

sockaddr_in6 v6_of(const Address& address) {
  sockaddr_in6 v6;
  std::memcpy(&v6, &address.storage, sizeof v6);
  return v6;
}

sockaddr_in v4_of(const Address& address) {
  sockaddr_in v4;
  std::memcpy(&v4, &address.storage, sizeof v4);
  return v4;
}

Address any_v4(std::uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  Address address;
  std::memcpy(&address.storage, &v4, sizeof v4);
  address.size = sizeof v4;
  return address;
}

// Or the error's number.
std::expected<Fd, int> try_to_listen(const Address& address) {
  Fd socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return std::unexpected(errno);
  const int on = 1, off = 0;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // Whatever net.ipv6.bindv6only says.
  if (is_v6(address)) setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0)
    return std::unexpected(errno);
  return socket;
}

}  // namespace

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

bool is_any(const Address& address) {
  if (is_v6(address)) {
    const in6_addr host = v6_of(address).sin6_addr;
    return IN6_IS_ADDR_UNSPECIFIED(&host);
  }
  return v4_of(address).sin_addr.s_addr == htonl(INADDR_ANY);
}

std::uint16_t port_of(const Address& address) {
  return ntohs(is_v6(address) ? v6_of(address).sin6_port : v4_of(address).sin_port);
}

std::string to_string(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (is_v6(address)) {
    const in6_addr host = v6_of(address).sin6_addr;
    if (!IN6_IS_ADDR_V4MAPPED(&host)) {
      inet_ntop(AF_INET6, &host, text, sizeof text);
      return std::format("[{}]:{}", text, port_of(address));
    }
    inet_ntop(AF_INET, &host.s6_addr[12], text, sizeof text);
  } else {
    const in_addr host = v4_of(address).sin_addr;
    inet_ntop(AF_INET, &host, text, sizeof text);
  }
  return std::format("{}:{}", text, port_of(address));
}

Result<Fd> listen_on(const Address& address) {
  auto listener = try_to_listen(address);
  if (!listener && (listener.error() == EAFNOSUPPORT || listener.error() == EADDRNOTAVAIL) && is_v6(address) &&
      is_any(address))
    listener = try_to_listen(any_v4(port_of(address)));
  if (!listener) return fail_errno(std::format("listening on {}", to_string(address)), listener.error());
  return std::move(*listener);
}

std::uint16_t local_port(int socket) {
  Address bound;
  bound.size = sizeof bound.storage;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound.storage), &bound.size) != 0) return 0;
  return port_of(bound);
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
